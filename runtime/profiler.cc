#include "runtime/profiler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "graph/text_attributes.h"

namespace reprise::runtime {
namespace {

using graph::NodeId;
using graph::ValueId;

// Enough for any median; a long unrolled model would otherwise keep millions.
constexpr std::size_t kMaxRuns = 4096;

std::string value_text(const graph::PreparedGraph& prepared, ValueId id) {
  const graph::Value& value = prepared.graph.values[id];
  // A reshaped value lies where its root lies, in the root's layout.
  const ValueId root = graph::storage_root(prepared.graph, id);
  return fmt::format(" {}{}@{}", graph::dtype_name(value.dtype), graph::shape_text(value.shape),
                     prepared.value_layouts[root]);
}

// Attributes whose value changes no time, or whose effect on it the shapes tell.
bool is_without_cost(std::string_view attribute) {
  constexpr std::array<std::string_view, 17> kNames = {
      "begin",        "end",   "stream",   "factor",       "value",        "epsilon",
      "schedule",     "rate",  "momentum", "warmup_steps", "period_steps", "final_rate",
      "weight_decay", "beta1", "beta2",    "probability",  "ignore_index",
  };
  return std::find(kNames.begin(), kNames.end(), attribute) != kNames.end();
}

std::string attributes_text(const graph::Node& node) {
  graph::Attributes attributes = node.attributes;
  const graph::Attributes usual = graph::default_attributes(node.op);
  graph::visit(attributes, [&](std::string_view name, auto& field) {
    if (!is_without_cost(name)) return;
    graph::visit(usual, [&](std::string_view other, const auto& content) {
      using Field = std::decay_t<decltype(field)>;
      if constexpr (std::is_same_v<Field, std::decay_t<decltype(content)>>) {
        if (other == name) field = content;
      }
    });
  });
  return graph::print_attributes(node.op, attributes);
}

// Calls f(node, cost) for each node that the table has; returns how many it lacks.
template <class Table, class F>
std::int64_t for_each_known(Table& table, const graph::PreparedGraph& prepared, F&& f) {
  std::int64_t missing = 0;
  for (std::size_t i = 0; i < prepared.graph.nodes.size(); ++i) {
    const NodeId node(i);
    if (is_free(prepared.graph.nodes[node])) continue;
    const auto cost = table.nodes.find(cost_key(prepared, node));
    if (cost == table.nodes.end()) {
      ++missing;
    } else {
      f(node, cost->second);
    }
  }
  return missing;
}

// A table knows the first algorithm; the others keep their ratio to it.
void set_cost(graph::PreparedNode& node, std::int64_t measured_ns) {
  for (graph::Algorithm& other : node.others) {
    if (node.cost_ns <= 0) continue;
    const double ratio = static_cast<double>(other.cost_ns) / static_cast<double>(node.cost_ns);
    other.cost_ns = std::llround(ratio * static_cast<double>(measured_ns));
  }
  node.cost_ns = measured_ns;
}

}  // namespace

bool is_free(const graph::Node& node) {
  using graph::OpKind;
  return node.op == OpKind::kReshape || node.op == OpKind::kAllReduce || node.op == OpKind::kAwait;
}

std::string cost_key(const graph::PreparedGraph& prepared, NodeId id) {
  const graph::Node& node = prepared.graph.nodes[id];
  std::string key(graph::op_info(node.op).name);
  key += attributes_text(node);
  if (node.accumulate) key += " accumulate";
  for (const ValueId input : node.inputs) key += value_text(prepared, input);
  key += " ->";
  for (const ValueId output : node.outputs) key += value_text(prepared, output);
  return key;
}

TypicalTime typical_time(std::vector<std::int64_t> runs_ns) {
  if (runs_ns.empty()) return {};
  TypicalTime result{.ns = 0, .runs = static_cast<std::int64_t>(runs_ns.size()), .disturbed = 0};
  const std::int64_t fastest = *std::min_element(runs_ns.begin(), runs_ns.end());
  const auto end = std::partition(runs_ns.begin(), runs_ns.end(),
                                  [&](std::int64_t ns) { return ns <= 2 * fastest; });
  result.disturbed = runs_ns.end() - end;
  const auto middle = runs_ns.begin() + (end - runs_ns.begin()) / 2;
  std::nth_element(runs_ns.begin(), middle, end);
  result.ns = *middle;
  return result;
}

TimedProgram::TimedProgram(std::unique_ptr<kernels::Program> program, Clock clock)
    : program_(std::move(program)), clock_(std::move(clock)) {
  std::unordered_map<std::string, std::size_t> known;
  const graph::PreparedGraph& prepared = program_->prepared();
  for (std::size_t i = 0; i < prepared.graph.nodes.size(); ++i) {
    std::string key = cost_key(prepared, NodeId(i));
    const auto [at, is_new] = known.emplace(key, distinct_.size());
    if (is_new) {
      distinct_.push_back({.key = std::move(key), .example = NodeId(i), .nodes = 0, .runs_ns = {}});
    }
    ++distinct_[at->second].nodes;
    index_.push_back(at->second);
  }
}

std::vector<TimedProgram::Measured> TimedProgram::measured() const {
  std::vector<Measured> list;
  for (const Distinct& distinct : distinct_) {
    if (distinct.runs_ns.empty() || is_free(prepared().graph.nodes[distinct.example])) continue;
    list.push_back({.key = distinct.key,
                    .example = distinct.example,
                    .nodes = distinct.nodes,
                    .time = typical_time(distinct.runs_ns)});
  }
  return list;
}

const graph::PreparedGraph& TimedProgram::prepared() const {
  return program_->prepared();
}

void TimedProgram::run(NodeId node, const kernels::Call& call, const graph::StepContext& context) {
  std::vector<std::int64_t>& runs = distinct_[index_[node]].runs_ns;
  if (!recording_ || call.algorithm != 0 || runs.size() >= kMaxRuns) {
    return program_->run(node, call, context);
  }
  if (!clock_) {
    runs.push_back(program_->timed_run(node, call, context));
    return;
  }
  const std::int64_t begin = clock_();
  program_->run(node, call, context);
  runs.push_back(clock_() - begin);
}

// A step that is played back runs no single node.
void TimedProgram::run_step(const graph::StepContext& context, kernels::Tape* /*tape*/,
                            const std::function<void(const graph::StepContext&)>& instructions) {
  program_->run_step(context, nullptr, instructions);
}

void TimedProgram::import_value(ValueId value, std::span<const std::byte> plain,
                                std::byte* stored) {
  program_->import_value(value, plain, stored);
}
void TimedProgram::export_value(ValueId value, const std::byte* stored,
                                std::span<std::byte> plain) {
  program_->export_value(value, stored, plain);
}

std::int64_t count_missing(const CostTable& table, const graph::PreparedGraph& prepared) {
  return for_each_known(table, prepared, [](NodeId, const NodeCost&) {});
}

std::int64_t oldest_measure(const CostTable& table, const graph::PreparedGraph& prepared) {
  std::int64_t oldest = 0;
  (void)for_each_known(table, prepared, [&](NodeId, const NodeCost& cost) {
    if (oldest == 0 || cost.measured_at < oldest) oldest = cost.measured_at;
  });
  return oldest;
}

std::int64_t apply_costs(const CostTable& table, graph::PreparedGraph& prepared) {
  std::int64_t found = 0;
  const std::int64_t missing =
      for_each_known(table, prepared, [&](NodeId node, const NodeCost& cost) {
        set_cost(prepared.nodes[node], cost.ns);
        ++found;
      });
  if (found == 0) return missing;
  prepared.cost_source = fmt::format("measured on {}", table.device);
  if (missing > 0) {
    prepared.cost_source += fmt::format(", {} of {} nodes analytic", missing, found + missing);
  }
  return missing;
}

}  // namespace reprise::runtime
