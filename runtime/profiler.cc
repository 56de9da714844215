#include "runtime/profiler.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>
#include <vector>

#include "base/error.h"
#include "graph/random.h"
#include "graph/text_attributes.h"
#include "runtime/arena.h"
#include "runtime/random_streams.h"

namespace reprise::runtime {
namespace {

using graph::NodeId;
using graph::ValueId;

std::int64_t steady_ns() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

std::string value_text(const graph::PreparedGraph& prepared, ValueId id) {
  const graph::Value& value = prepared.graph.values[id];
  // A reshaped value lies where its root lies, in the root's layout.
  const ValueId root = graph::storage_root(prepared.graph, id);
  return fmt::format(" {}{}@{}", graph::dtype_name(value.dtype), graph::shape_text(value.shape),
                     prepared.value_layouts[root]);
}

// The buffers of one node, laid out one behind the other in an arena of their own.
class NodeRun {
 public:
  NodeRun(kernels::Program& program, NodeId id) : program_(program), id_(id), arena_(place_all()) {
    for (std::size_t i = 0; i < input_offsets_.size(); ++i) {
      fill(node().inputs[i], arena_.data() + input_offsets_[i]);
      inputs_.push_back(arena_.data() + input_offsets_[i]);
    }
    for (const Bytes offset : output_offsets_) outputs_.push_back(arena_.data() + offset);
  }

  void run() {
    const Bytes workspace = prepared().nodes[id_].workspace_bytes;
    program_.run(id_,
                 {.inputs = inputs_,
                  .outputs = outputs_,
                  .workspace = workspace > 0 ? arena_.data() + workspace_offset_ : nullptr},
                 {.seed = 1, .step = 0});
  }

 private:
  [[nodiscard]] const graph::PreparedGraph& prepared() const { return program_.prepared(); }
  [[nodiscard]] const graph::Node& node() const { return prepared().graph.nodes[id_]; }
  [[nodiscard]] Bytes bytes_of(ValueId value) const {
    return prepared().value_bytes[graph::storage_root(prepared().graph, value)];
  }

  // Decides the offsets; returns the bytes of all.
  Bytes place_all() {
    Bytes end = 0;
    const auto place = [&](Bytes bytes) {
      const Bytes offset = end;
      end = base::align_up(base::checked_add(end, bytes, "profiled node"), graph::kArenaAlignment);
      return offset;
    };
    for (const ValueId input : node().inputs) input_offsets_.push_back(place(bytes_of(input)));
    for (std::size_t output = 0; output < node().outputs.size(); ++output) {
      const auto taken = overwritten_input(output);
      output_offsets_.push_back(taken ? input_offsets_[*taken]
                                      : place(bytes_of(node().outputs[output])));
    }
    workspace_offset_ = place(prepared().nodes[id_].workspace_bytes);
    return end;
  }

  [[nodiscard]] std::optional<std::size_t> overwritten_input(std::size_t output) const {
    for (const graph::InplacePair& pair : prepared().nodes[id_].inplace) {
      if (pair.forced && pair.output == static_cast<std::int32_t>(output)) {
        return static_cast<std::size_t>(pair.input);
      }
    }
    return std::nullopt;
  }

  // f32: random in [1/16, 1], which is fine for variances, too; ids and labels 0, which always
  // exist. What a backend keeps in a form of its own stays zero.
  void fill(ValueId id, std::byte* stored) {
    const graph::Value& value = prepared().graph.values[id];
    if (value.dtype != graph::DType::kF32) return;
    std::vector<float> plain(static_cast<std::size_t>(graph::element_count(value.shape)));
    for (std::size_t i = 0; i < plain.size(); ++i) {
      const std::uint32_t bits = graph::random_bits({.seed = 1}, kProfileStream, i);
      plain[i] = 0.0625f + 0.9375f * static_cast<float>(bits >> 8) * 0x1p-24f;
    }
    try {
      program_.import_value(graph::storage_root(prepared().graph, id),
                            std::as_bytes(std::span(plain)), stored);
    } catch (const base::Error&) {
      std::memset(stored, 0, static_cast<std::size_t>(bytes_of(id)));
    }
  }

  kernels::Program& program_;
  NodeId id_;
  std::vector<Bytes> input_offsets_;
  std::vector<Bytes> output_offsets_;
  Bytes workspace_offset_ = 0;
  Arena arena_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
};

std::int64_t measure(kernels::Program& program, NodeId node, const ProfileOptions& options) {
  const auto clock = options.clock_ns ? options.clock_ns : steady_ns;
  NodeRun run(program, node);
  run.run();  // to warm caches and whatever a library makes at its first call
  std::vector<std::int64_t> times;
  std::int64_t total = 0;
  while (static_cast<int>(times.size()) < std::max(1, options.repeats) &&
         (times.size() < 3 || total < options.enough_ns)) {
    const std::int64_t begin = clock();
    run.run();
    times.push_back(clock() - begin);
    total += times.back();
  }
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

bool is_free(const graph::Node& node) {
  return node.op == graph::OpKind::kReshape;
}

}  // namespace

std::string cost_key(const graph::PreparedGraph& prepared, NodeId id) {
  const graph::Node& node = prepared.graph.nodes[id];
  std::string key(graph::op_info(node.op).name);
  key += graph::print_attributes(node.op, node.attributes);
  if (node.accumulate) key += " accumulate";
  for (const ValueId input : node.inputs) key += value_text(prepared, input);
  key += " ->";
  for (const ValueId output : node.outputs) key += value_text(prepared, output);
  return key;
}

std::int64_t measure_costs(kernels::Program& program, CostTable& table,
                           const ProfileOptions& options) {
  const graph::PreparedGraph& prepared = program.prepared();
  std::int64_t measured = 0;
  for (std::size_t i = 0; i < prepared.graph.nodes.size(); ++i) {
    const NodeId node(i);
    if (is_free(prepared.graph.nodes[node])) continue;
    const std::string key = cost_key(prepared, node);
    if (table.cost_ns.count(key) != 0) continue;
    table.cost_ns[key] = measure(program, node, options);
    ++measured;
  }
  return measured;
}

std::int64_t apply_costs(const CostTable& table, graph::PreparedGraph& prepared) {
  std::int64_t found = 0;
  std::int64_t missing = 0;
  for (std::size_t i = 0; i < prepared.graph.nodes.size(); ++i) {
    const NodeId node(i);
    if (is_free(prepared.graph.nodes[node])) continue;
    const auto cost = table.cost_ns.find(cost_key(prepared, node));
    if (cost == table.cost_ns.end()) {
      ++missing;
    } else {
      prepared.nodes[node].cost_ns = cost->second;
      ++found;
    }
  }
  if (found > 0) {
    prepared.cost_source = fmt::format("measured on {}", table.device);
    if (missing > 0) {
      prepared.cost_source += fmt::format(", {} of {} nodes analytic", missing, found + missing);
    }
  }
  return missing;
}

}  // namespace reprise::runtime
