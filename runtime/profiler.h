#pragma once

// What each node costs on this machine, measured in real steps: a plan then weighs recomputation
// with real times. A node that runs alone, over and over on the same buffers, finds its data in the
// caches as it never does in a step; so the step itself runs, and every kernel call is timed.
//
// A cost table is kept in a file and used again for other models and batch sizes as far as they
// share nodes (docs/costs.md).

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "graph/prepared.h"
#include "kernels/backend.h"

namespace reprise::runtime {

struct NodeCost {
  std::int64_t ns = 0;
  std::int64_t measured_at = 0;  // seconds since 1970, UTC
  friend bool operator==(const NodeCost&, const NodeCost&) = default;
};

struct CostTable {
  std::string device;                     // processor, libraries, threads: where it was measured
  std::map<std::string, NodeCost> nodes;  // by cost_key()
  friend bool operator==(const CostTable&, const CostTable&) = default;
};

// What the cost of a node depends on: op, attributes, shapes, dtypes and layouts, and which inputs
// must be overwritten. "relu f32[8,16]@plain -> f32[8,16]@plain". Attributes that change results
// but no time (rates, random streams, where a slice begins) are left out.
[[nodiscard]] std::string cost_key(const graph::PreparedGraph& prepared, graph::NodeId node);

// Whether a node copies and computes nothing (by itself: sums over ranks run beside the step), and
// so is in no table.
[[nodiscard]] bool is_free(const graph::Node& node);

// The median of the runs that nothing disturbed. A run that takes more than twice the fastest lost
// its core to another program for a while, and says nothing about the node.
struct TypicalTime {
  std::int64_t ns = 0;
  std::int64_t runs = 0;       // all of them
  std::int64_t disturbed = 0;  // left out
};
[[nodiscard]] TypicalTime typical_time(std::vector<std::int64_t> runs_ns);

// Hands every call on to another program, and times it while recording is on. Nodes with the same
// cost_key() are one.
class TimedProgram final : public kernels::Program {
 public:
  using Clock = std::function<std::int64_t()>;  // nanoseconds; Program::timed_run() when empty

  explicit TimedProgram(std::unique_ptr<kernels::Program> program, Clock clock = {});

  void record(bool on) { recording_ = on; }
  struct Measured {
    std::string key;
    graph::NodeId example;   // the first node with this key
    std::int64_t nodes = 0;  // of the graph, with this key
    TypicalTime time;
  };
  // What has run so far, in the order of the graph.
  [[nodiscard]] std::vector<Measured> measured() const;

  [[nodiscard]] const graph::PreparedGraph& prepared() const override;
  void run(graph::NodeId node, const kernels::Call& call,
           const graph::StepContext& context) override;
  void run_step(const graph::StepContext& context, kernels::Tape* tape,
                const std::function<void(const graph::StepContext&)>& instructions) override;
  void import_value(graph::ValueId value, std::span<const std::byte> plain,
                    std::byte* stored) override;
  void export_value(graph::ValueId value, const std::byte* stored,
                    std::span<std::byte> plain) override;

 private:
  struct Distinct {
    std::string key;
    graph::NodeId example;
    std::int64_t nodes = 0;
    std::vector<std::int64_t> runs_ns;
  };

  std::unique_ptr<kernels::Program> program_;
  Clock clock_;
  bool recording_ = false;
  std::vector<Distinct> distinct_;
  base::IdVector<graph::NodeId, std::size_t> index_;  // into distinct_
};

// How many nodes of the graph the table lacks.
[[nodiscard]] std::int64_t count_missing(const CostTable& table,
                                         const graph::PreparedGraph& prepared);

// Writes the table's costs into the nodes that it has (their other algorithms keep the ratio of
// their costs to it, since only the first one is timed); returns how many nodes it lacks, which
// keep theirs. When it has any, cost_source says where they were measured and how many are
// analytic.
std::int64_t apply_costs(const CostTable& table, graph::PreparedGraph& prepared);

// When the oldest cost that the graph uses was measured; 0 when it uses none.
[[nodiscard]] std::int64_t oldest_measure(const CostTable& table,
                                          const graph::PreparedGraph& prepared);

// As JSON: {"format": 2, "device": ..., "nodes": {key: {"ns": ..., "measured_at": ...}}}. Written
// atomically. Reading throws Error(kInput) naming file and field for anything else.
void save_costs(const std::filesystem::path& path, const CostTable& table);
[[nodiscard]] CostTable load_costs(const std::filesystem::path& path);

}  // namespace reprise::runtime
