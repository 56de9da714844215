#include "api/profile.h"

#include <algorithm>
#include <chrono>
#include <ctime>

#include "api/data_source.h"
#include "api/micro_batches.h"
#include "base/error.h"
#include "graph/op.h"
#include "kernels/backend.h"
#include "runtime/memory_info.h"

namespace reprise::api {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Hands out programs that are timed, and remembers the last one.
class TimedBackend final : public kernels::Backend {
 public:
  explicit TimedBackend(std::shared_ptr<const kernels::Backend> inner) : inner_(std::move(inner)) {}

  [[nodiscard]] std::string_view name() const override { return inner_->name(); }
  [[nodiscard]] std::string description() const override { return inner_->description(); }
  [[nodiscard]] std::shared_ptr<kernels::DeviceMemory> memory() const override {
    return inner_->memory();
  }
  [[nodiscard]] Bytes overhead_bytes() const override { return inner_->overhead_bytes(); }
  [[nodiscard]] std::unique_ptr<kernels::Program> prepare(
      const graph::Graph& graph, const kernels::Program* like) const override {
    auto timed = std::make_unique<runtime::TimedProgram>(inner_->prepare(graph, like));
    last_ = timed.get();
    return timed;
  }
  // Owned by who asked for it.
  [[nodiscard]] runtime::TimedProgram& last() const { return *last_; }

 private:
  std::shared_ptr<const kernels::Backend> inner_;
  mutable runtime::TimedProgram* last_ = nullptr;
};

// Keeps everything, or as much as fits into the memory that is there.
std::unique_ptr<Session> make_session(const models::Model& model, const TrainOptions& options,
                                      std::shared_ptr<const TimedBackend> backend) {
  const Bytes there = backend->memory() == nullptr ? runtime::available_memory_bytes()
                                                   : backend->memory()->available_bytes();
  const Bytes available = there / 10 * 9;
  SessionOptions session = options.session;
  session.backend = std::move(backend);
  session.costs = {};
  session.plan.find_floor = false;
  session.plan.budget = {.kind = Budget::Kind::kBytes, .bytes = std::max<Bytes>(1, available)};
  Bytes floor = 0;
  for (const char* planner : {"keep_all", "auto"}) {
    session.plan.planner = planner;
    auto created = Session::create(model, {},
                                   {.optimizer = options.optimizer,
                                    .micro_batches = options.micro_batches,
                                    .updates_last = options.updates_last},
                                   session);
    if (auto* made = std::get_if<std::unique_ptr<Session>>(&created)) return std::move(*made);
    floor = std::get<planner::Infeasible>(created).floor;
  }
  throw base::device_error(
      "profiling {} runs a training step, which needs {} bytes ({}); {} bytes ({}) are available: "
      "use a smaller --batch",
      model.graph.name, floor, base::format_bytes(floor), available, base::format_bytes(available));
}

void sort_by_share(std::vector<ProfileReport::Node>& nodes) {
  std::stable_sort(nodes.begin(), nodes.end(),
                   [](const auto& a, const auto& b) { return a.ns * a.nodes > b.ns * b.nodes; });
}

void add_measures(const runtime::TimedProgram& timed, ProfileReport& report) {
  const graph::PreparedGraph& prepared = timed.prepared();
  const auto now = static_cast<std::int64_t>(std::time(nullptr));
  double disturbed_ns = 0;
  for (const auto& measured : timed.measured()) {
    report.table.nodes[measured.key] = {.ns = measured.time.ns, .measured_at = now};
    const graph::PreparedNode& booked = prepared.nodes[measured.example];
    report.nodes.push_back(
        {.key = measured.key,
         .op = std::string(graph::op_info(prepared.graph.nodes[measured.example].op).name),
         .nodes = measured.nodes,
         .ns = measured.time.ns,
         .runs = measured.time.runs,
         .flops = booked.flops,
         .bytes = booked.bytes_moved});
    const std::int64_t all_ns = measured.time.ns * measured.nodes;
    report.total_ns += all_ns;
    disturbed_ns += static_cast<double>(all_ns) * static_cast<double>(measured.time.disturbed) /
                    static_cast<double>(measured.time.runs);
  }
  if (report.total_ns > 0) {
    report.disturbed_part = disturbed_ns / static_cast<double>(report.total_ns);
  }
  sort_by_share(report.nodes);
}

}  // namespace

ProfileReport profile(const TrainOptions& options, const ProfileOptions& profile_options,
                      const std::function<void(std::int64_t, std::int64_t)>& progress,
                      const std::atomic<bool>* stop) {
  const auto begin = Clock::now();
  models::ModelOptions model_options = options.model_options;
  TrainOptions training_only = options;
  training_only.evaluate = false;
  const Shard shard{.micro_batches = options.micro_batches};
  const std::unique_ptr<DataSource> source = open_data(training_only, model_options, shard);
  const auto backend = std::make_shared<const TimedBackend>(make_backend(options.session));
  const models::Model model =
      models::make_model(options.model, options_of_micro_batch(model_options, shard));
  require_micro_batches(model, model_options.batch, shard);
  const auto session = make_session(model, options, backend);
  runtime::TimedProgram& timed = backend->last();

  ProfileReport report;
  std::vector<std::int64_t> step_ns;
  const auto first_step = Clock::now();
  for (std::int64_t i = 0; i <= profile_options.repeats; ++i) {
    const bool over =
        seconds_since(first_step) > profile_options.seconds || (stop != nullptr && stop->load());
    if (i >= 2 && over) break;
    source->fill(*session, 0, i % source->steps_per_epoch());
    for (std::int64_t k = 0; k < options.micro_batches; ++k)
      session->set_gradient_weight(source->gradient_weight(k), k);
    timed.record(i > 0);  // the first step touches fresh pages and fills the libraries' caches
    const auto before = Clock::now();
    (void)session->step();
    if (i > 0) step_ns.push_back(static_cast<std::int64_t>(seconds_since(before) * 1e9));
    if (progress) progress(i + 1, profile_options.repeats + 1);
  }
  report.table.device = cost_device(*backend);
  add_measures(timed, report);
  report.steps = static_cast<std::int64_t>(step_ns.size());
  report.ms_per_step = static_cast<double>(runtime::typical_time(std::move(step_ns)).ns) * 1e-6;
  report.arena_bytes = session->arena_bytes();
  report.planner = session->report().planner;
  report.seconds = seconds_since(begin);
  return report;
}

}  // namespace reprise::api
