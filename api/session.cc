#include "api/session.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <set>
#include <utility>

#include "api/device_group.h"
#include "api/hash.h"
#include "api/initialize.h"
#include "api/plan.h"
#include "api/replicas.h"
#include "api/side.h"
#include "base/error.h"
#include "graph/evaluation.h"
#include "graph/synchronise.h"
#include "planner/lowering.h"
#include "runtime/arena.h"

namespace reprise::api {
namespace {

using graph::NodeId;
using graph::ValueId;

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
  std::shared_ptr<const kernels::Backend> backend;
  std::unique_ptr<runtime::Arena> arena;
  std::unique_ptr<kernels::DeviceSums> device_sums;
  Side training;  // goes before the sums that its recorded step holds
  std::optional<Side> evaluation;
  std::size_t evaluation_index = 0;
  schedule::PlannedStep planned;
  PlanReport report;
  std::vector<Variable> variables;  // in name order
  std::vector<std::string> warnings;
  std::uint64_t steps = 0;
  std::int64_t micro_batches = 1;
  // Training values of the states that evaluation changes; empty outside of an evaluation.
  std::map<std::string, std::vector<std::byte>, std::less<>> saved_states;
  bool evaluating = false;
  bool under_way = false;      // between the halves of a step
  float loss = 0;              // of the last step
  bool outputs_there = false;  // those of the last training step
  ValueId norm;                // of all gradients; invalid where the step makes none
  std::optional<float> gradient_norm;
  std::vector<std::byte> entry_copy;  // recoverable: what the step started from
  // By name of the values that a step updates: whether a failed step left it as nobody knows.
  // Filled ahead, since a failure is no time to allocate.
  std::map<std::string, bool, std::less<>> lost;

  [[nodiscard]] bool is_replica() const { return options.ranks && options.ranks->world_size() > 1; }
  void list_variables();
  void write_initial_values(const models::Model& model);
  void add_evaluation(const std::vector<models::Model>& candidates);
  [[nodiscard]] Side& evaluation_side();
  void require_state() const;
  void after_failed_step();
  void read_results();
};

void Session::Impl::list_variables() {
  const graph::Graph& graph = training.graph();
  for (const ValueId output : graph.outputs) {
    if (graph.values[output].name == graph::kGradientNorm) norm = output;
  }
  std::set<std::string_view> carried;
  for (const graph::Update& update : graph.updates) {
    const NodeId producer = graph.values[update.final].producer;
    if (graph.nodes[producer].op == graph::OpKind::kAssign)
      carried.insert(graph.values[update.initial].name);
  }
  for (const graph::Value& value : graph.values) {
    if (!graph::is_persistent(value.role) || value.producer.valid()) continue;
    variables.push_back(
        {value.name, value.dtype, value.shape, value.role, carried.contains(value.name)});
  }
  std::sort(variables.begin(), variables.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  for (const graph::Update& update : graph.updates)
    lost.emplace(graph.values[update.initial].name, false);
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
    training.executor().write(training.find(variable.name, "value"),
                              std::as_bytes(std::span(values)));
  }
}

void Session::Impl::add_evaluation(const std::vector<models::Model>& candidates) {
  Bytes smallest = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    auto program = backend->prepare(
        graph::share_persistent_values(candidates[i].graph, training.graph()), &training.program());
    schedule::Schedule schedule = forward_schedule(program->prepared());
    if (schedule.arena_bytes > arena->bytes()) {
      smallest = i == 0 ? schedule.arena_bytes : std::min(smallest, schedule.arena_bytes);
      continue;
    }
    auto executor = std::make_unique<runtime::Executor>(
        *program, std::move(schedule), *arena,
        runtime::ExecutorOptions{.debug = options.debug, .device = backend->memory()});
    evaluation.emplace(std::move(program), std::move(executor));
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

void Session::Impl::require_state() const {
  for (const auto& [name, is_lost] : lost) {
    if (!is_lost) continue;
    throw base::input_error(
        "the last step failed after it had changed part of the state, so '{}' is not known; write "
        "all values that a step updates (load a snapshot) before going on, or make the session "
        "recoverable",
        name);
  }
}

void Session::Impl::after_failed_step() {
  if (options.recoverable) {
    training.executor().restore_entry(entry_copy);
    return;
  }
  training.forget_inputs();
  if (!training.executor().state_lost()) return;
  for (auto& [name, is_lost] : lost) is_lost = true;
}

std::shared_ptr<const kernels::Backend> make_backend(const SessionOptions& options) {
  if (options.backend) return options.backend;
  return kernels::make_backend(options.device, {.threads = options.threads,
                                                .ordinal = options.ordinal,
                                                .tensor_floats = options.tensor_floats,
                                                .record_steps = options.record_steps});
}

// Waits for the step.
void Session::Impl::read_results() {
  if (norm.valid()) gradient_norm = training.read_scalar(norm);
  loss = training.read_scalar(training.graph().loss);
}

Session::Session() : impl_(std::make_unique<Impl>()) {}
Session::~Session() = default;

std::variant<std::unique_ptr<Session>, planner::Infeasible> Session::create(
    const models::Model& training, const std::vector<models::Model>& evaluations,
    const graph::TrainingOptions& options, const SessionOptions& session_options) {
  std::unique_ptr<Session> session(new Session());
  Impl& impl = *session->impl_;
  impl.options = session_options;
  graph::TrainingOptions training_options = options;
  impl.micro_batches = options.micro_batches;
  if (impl.is_replica()) {
    if (!training_options.ranks)
      training_options.ranks =
          graph::TrainingOptions::Ranks{.bucket_bytes = session_options.bucket_bytes};
    if (session_options.synchronise_batch_norm)
      training_options.ranks->batch_norm_over = session_options.ranks->world_size();
  }
  graph::TrainingGraph training_graph =
      graph::make_training_graph(training.graph, training_options);
  impl.warnings = std::move(training_graph.warnings);
  impl.backend = make_backend(session_options);
  auto program = impl.backend->prepare(training_graph.graph);

  graph::PreparedGraph prepared = program->prepared();
  const CostOrigin costs = choose_costs(session_options.costs, *impl.backend, prepared);
  if (!costs.note.empty()) impl.warnings.push_back(costs.note);
  PlanOptions plan_options = session_options.plan;
  if (plan_options.threads == 0) plan_options.threads = session_options.threads;
  const auto& shared = session_options.shared_plan;
  auto planned = shared ? shared->plan(prepared, plan_options, costs)
                        : plan_step(prepared, plan_options, costs);
  if (auto* infeasible = std::get_if<planner::Infeasible>(&planned)) return std::move(*infeasible);
  auto& plan = std::get<PlannedTraining>(planned);
  impl.report = std::move(plan.report);
  impl.planned = std::move(plan.step);
  if (impl.is_replica()) {
    require_same_plan(impl.planned, session_options.bucket_bytes, *session_options.ranks);
    impl.device_sums = join_device_group(*impl.backend, *session_options.ranks);
  }

  impl.arena =
      std::make_unique<runtime::Arena>(impl.planned.schedule.arena_bytes, impl.backend->memory());
  auto executor = std::make_unique<runtime::Executor>(
      *program, impl.planned.schedule, *impl.arena,
      runtime::ExecutorOptions{
          .debug = session_options.debug,
          .communicator = impl.is_replica() ? session_options.ranks.get() : nullptr,
          .bucket_bytes = session_options.bucket_bytes,
          .device = impl.backend->memory(),
          .device_sums = impl.device_sums.get()});
  impl.training = Side(std::move(program), std::move(executor));
  impl.list_variables();
  impl.write_initial_values(training);
  impl.add_evaluation(evaluations);
  if (impl.is_replica()) copy_from_first_rank(*session, *session_options.ranks);
  return session;
}

void Session::set_input(std::string_view name, std::span<const std::byte> plain) {
  if (impl_->evaluating)
    throw base::input_error("call end_evaluation() before setting inputs of training");
  impl_->training.write_input(name, plain);
  impl_->outputs_there = false;  // their bytes may be the input's
}

void Session::set_gradient_weight(float weight, std::int64_t micro_batch) {
  if (!impl_->is_replica() && impl_->micro_batches == 1) return;
  set_input(graph::micro_batch_name(micro_batch, graph::kGradientWeight),
            std::as_bytes(std::span(&weight, 1)));
}

void Session::set_batch_parts(std::span<const std::int64_t> items, std::int64_t micro_batch) {
  const std::string name = graph::micro_batch_name(micro_batch, graph::kBatchParts);
  if (!impl_->is_replica() || !impl_->training.has(name)) return;
  const runtime::comm::Communicator& ranks = *impl_->options.ranks;
  if (items.size() != static_cast<std::size_t>(ranks.world_size())) {
    throw base::input_error("batch parts: {} numbers for {} ranks", items.size(),
                            ranks.world_size());
  }
  std::vector<std::int32_t> parts{ranks.rank()};
  for (const std::int64_t each : items) parts.push_back(static_cast<std::int32_t>(each));
  set_input(name, std::as_bytes(std::span(parts)));
}

float Session::step(runtime::StepRecord* record) {
  start_step(record);
  return finish_step();
}

void Session::start_step(runtime::StepRecord* record) {
  Impl& impl = *impl_;
  if (impl.evaluating)
    throw base::input_error("call end_evaluation() before the next training step");
  if (impl.under_way) throw base::input_error("call finish_step() before the next training step");
  impl.require_state();
  impl.training.require_inputs();
  impl.outputs_there = false;
  // Rank 0 draws as one rank alone would.
  const std::uint64_t rank =
      impl.is_replica() ? static_cast<std::uint64_t>(impl.options.ranks->rank()) : 0;
  const std::uint64_t seed = impl.options.seed ^ rank * 0x9E3779B97F4A7C15ULL;
  if (impl.options.recoverable) impl.training.executor().capture_entry(impl.entry_copy);
  try {
    impl.training.executor().run({.seed = seed, .step = impl.steps}, record);
    if (!works_ahead()) impl.read_results();
  } catch (...) {
    impl.after_failed_step();
    throw;
  }
  impl.training.forget_inputs();
  impl.under_way = true;
  impl.outputs_there = true;
}

float Session::finish_step() {
  Impl& impl = *impl_;
  if (!impl.under_way) throw base::input_error("call start_step() first");
  impl.under_way = false;
  try {
    if (works_ahead()) impl.read_results();
  } catch (...) {  // how far the device got nobody knows
    for (auto& [name, is_lost] : impl.lost) is_lost = true;
    throw;
  }
  ++impl.steps;
  return impl.loss;
}

bool Session::works_ahead() const {
  return arena_is_on_device() && !impl_->options.debug && !impl_->options.recoverable;
}

std::optional<float> Session::gradient_norm() const {
  return impl_->gradient_norm;
}

std::vector<std::byte> Session::read(std::string_view name) const {
  const ValueId id = impl_->training.find(name, "value");
  const bool persistent = graph::is_persistent(impl_->training.graph().values[id].role);
  if (!persistent && !impl_->outputs_there) {
    throw base::input_error(
        "'{}' can be read after a training step, until the next input is set or an evaluation "
        "begins",
        name);
  }
  if (const auto saved = impl_->saved_states.find(name); saved != impl_->saved_states.end())
    return saved->second;
  if (const auto found = impl_->lost.find(name); found != impl_->lost.end() && found->second)
    impl_->require_state();
  return impl_->training.read(id);
}

void Session::write(std::string_view name, std::span<const std::byte> plain) {
  if (impl_->evaluating) throw base::input_error("call end_evaluation() before writing '{}'", name);
  const ValueId id = impl_->training.find(name, "persistent value");
  const graph::Value& value = impl_->training.graph().values[id];
  if (!graph::is_persistent(value.role)) {
    throw base::input_error("'{}' is no persistent value but {}", name,
                            graph::role_name(value.role));
  }
  if (plain.size() != impl_->training.plain_bytes(id)) {
    throw base::input_error("'{}' has shape {} ({} bytes), got {} bytes", name,
                            graph::shape_text(value.shape), impl_->training.plain_bytes(id),
                            plain.size());
  }
  impl_->training.executor().write(id, plain);
  if (const auto found = impl_->lost.find(name); found != impl_->lost.end()) found->second = false;
}

void Session::reset_carried_states() {
  for (const Variable& variable : impl_->variables) {
    if (!variable.carried) continue;
    const ValueId id = impl_->training.find(variable.name, "value");
    write(variable.name, std::vector<std::byte>(impl_->training.plain_bytes(id)));
  }
}

bool Session::can_evaluate() const {
  return impl_->evaluation.has_value();
}
std::size_t Session::evaluation_index() const {
  return impl_->evaluation_index;
}

void Session::begin_evaluation() {
  Impl& impl = *impl_;
  if (impl.evaluating) throw base::input_error("an evaluation is already under way");
  if (!impl.evaluation)
    throw base::input_error("this session was made without an evaluation model");
  impl.require_state();
  Side& side = *impl.evaluation;
  if (impl.options.debug) {  // debug executors have arenas of their own
    for (const Variable& variable : impl.variables) {
      side.executor().write(side.find(variable.name, "value"), read(variable.name));
    }
  }
  // Everything is saved before the first is changed.
  decltype(impl.saved_states) saved;
  for (const graph::Update& update : side.graph().updates) {
    const std::string& name = side.graph().values[update.initial].name;
    saved.emplace(name, read(name));
  }
  impl.saved_states = std::move(saved);
  impl.evaluating = true;
  impl.outputs_there = false;
  impl.training.forget_inputs();  // evaluation runs over their bytes
  side.forget_inputs();
  for (const graph::Update& update : side.graph().updates) {
    side.executor().write(update.initial, std::vector<std::byte>(side.plain_bytes(update.initial)));
  }
}

void Session::set_evaluation_input(std::string_view name, std::span<const std::byte> plain) {
  impl_->evaluation_side().write_input(name, plain);
}

Session::Evaluation Session::evaluate() {
  Side& side = impl_->evaluation_side();
  side.require_inputs();
  side.forget_inputs();  // also when it fails
  side.executor().run({.seed = impl_->options.seed, .step = impl_->steps});
  Evaluation result;
  result.loss = side.read_scalar(side.graph().loss);
  const auto correct = side.read(side.find("correct", "output"));
  std::int32_t count = 0;
  REPRISE_CHECK(correct.size() == sizeof(count), "'correct' has {} bytes", correct.size());
  std::memcpy(&count, correct.data(), sizeof(count));
  result.correct = count;
  return result;
}

void Session::end_evaluation() {
  (void)impl_->evaluation_side();
  for (const auto& [name, value] : impl_->saved_states) {
    impl_->training.executor().write(impl_->training.find(name, "value"), value);
  }
  impl_->saved_states.clear();
  impl_->evaluating = false;
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
bool Session::arena_is_on_device() const {
  return impl_->backend->memory() != nullptr;
}
Bytes Session::device_overhead_bytes() const {
  const Bytes of_sums = impl_->device_sums ? impl_->device_sums->reserved_bytes() : 0;
  return impl_->backend->overhead_bytes() + of_sums;
}
const std::vector<Session::Variable>& Session::variables() const {
  return impl_->variables;
}
const std::vector<std::string>& Session::warnings() const {
  return impl_->warnings;
}

Bytes Session::peak_bytes_measured() const {
  const Bytes training = impl_->training.executor().peak_bytes_measured();
  return impl_->evaluation ? std::max(training, impl_->evaluation->executor().peak_bytes_measured())
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
