// The op graph form: Model G. `input` tensors stay for the whole schedule, which is kResident here.

#include <algorithm>
#include <limits>
#include <optional>

#include "base/error.h"
#include "planner/problem_forms.h"

namespace reprise::planner {
namespace {

using base::input_error;
using schedule::OpId;
using schedule::Problem;
using schedule::TensorId;
using schedule::TensorKind;

// Plans run ops many times and pack with holes; their sums must stay below 2^63 as well.
constexpr std::int64_t kMostBytes = std::int64_t{1} << 60;
constexpr std::int64_t kMostCost = std::int64_t{1} << 56;

TensorKind read_kind(const JsonObject& tensor) {
  if (!tensor.has("kind")) return TensorKind::kTemp;
  const std::string kind = tensor.text("kind");
  if (kind == "input") return TensorKind::kResident;
  if (kind == "temp") return TensorKind::kTemp;
  if (kind == "output") return TensorKind::kOutput;
  throw input_error("{}: kind '{}'; expected input, temp or output", tensor.place(), kind);
}

// "ops[3] 'conv1'", from what may not be an object yet.
std::string place_of(const char* list, std::size_t index, const Json& value) {
  std::string place = fmt::format("{}[{}]", list, index);
  if (value.is_object()) {
    const auto name = value.find("name");
    if (name != value.end() && name->is_string()) {
      place += fmt::format(" '{}'", name->get_ref<const std::string&>());
    }
  }
  return place;
}

schedule::Tensor read_tensor(std::size_t index, const Json& value, Ignored& ignored) {
  const JsonObject tensor(value, place_of("tensors", index, value));
  static const FieldSet known = {"name", "bytes", "kind"};
  tensor.collect_unknown(known, ignored);
  return {.name = tensor.has("name") ? tensor.text("name") : fmt::format("t{}", index),
          .bytes = tensor.whole("bytes", 0),
          .kind = read_kind(tensor)};
}

std::vector<TensorId> read_tensor_ids(const JsonObject& op, std::string_view field,
                                      const Problem& problem) {
  std::vector<TensorId> ids;
  for (const std::int64_t index : op.wholes(field, 0)) {
    if (index >= static_cast<std::int64_t>(problem.tensors.size())) {
      throw input_error("{}: {} has tensor {}; the problem has {} tensors", op.place(), field,
                        index, problem.tensors.size());
    }
    ids.emplace_back(static_cast<std::size_t>(index));
  }
  return ids;
}

void read_inplace(const JsonObject& file, const Problem& problem, schedule::Op& op) {
  if (!file.has("inplace")) return;
  const std::int64_t index = file.whole("inplace", -1);
  if (index < 0) return;
  if (index >= static_cast<std::int64_t>(op.inputs.size())) {
    throw input_error("{}: inplace {} is an index into its inputs; it has {}", file.place(), index,
                      op.inputs.size());
  }
  if (op.outputs.empty()) {
    throw input_error("{}: inplace {} without an output to become", file.place(), index);
  }
  const schedule::Tensor& input = problem.tensors[op.inputs[static_cast<std::size_t>(index)]];
  if (input.kind != TensorKind::kTemp) {
    throw input_error("{}: works in place on '{}', which is {} and must stay", file.place(),
                      input.name, input.kind == TensorKind::kOutput ? "an output" : "an input");
  }
  op.inplace.push_back({static_cast<std::int32_t>(index), 0, true});
}

// `choices`, or the one algorithm that `workspace` and `cost` are. Returns where each algorithm
// that the op gets stands in the list.
std::vector<std::size_t> read_algorithms(const JsonObject& file, schedule::Op& op,
                                         Ignored& ignored) {
  if (!file.has("choices")) {
    const Bytes workspace = file.has("workspace") ? file.whole("workspace", 0) : 0;
    return schedule::set_algorithms(op, {{workspace, file.whole("cost", 0)}});
  }
  for (const char* field : {"cost", "workspace"}) {
    if (file.has(field)) {
      throw input_error("{}: {} stands beside choices, each of which has one of its own",
                        file.place(), field);
    }
  }
  std::vector<schedule::Algorithm> algorithms;
  for (const Json& value : file.array("choices")) {
    const JsonObject choice(value, fmt::format("{}: choices[{}]", file.place(), algorithms.size()));
    static const FieldSet known = {"name", "workspace", "cost"};
    choice.collect_unknown(known, ignored);
    algorithms.push_back(
        {choice.has("workspace") ? choice.whole("workspace", 0) : 0, choice.whole("cost", 0)});
  }
  if (algorithms.empty())
    throw input_error("{}: choices is empty; name one at least", file.place());
  return schedule::set_algorithms(op, algorithms);
}

schedule::Op read_op(std::size_t index, const Json& value, const Problem& problem,
                     std::vector<std::size_t>& choices, Ignored& ignored) {
  const JsonObject file(value, place_of("ops", index, value));
  static const FieldSet known = {"name", "inputs",  "outputs",      "workspace",
                                 "cost", "inplace", "recomputable", "choices"};
  file.collect_unknown(known, ignored);
  schedule::Op op;
  op.name = file.has("name") ? file.text("name") : fmt::format("op{}", index);
  op.inputs = read_tensor_ids(file, "inputs", problem);
  op.outputs = read_tensor_ids(file, "outputs", problem);
  choices = read_algorithms(file, op, ignored);
  if (file.has("recomputable")) op.recomputable = file.boolean("recomputable");
  read_inplace(file, problem, op);
  return op;
}

// From an op that is read before it runs back to itself, through the producers of inputs.
// Iterative.
class CycleFinder {
 public:
  explicit CycleFinder(const Problem& problem)
      : problem_(problem), producer_(problem.tensors.size()), state_(problem.ops.size()) {
    for (std::size_t i = 0; i < problem.ops.size(); ++i) {
      for (const TensorId t : problem.ops[OpId(i)].outputs) {
        if (!producer_[t.index()]) producer_[t.index()] = i;
      }
    }
  }

  [[nodiscard]] std::optional<std::size_t> producer(TensorId t) const {
    return producer_[t.index()];
  }

  // The ops of a cycle that `start` depends on, in the order of the data; empty when there is none.
  std::vector<std::size_t> find(std::size_t start) {
    path_ = {{start, 0}};
    state_[start] = State::kOpen;
    while (!path_.empty()) {
      auto& [op, next] = path_.back();
      const auto& inputs = problem_.ops[OpId(op)].inputs;
      if (next == inputs.size()) {
        state_[op] = State::kDone;
        path_.pop_back();
        continue;
      }
      const std::optional<std::size_t> from = producer_[inputs[next++].index()];
      if (!from || state_[*from] == State::kDone) continue;
      if (state_[*from] == State::kOpen) return cycle_from(*from);
      state_[*from] = State::kOpen;
      path_.emplace_back(*from, 0);
    }
    return {};
  }

 private:
  enum class State : std::uint8_t { kNew, kOpen, kDone };

  std::vector<std::size_t> cycle_from(std::size_t op) const {
    std::vector<std::size_t> cycle;
    for (std::size_t i = path_.size(); i-- > 0;) {
      cycle.push_back(path_[i].first);
      if (path_[i].first == op) break;
    }
    return cycle;
  }

  const Problem& problem_;
  std::vector<std::optional<std::size_t>> producer_;  // per tensor
  std::vector<State> state_;                          // per op
  std::vector<std::pair<std::size_t, std::size_t>> path_;
};

std::string cycle_text(const Problem& problem, const std::vector<std::size_t>& cycle) {
  constexpr std::size_t kMostShown = 6;
  std::string text;
  for (std::size_t i = 0; i < std::min(cycle.size(), kMostShown); ++i) {
    text += fmt::format("'{}' > ", problem.ops[OpId(cycle[i])].name);
  }
  if (cycle.size() > kMostShown) text += "... > ";
  return text + fmt::format("'{}'", problem.ops[OpId(cycle.front())].name);
}

// Names cycles and readers before producers; all else is validate()'s.
void check_order(const Problem& problem) {
  CycleFinder finder(problem);
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    for (const TensorId t : problem.ops[OpId(i)].inputs) {
      const schedule::Tensor& tensor = problem.tensors[t];
      const std::optional<std::size_t> producer = finder.producer(t);
      if (!producer || *producer < i || tensor.kind == TensorKind::kResident) continue;
      if (const auto cycle = finder.find(i); !cycle.empty()) {
        throw input_error("ops {} form a cycle: each reads what the one before it makes",
                          cycle_text(problem, cycle));
      }
      throw input_error(
          "ops[{}] '{}' reads '{}' before ops[{}] '{}' makes it; ops are listed in an order in "
          "which they can run",
          i, problem.ops[OpId(i)].name, tensor.name, *producer, problem.ops[OpId(*producer)].name);
    }
  }
}

void check_sums(const Problem& problem) {
  std::int64_t bytes = 0;
  std::int64_t cost = 0;
  for (const schedule::Tensor& tensor : problem.tensors) {
    bytes = base::checked_add(bytes, tensor.bytes, "bytes of all tensors");
  }
  for (const schedule::Op& op : problem.ops) {
    bytes = base::checked_add(bytes, op.workspace, "bytes of all tensors and workspaces");
    cost = base::checked_add(cost, op.algorithm(op.leaner.size()).cost, "cost of all ops");
  }
  if (bytes > kMostBytes) {
    throw input_error(
        "all tensors and workspaces take {} bytes; at most 2^60 keeps every plan's "
        "sums below 2^63",
        bytes);
  }
  if (cost > kMostCost) {
    throw input_error(
        "all ops cost {}; at most 2^56 keeps every plan's sums below 2^63: take a "
        "coarser unit",
        cost);
  }
}

void hold_to_one_run(OpGraphFile& file) {
  for (std::size_t i = 0; i < file.problem.ops.size(); ++i) {
    schedule::Op& op = file.problem.ops[OpId(i)];
    const auto stays = [&](TensorId t) {
      return file.problem.tensors[t].kind == TensorKind::kOutput;
    };
    if (!op.recomputable || std::none_of(op.outputs.begin(), op.outputs.end(), stays)) continue;
    op.recomputable = false;
    file.held_to_one_run.emplace_back(i);
  }
}

}  // namespace

OpGraphFile read_op_graph(const JsonObject& file, Ignored& ignored) {
  OpGraphFile result;
  Problem& problem = result.problem;
  const Json& tensors = file.array("tensors");
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    problem.tensors.push_back(read_tensor(i, tensors[i], ignored));
  }
  const Json& ops = file.array("ops");
  for (std::size_t i = 0; i < ops.size(); ++i) {
    std::vector<std::size_t> choices;
    problem.ops.push_back(read_op(i, ops[i], problem, choices, ignored));
    result.choices.push_back(std::move(choices));
    result.offers_choices = result.offers_choices || ops[i].contains("choices");
  }
  result.alignment = read_alignment(file);
  check_sums(problem);
  check_order(problem);
  schedule::validate(problem);
  hold_to_one_run(result);
  return result;
}

}  // namespace reprise::planner
