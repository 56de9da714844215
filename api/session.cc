#include "api/session.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_map>
#include <utility>

#include "api/hash.h"
#include "api/initialize.h"
#include "api/plan.h"
#include "base/error.h"
#include "graph/evaluation.h"
#include "kernels/backend.h"
#include "planner/lowering.h"
#include "runtime/arena.h"

namespace reprise::api {
namespace {

using graph::NodeId;
using graph::ValueId;

// A program with its schedule, and the way from names to values.
struct Side {
  std::unique_ptr<kernels::Program> program;
  std::unique_ptr<runtime::Executor> executor;
  std::unordered_map<std::string, ValueId> values;

  [[nodiscard]] const graph::Graph& graph() const { return program->prepared().graph; }

  [[nodiscard]] Bytes plain_bytes(ValueId id) const {
    const graph::Value& value = graph().values[id];
    return graph::element_count(value.shape) * graph::dtype_bytes(value.dtype);
  }

  [[nodiscard]] ValueId find(std::string_view name, std::string_view what) const {
    const auto found = values.find(std::string(name));
    if (found == values.end())
      throw base::input_error("graph '{}' has no {} '{}'", graph().name, what, name);
    return found->second;
  }

  [[nodiscard]] std::vector<std::byte> read(ValueId id) const {
    std::vector<std::byte> plain(static_cast<std::size_t>(plain_bytes(id)));
    executor->read(id, plain);
    return plain;
  }

  void write_input(std::string_view name, std::span<const std::byte> plain) {
    const ValueId id = find(name, "input");
    if (graph().values[id].role != graph::Role::kInput) {
      throw base::input_error("graph '{}': '{}' is no input but {}", graph().name, name,
                              graph::role_name(graph().values[id].role));
    }
    if (static_cast<Bytes>(plain.size()) != plain_bytes(id)) {
      throw base::input_error("input '{}' was planned for {} {} ({} bytes), got {} bytes", name,
                              graph::dtype_name(graph().values[id].dtype),
                              graph::shape_text(graph().values[id].shape), plain_bytes(id),
                              plain.size());
    }
    executor->write(id, plain);
  }
};

std::unordered_map<std::string, ValueId> index_by_name(const graph::Graph& graph) {
  std::unordered_map<std::string, ValueId> index;
  for (std::size_t i = 0; i < graph.values.size(); ++i)
    index.emplace(graph.values[ValueId(i)].name, ValueId(i));
  return index;
}

float as_float(std::span<const std::byte> plain) {
  REPRISE_CHECK(plain.size() == sizeof(float), "a scalar of {} bytes", plain.size());
  float value = 0;
  std::memcpy(&value, plain.data(), sizeof(value));
  return value;
}

// A forward-only schedule that keeps everything it still needs and recomputes nothing.
schedule::Schedule forward_schedule(const graph::PreparedGraph& prepared) {
  PlanOptions options;
  options.planner = "keep_all";
  options.find_floor = false;
  auto planned = plan_step(prepared, options);
  REPRISE_CHECK(std::holds_alternative<PlannedTraining>(planned),
                "an unlimited budget was infeasible");
  return std::get<PlannedTraining>(std::move(planned)).step.schedule;
}

}  // namespace

struct Session::Impl {
  SessionOptions options;
  std::unique_ptr<kernels::Backend> backend;
  std::unique_ptr<runtime::Arena> arena;
  Side training;
  std::optional<Side> evaluation;
  std::size_t evaluation_index = 0;
  schedule::PlannedStep planned;
  PlanReport report;
  std::vector<Variable> variables;  // in name order
  std::vector<std::string> warnings;
  std::uint64_t steps = 0;
  // Training values of the states that evaluation changes; empty outside of an evaluation.
  std::map<std::string, std::vector<std::byte>> saved_states;
  bool evaluating = false;

  void list_variables();
  void write_initial_values(const models::Model& model);
  void add_evaluation(const std::vector<models::Model>& candidates);
  [[nodiscard]] Side& evaluation_side();
};

void Session::Impl::list_variables() {
  for (const graph::Value& value : training.graph().values) {
    if (!graph::is_persistent(value.role) || value.producer.valid()) continue;
    variables.push_back({value.name, value.dtype, value.shape, value.role});
  }
  std::sort(variables.begin(), variables.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
}

void Session::Impl::write_initial_values(const models::Model& model) {
  std::map<std::string, models::Model::Initializer> initializers(model.initializers.begin(),
                                                                 model.initializers.end());
  for (const Variable& variable : variables) {
    const auto found = initializers.find(variable.name);
    // Optimizer state is made by autodiff and starts from zeros; everything else is the model's to
    // say.
    REPRISE_CHECK(found != initializers.end() || variable.role == graph::Role::kOptimizerState,
                  "model '{}' does not say how '{}' starts", model.graph.name, variable.name);
    const auto initializer =
        found == initializers.end() ? models::Model::Initializer{} : found->second;
    const auto values = initial_values(initializer, variable.name,
                                       graph::element_count(variable.shape), options.seed);
    training.executor->write(training.find(variable.name, "value"),
                             std::as_bytes(std::span(values)));
  }
}

void Session::Impl::add_evaluation(const std::vector<models::Model>& candidates) {
  Bytes smallest = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    Side side;
    side.program =
        backend->prepare(graph::share_persistent_values(candidates[i].graph, training.graph()),
                         training.program.get());
    schedule::Schedule schedule = forward_schedule(side.program->prepared());
    if (schedule.arena_bytes > arena->bytes()) {
      smallest = i == 0 ? schedule.arena_bytes : std::min(smallest, schedule.arena_bytes);
      continue;
    }
    side.executor =
        std::make_unique<runtime::Executor>(*side.program, std::move(schedule), *arena,
                                            runtime::ExecutorOptions{.debug = options.debug});
    side.values = index_by_name(side.graph());
    evaluation = std::move(side);
    evaluation_index = i;
    return;
  }
  if (!candidates.empty()) {
    throw base::input_error(
        "evaluation needs {} bytes ({}) but training reserves {} ({}); raise the budget or train "
        "without evaluation",
        smallest, base::format_bytes(smallest), arena->bytes(), base::format_bytes(arena->bytes()));
  }
}

Side& Session::Impl::evaluation_side() {
  if (!evaluation) throw base::input_error("this session was made without an evaluation model");
  if (!evaluating) throw base::input_error("call begin_evaluation() first");
  return *evaluation;
}

Session::Session() : impl_(std::make_unique<Impl>()) {}
Session::~Session() = default;

std::variant<std::unique_ptr<Session>, planner::Infeasible> Session::create(
    const models::Model& training, const std::vector<models::Model>& evaluations,
    const graph::TrainingOptions& options, const SessionOptions& session_options) {
  std::unique_ptr<Session> session(new Session());
  Impl& impl = *session->impl_;
  impl.options = session_options;
  graph::TrainingGraph training_graph = graph::make_training_graph(training.graph, options);
  impl.warnings = std::move(training_graph.warnings);
  impl.backend =
      kernels::make_backend(session_options.device, {.threads = session_options.threads});
  impl.training.program = impl.backend->prepare(training_graph.graph);

  auto planned = plan_step(impl.training.program->prepared(), session_options.plan);
  if (auto* infeasible = std::get_if<planner::Infeasible>(&planned)) return std::move(*infeasible);
  auto& plan = std::get<PlannedTraining>(planned);
  impl.report = std::move(plan.report);
  impl.planned = std::move(plan.step);

  impl.arena = std::make_unique<runtime::Arena>(impl.planned.schedule.arena_bytes);
  impl.training.executor = std::make_unique<runtime::Executor>(
      *impl.training.program, impl.planned.schedule, *impl.arena,
      runtime::ExecutorOptions{.debug = session_options.debug});
  impl.training.values = index_by_name(impl.training.graph());
  impl.list_variables();
  impl.write_initial_values(training);
  impl.add_evaluation(evaluations);
  return session;
}

void Session::set_input(std::string_view name, std::span<const std::byte> plain) {
  impl_->training.write_input(name, plain);
}

float Session::step() {
  if (impl_->evaluating)
    throw base::input_error("call end_evaluation() before the next training step");
  impl_->training.executor->run({.seed = impl_->options.seed, .step = impl_->steps});
  ++impl_->steps;
  return as_float(impl_->training.read(impl_->training.graph().loss));
}

std::vector<std::byte> Session::read(std::string_view name) const {
  const ValueId id = impl_->training.find(name, "value");
  return impl_->training.read(id);
}

void Session::write(std::string_view name, std::span<const std::byte> plain) {
  const ValueId id = impl_->training.find(name, "persistent value");
  const graph::Value& value = impl_->training.graph().values[id];
  if (!graph::is_persistent(value.role)) {
    throw base::input_error("'{}' is no persistent value but {}", name,
                            graph::role_name(value.role));
  }
  if (static_cast<Bytes>(plain.size()) != impl_->training.plain_bytes(id)) {
    throw base::input_error("'{}' has shape {} ({} bytes), got {} bytes", name,
                            graph::shape_text(value.shape), impl_->training.plain_bytes(id),
                            plain.size());
  }
  impl_->training.executor->write(id, plain);
}

void Session::reset_carried_states() {
  const graph::Graph& graph = impl_->training.graph();
  for (const graph::Update& update : graph.updates) {
    const NodeId producer = graph.values[update.final].producer;
    if (graph.nodes[producer].op != graph::OpKind::kAssign) continue;
    const auto bytes = static_cast<std::size_t>(impl_->training.plain_bytes(update.initial));
    impl_->training.executor->write(update.initial, std::vector<std::byte>(bytes));
  }
}

bool Session::can_evaluate() const {
  return impl_->evaluation.has_value();
}
std::size_t Session::evaluation_index() const {
  return impl_->evaluation_index;
}

void Session::begin_evaluation() {
  if (impl_->evaluating) throw base::input_error("an evaluation is already under way");
  impl_->evaluating = true;
  Side& side = impl_->evaluation_side();
  if (impl_->options.debug) {  // debug executors have arenas of their own
    for (const Variable& variable : impl_->variables) {
      side.executor->write(side.find(variable.name, "value"), read(variable.name));
    }
  }
  for (const graph::Update& update : side.graph().updates) {
    const std::string& name = side.graph().values[update.initial].name;
    auto training_value = read(name);
    side.executor->write(update.initial, std::vector<std::byte>(training_value.size()));
    impl_->saved_states.emplace(name, std::move(training_value));
  }
}

void Session::set_evaluation_input(std::string_view name, std::span<const std::byte> plain) {
  impl_->evaluation_side().write_input(name, plain);
}

Session::Evaluation Session::evaluate() {
  Side& side = impl_->evaluation_side();
  side.executor->run({.seed = impl_->options.seed, .step = impl_->steps});
  Evaluation result;
  result.loss = as_float(side.read(side.graph().loss));
  const auto correct = side.read(side.find("correct", "output"));
  std::int32_t count = 0;
  REPRISE_CHECK(correct.size() == sizeof(count), "'correct' has {} bytes", correct.size());
  std::memcpy(&count, correct.data(), sizeof(count));
  result.correct = count;
  return result;
}

void Session::end_evaluation() {
  (void)impl_->evaluation_side();
  impl_->evaluating = false;
  for (const auto& [name, value] : impl_->saved_states) write(name, value);
  impl_->saved_states.clear();
}

std::uint64_t Session::steps_done() const {
  return impl_->steps;
}
void Session::set_steps_done(std::uint64_t steps) {
  impl_->steps = steps;
}
const PlanReport& Session::report() const {
  return impl_->report;
}
const schedule::PlannedStep& Session::planned() const {
  return impl_->planned;
}
Bytes Session::arena_bytes() const {
  return impl_->arena->bytes();
}
const std::vector<Session::Variable>& Session::variables() const {
  return impl_->variables;
}
const std::vector<std::string>& Session::warnings() const {
  return impl_->warnings;
}

Bytes Session::peak_bytes_measured() const {
  const Bytes training = impl_->training.executor->peak_bytes_measured();
  return impl_->evaluation ? std::max(training, impl_->evaluation->executor->peak_bytes_measured())
                           : training;
}

std::uint64_t Session::state_hash() const {
  Fnv1a hash;
  for (const Variable& variable : impl_->variables) {
    hash.add(variable.name);
    hash.add(read(variable.name));
  }
  return hash.value();
}

}  // namespace reprise::api
