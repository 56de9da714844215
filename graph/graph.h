#pragma once

// The static graph: values in SSA form and the nodes that make them, in a valid program order.
//
// A graph is plain data. Builder (graph/builder.h) makes it with checks, autodiff
// (graph/autodiff.h) extends it by backward and update nodes, validate() names what is wrong with
// one that came from elsewhere.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/ids.h"
#include "graph/attributes.h"
#include "graph/op.h"
#include "graph/types.h"

namespace reprise::graph {

struct Value {
  std::string name;  // unique in the graph; [A-Za-z0-9_./-]+
  Shape shape;
  DType dtype = DType::kF32;
  Role role = Role::kActivation;
  bool trainable = false;    // parameters only: false is a frozen one
  NodeId producer{};         // invalid for inputs and persistent values
  std::uint32_t output = 0;  // which output of the producer

  friend bool operator==(const Value&, const Value&) = default;
};

struct Node {
  std::string name;  // unique among nodes
  OpKind op = OpKind::kFill;
  Phase phase = Phase::kForward;
  Attributes attributes{};
  // The last inputs are running sums, one per op_info(op).accumulated output, into which the node
  // adds in place (gradient of a weight used in several places).
  bool accumulate = false;
  std::vector<ValueId> inputs;
  std::vector<ValueId> outputs;

  friend bool operator==(const Node&, const Node&) = default;
};

// A persistent value that changes during the step: `final` is made from `initial` in place.
struct Update {
  ValueId initial;
  ValueId final;
  friend bool operator==(const Update&, const Update&) = default;
};

struct Graph {
  std::string name;
  base::IdVector<ValueId, Value> values;
  base::IdVector<NodeId, Node> nodes;  // each node after the producers of its inputs
  std::vector<ValueId> outputs;        // fetched by the user: readable after the step
  std::vector<Update> updates;         // at most one per persistent value
  // Every gradient that an update of a parameter reads is there before the first of these updates
  // runs, and all of them at one time: what clipping them by their common norm takes. False: each
  // update may run as soon as its own gradient is final.
  bool updates_last = false;
  ValueId loss{};  // scalar; invalid in a graph without one

  friend bool operator==(const Graph&, const Graph&) = default;
};

// Where the bytes of `value` live: follows reshape nodes (which copy nothing) to the value they
// view.
[[nodiscard]] ValueId storage_root(const Graph& graph, ValueId value);

// The readers of each value, in node order; a node that reads a value twice is listed once.
[[nodiscard]] base::IdVector<ValueId, std::vector<NodeId>> readers_of(const Graph& graph);

// Every rule a graph must obey: known ids, unique names, order, arity, dtypes and shapes as
// inferred, roles, accumulate forms, in-place updates. Throws Error(kInput) naming the node or
// value, both facts and the rule. O(values + nodes).
void validate(const Graph& graph);

// The nodes that make the next version of a parameter, in node order.
[[nodiscard]] std::vector<NodeId> parameter_updates(const Graph& graph);

// What those nodes read and other nodes make, each once, as storage roots: the final gradients.
[[nodiscard]] std::vector<ValueId> final_gradients(const Graph& graph);

// Number of elements over all parameters (trainable and frozen).
[[nodiscard]] std::int64_t parameter_count(const Graph& graph);

}  // namespace reprise::graph
