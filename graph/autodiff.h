#pragma once

// From a forward graph with a scalar loss to one training graph: forward, backward and updates are
// all nodes.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "graph/attributes.h"
#include "graph/buckets.h"
#include "graph/graph.h"

namespace reprise::graph {

using Optimizer = std::variant<SgdAttributes, AdamAttributes>;

struct TrainingOptions {
  Optimizer optimizer = SgdAttributes{};
  // Gradients the user wants to read after the step: of any floats of the forward graph. They
  // become f32 outputs named "grad/<value>"; zeros where the loss does not depend on the value.
  std::vector<ValueId> fetch_gradients{};
  // The step of one rank among several: see docs/distributed.md.
  struct Ranks {
    std::int64_t bucket_bytes = kDefaultBucketBytes;  // most that one operation sums
    // Gradients may wait for their sums until so many bytes of them are under way: what is computed
    // meanwhile hides the communication, and their bytes stay taken. When not given, two buckets'
    // (graph/buckets.h): one travels while the next one fills.
    std::optional<std::int64_t> bytes_under_way{};
    // Over so many ranks batch norm takes its statistics (graph/synchronise.h); 0: each its own.
    std::int64_t batch_norm_over = 0;
  };
  std::optional<Ranks> ranks{};
  // So many batches of the forward graph's size make one step, one after the other: the graph is
  // repeated, with shared parameters, and gradients are complete, reduced and used after the last.
  std::int64_t micro_batches = 1;
  // False: gradients only, no update nodes (for tests and for embedding in another trainer).
  bool update = true;
  // Graph::updates_last of what is made. The nodes and their order are the same.
  bool updates_last = false;
};

inline constexpr std::string_view kGradientWeight = "gradient_weight";
inline constexpr std::string_view kGradientNorm = "grad_norm";

// What is called `name` in the forward graph, in the copy for this micro-batch: "micro2/images",
// and the name itself for micro-batch 0.
[[nodiscard]] std::string micro_batch_name(std::int64_t micro_batch, std::string_view name);

struct TrainingGraph {
  Graph graph;
  // What the user should hear, a sentence each: trainable parameters that take no part in the loss.
  std::vector<std::string> warnings;
};

// Reverse-mode differentiation, O(nodes), without recursion.
//
// - The forward nodes keep their ids and order. Assignments of states, which must be the last
//   forward nodes, move to the end, after the backward nodes that still read the old state.
//   Backward nodes follow in reverse order of the forward ones, each parameter's update right
//   after its gradient is final.
// - Only what the gradient of a trainable parameter (or of a fetched gradient) needs is made:
//   nothing for frozen parameters, inputs without a fetched gradient, integer values, or outputs
//   the loss does not see.
// - Contributions to one gradient add up in a fixed order (reverse program order of the readers):
//   in place through the accumulate form where the op has one and nothing else reads the partial
//   sum, else by add nodes. Bits therefore never depend on a plan.
// - Backward nodes are named "grad/<node>.<part>", updates "update/<parameter>"; a fetched gradient
//   is a value of its own, "grad/<value>".
// - Optimizer state ("<param>.momentum", "<param>.m", "<param>.v") is created as persistent values
//   of zeros.
// - With `ranks`, the loss's own gradient is an input instead of 1, the scalar kGradientWeight: the
//   weight of this rank's loss in that of all. Each parameter's gradient goes through an all_reduce
//   ("reduce/<parameter>") as soon as it is final, in the order in which that happens, and through
//   an await before the update: the one of the oldest comes as soon as more than bytes_under_way
//   are waiting.
// - With `micro_batches`, forward and backward nodes of one copy are followed by those of the next
//   (graph/forward_copies.h). The weight of each copy's loss in that of all is an input,
//   kGradientWeight, with or without ranks. The loss is then the sum of weights times losses, and
//   only gradients of parameters can be fetched.
// - An optimizer that clips or skips (takes_norm) makes the updates wait for kGradientNorm, the
//   norm of all gradients together, summed over ranks where there are several; it is an output.
//   What skips leaves everything that persists as it was: running statistics and assigned states
//   are then updated at the end too, and read the norm.
// - With `batch_norm_over`, the gradients of what scales a batch norm are sums over the ranks
//   already, so they go through no all_reduce of their own.
// - A parameter without gradient is left unchanged, weight decay included, and reported as a
//   warning.
// - The loss is an output of the training graph.
// Throws Error(kInput) when the loss is missing, not made by a node or not a scalar f32, or when a
// needed gradient has to flow through an op without one, or through an output that hands none on
// such as the statistics of a norm (all are listed, with the path to the parameter).
[[nodiscard]] TrainingGraph make_training_graph(const Graph& forward,
                                                const TrainingOptions& options);

}  // namespace reprise::graph
