#pragma once

// What each node of a program costs on this machine, measured: the plan then weighs recomputation
// with real times. A cost table is kept in a file and used again for other models and batch sizes
// as far as they share nodes.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>

#include "graph/prepared.h"
#include "kernels/backend.h"

namespace reprise::runtime {

struct CostTable {
  std::string device;                           // Backend::description() of where it was measured
  std::map<std::string, std::int64_t> cost_ns;  // by cost_key()
  friend bool operator==(const CostTable&, const CostTable&) = default;
};

struct ProfileOptions {
  int repeats = 5;                           // the median of them counts, after one run to warm up
  std::int64_t enough_ns = 50'000'000;       // fewer repeats, at least 3, once they took this long
  std::function<std::int64_t()> clock_ns{};  // the system's steady clock when empty
};

// What the cost of a node depends on: op, attributes, shapes, dtypes and layouts, and which inputs
// must be overwritten. "relu f32[8,16]@plain -> f32[8,16]@plain".
[[nodiscard]] std::string cost_key(const graph::PreparedGraph& prepared, graph::NodeId node);

// Runs every distinct node that `table` lacks, alone, on buffers of its own with random data, and
// adds what it took. Reshape nodes copy nothing and are left out. Returns how many were measured.
std::int64_t measure_costs(kernels::Program& program, CostTable& table,
                           const ProfileOptions& options = {});

// Writes the table's costs into the nodes that it has; returns how many nodes it lacks, which keep
// theirs. When it has any, cost_source says where they were measured and how many are analytic.
std::int64_t apply_costs(const CostTable& table, graph::PreparedGraph& prepared);

// As JSON: {"format": 1, "device": ..., "cost_ns": {key: ns}}. Written atomically. Reading throws
// Error(kInput) naming file and field for anything else.
void save_costs(const std::filesystem::path& path, const CostTable& table);
[[nodiscard]] CostTable load_costs(const std::filesystem::path& path);

}  // namespace reprise::runtime
