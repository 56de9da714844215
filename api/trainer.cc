#include "api/trainer.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>
#include <utility>

#include "api/carried_state.h"
#include "api/chunk.h"
#include "api/data_source.h"
#include "api/divergence.h"
#include "api/evaluation.h"
#include "api/micro_batches.h"
#include "api/replicas.h"
#include "api/resume.h"
#include "api/save_folder.h"
#include "api/trace.h"
#include "base/error.h"
#include "runtime/memory_info.h"

namespace reprise::api {
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

// Of all but the first step, which warms caches and is no measure of the rest.
double median_step(std::vector<double> values) {
  if (values.size() > 1) values.erase(values.begin());
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A decaying schedule without a period decays over the whole run.
void complete_rate(graph::Optimizer& optimizer, std::int64_t total_steps) {
  std::visit(
      [&](auto& attributes) {
        graph::LearningRate& rate = attributes.rate;
        if (rate.period_steps != 0 || rate.kind == graph::LearningRate::Kind::kConstant) return;
        const std::int64_t steps = std::max<std::int64_t>(1, total_steps - rate.warmup_steps);
        rate.period_steps = rate.kind == graph::LearningRate::Kind::kCosine
                                ? steps
                                : std::max<std::int64_t>(1, steps / 3);
      },
      optimizer);
}

bool skips_nonfinite(const graph::Optimizer& optimizer) {
  return std::visit([](const auto& attributes) { return attributes.skip_nonfinite; }, optimizer);
}

// One run: owns what lives as long as the loop.
class Run {
 public:
  Run(const TrainOptions& options, const TrainHooks& hooks)
      : options_(options), hooks_(hooks), shard_{.micro_batches = options.micro_batches} {
    if (options.session.ranks && options.session.ranks->world_size() > 1) {
      ranks_ = options.session.ranks.get();
      shard_ = {.rank = ranks_->rank(),
                .ranks = ranks_->world_size(),
                .micro_batches = options.micro_batches};
      if (options_.choose_chunk) {
        throw base::input_error("--chunk auto: {} ranks must agree on a length; give a number",
                                shard_.ranks);
      }
    }
  }

  // "after step 7", for what goes wrong there.
  [[nodiscard]] std::string where() const {
    return session_ ? fmt::format("after step {}", done()) : "before the first step";
  }

  std::variant<TrainReport, planner::Infeasible> go() {
    std::optional<Checkpoint> checkpoint;
    if (options_.resume && is_first()) checkpoint = load_or_advise(*options_.resume);
    model_options_ = options_.model_options;
    source_ = open_data(options_, model_options_, shard_);
    local_options_ = options_of_micro_batch(model_options_, shard_);
    total_steps_ =
        options_.steps > 0 ? options_.steps : options_.epochs * source_->steps_per_epoch();
    complete_rate(options_.optimizer, total_steps_);
    if (checkpoint && options_.choose_chunk) set_chunk(chunk_of(*checkpoint));
    // Planning may take long, so what can be refused is refused before it.
    if (checkpoint || !options_.save_folder.empty()) {
      settings_ = settings_of(options_, model_options_, source_->fingerprint());
    }
    if (checkpoint) {
      require_resumable(*checkpoint, options_, model_options_, settings_, total_steps_);
      if (const auto warning = untold_data(*checkpoint)) warn(*warning);
      if (const auto warning = other_ranks(*checkpoint, shard_.ranks)) warn(*warning);
    }
    if (!options_.save_folder.empty() && is_first()) folder_.emplace(options_.save_folder);
    if (options_.choose_chunk && !checkpoint) {
      if (auto infeasible = take_best_chunk()) return std::move(*infeasible);
    }
    if (auto infeasible = make_session()) return std::move(*infeasible);
    report_.plan = session_->report();
    report_.plan.chunk = model_options_.chunk;
    report_.plan.micro_batches = options_.micro_batches;
    for (const std::string& warning : session_->warnings()) warn(warning);
    if (folder_) {
      if (const auto warning = folder_->warning(options_.resume)) warn(*warning);
    }
    if (hooks_.planned) hooks_.planned(report_.plan);
    if (options_.resume) resume(checkpoint ? &*checkpoint : nullptr);
    loop();
    finish();
    return std::move(report_);
  }

 private:
  [[nodiscard]] std::int64_t done() const {
    return static_cast<std::int64_t>(session_->steps_done());
  }
  [[nodiscard]] std::int64_t epoch() const { return done() / source_->steps_per_epoch(); }
  [[nodiscard]] bool stop_asked() const { return hooks_.stop != nullptr && hooks_.stop->load(); }
  // All ranks stop after the same step, in which they agree on it.
  [[nodiscard]] bool stopped() const { return ranks_ != nullptr ? stop_agreed_ : stop_asked(); }
  [[nodiscard]] bool is_first() const { return shard_.rank == 0; }
  [[nodiscard]] float loss_of_all(float own, const std::vector<float>& weights);
  void note(const std::string& text) const {
    if (hooks_.note) hooks_.note(text);
  }

  void warn(const std::string& text) {
    report_.warnings.push_back(text);
    note("warning: " + text);
  }

  void set_chunk(std::int64_t chunk) { model_options_.chunk = local_options_.chunk = chunk; }
  std::optional<planner::Infeasible> take_best_chunk();
  std::optional<planner::Infeasible> make_session();
  void resume(const Checkpoint* checkpoint);
  void loop();
  void step();
  void fill(std::int64_t steps);
  [[nodiscard]] bool may_fill_ahead() const;
  [[nodiscard]] bool is_traced() const;
  void trace(const runtime::StepRecord& record);
  void evaluate();
  [[nodiscard]] bool skipped(float loss);
  void save();
  void finish();

  TrainOptions options_;
  const TrainHooks& hooks_;
  models::ModelOptions model_options_;            // of all ranks together
  models::ModelOptions local_options_;            // of one micro-batch of this one
  runtime::comm::Communicator* ranks_ = nullptr;  // null for one alone
  Shard shard_;
  bool stop_agreed_ = false;
  RunSettings settings_;  // where the run saves or resumes
  std::unique_ptr<DataSource> source_;
  std::unique_ptr<Session> session_;
  std::int64_t total_steps_ = 0;
  std::optional<SaveFolder> folder_;
  std::int64_t saved_at_ = -1;
  std::int64_t evaluated_at_ = -1;
  std::vector<float> weights_;  // of the inputs that are set: by micro-batch
  bool filled_ahead_ = false;   // the next step's inputs are set
  std::vector<double> step_ms_, data_ms_;
  std::int64_t skipped_in_a_row_ = 0;
  TrainReport report_;
};

std::optional<planner::Infeasible> Run::take_best_chunk() {
  auto outcome = choose_chunk(options_);
  if (auto* infeasible = std::get_if<planner::Infeasible>(&outcome)) return std::move(*infeasible);
  adopt(std::get<ChunkChoice>(outcome), options_);
  set_chunk(options_.model_options.chunk);
  if (!settings_.empty()) settings_ = settings_of(options_, model_options_, source_->fingerprint());
  return std::nullopt;
}

std::optional<planner::Infeasible> Run::make_session() {
  const models::Model model = models::make_model(options_.model, local_options_);
  require_even_ranks(model, model_options_.batch, shard_, options_.session.synchronise_batch_norm);
  require_micro_batches(model, model_options_.batch, shard_,
                        options_.session.synchronise_batch_norm);
  const bool sequence = model_options_.seq_len > 0;
  std::vector<models::Model> evaluations;
  std::vector<models::ModelOptions> tried;
  models::ModelOptions evaluated = local_options_;
  // Streams of a text are those of the rank: carried state has a row for each.
  if (sequence) evaluated.batch = shard_.planned_by_rank(model_options_.batch);
  if (options_.evaluate)
    evaluations = evaluation_candidates(options_.model, evaluated, sequence, tried);
  auto created = Session::create(model, evaluations,
                                 {.optimizer = options_.optimizer,
                                  .micro_batches = options_.micro_batches,
                                  .updates_last = options_.updates_last},
                                 options_.session);
  if (auto* infeasible = std::get_if<planner::Infeasible>(&created)) return std::move(*infeasible);
  session_ = std::get<std::unique_ptr<Session>>(std::move(created));
  if (session_->can_evaluate()) source_->set_evaluation(tried[session_->evaluation_index()]);
  return std::nullopt;
}

// Rank 0 alone has the checkpoint.
void Run::resume(const Checkpoint* checkpoint) {
  if (checkpoint != nullptr) restore_checkpoint(*checkpoint, *session_, shard_.ranks);
  if (ranks_ != nullptr) {
    copy_from_first_rank(*session_, *ranks_);
    scatter_carried_states(checkpoint != nullptr ? &checkpoint->snapshot : nullptr,
                           model_options_.batch, shard_.of_rank(), *session_, *ranks_);
  }
  report_.resumed_from = done();
  saved_at_ = done();
  note(fmt::format("resumed from step {}", done()));
}

void Run::loop() {
  while (done() < total_steps_ && !stopped()) {
    step();
    if (ranks_ != nullptr && options_.compare_every > 0 && done() % options_.compare_every == 0)
      require_same_replicas(*session_, *ranks_);
    const bool epoch_ended = done() % source_->steps_per_epoch() == 0;
    if (epoch_ended) evaluate();
    const bool due = options_.save_every > 0 ? done() % options_.save_every == 0 : epoch_ended;
    if (due) save();
  }
}

void Run::step() {
  const auto begin = Clock::now();
  const std::int64_t at_epoch = epoch();
  if (!filled_ahead_) fill(done());
  filled_ahead_ = false;
  const std::vector<float> weights = weights_;  // those of this step
  const double data_ms = milliseconds_since(begin);
  const bool traced = is_traced();
  runtime::StepRecord record;
  session_->start_step(traced ? &record : nullptr);
  if (session_->works_ahead() && may_fill_ahead()) {
    fill(done() + 1);
    filled_ahead_ = true;
  }
  const float loss = loss_of_all(session_->finish_step(), weights);
  const double all_ms = milliseconds_since(begin);
  if (traced) trace(record);
  if (!skipped(loss)) require_finite_loss(options_, *session_, loss, total_steps_);
  report_.losses.push_back(loss);
  data_ms_.push_back(data_ms);
  step_ms_.push_back(all_ms - data_ms);
  if (!hooks_.stepped) return;
  hooks_.stepped({.step = done(),
                  .total_steps = total_steps_,
                  .epoch = at_epoch,
                  .loss = loss,
                  .items_per_second = static_cast<double>(source_->items_per_step()) * 1e3 / all_ms,
                  .arena_bytes = session_->arena_bytes()});
}

// The inputs of the step behind `steps` of them.
void Run::fill(std::int64_t steps) {
  const std::int64_t per_epoch = source_->steps_per_epoch();
  const std::int64_t index = steps % per_epoch;
  if (index == 0) session_->reset_carried_states();
  source_->fill(*session_, steps / per_epoch, index);
  weights_.clear();
  for (std::int64_t k = 0; k < shard_.micro_batches; ++k) {
    weights_.push_back(source_->gradient_weight(k));
    session_->set_gradient_weight(weights_.back(), k);
    session_->set_batch_parts(shard_.counts(model_options_.batch, k), k);
  }
}

// Whether the next step's inputs may be set while this one runs: what comes between two epochs
// (evaluation, carried states) works on the same bytes.
bool Run::may_fill_ahead() const {
  const std::int64_t next = done() + 1;
  return next < total_steps_ && next % source_->steps_per_epoch() != 0;
}

// Whether the step that was just taken has changed nothing. All ranks have the same norm.
bool Run::skipped(float loss) {
  const std::optional<float> norm = session_->gradient_norm();
  if (norm) report_.grad_norm = static_cast<double>(*norm);
  if (!norm || std::isfinite(*norm)) {
    skipped_in_a_row_ = 0;
    return false;
  }
  const std::string what =
      fmt::format("the norm of all gradients of step {} of {} is {}, the loss {}", done(),
                  total_steps_, *norm, loss);
  if (!skips_nonfinite(options_.optimizer)) throw divergence(options_, what, done());
  ++report_.skipped_steps;
  note(fmt::format("skipped step {}: {}", done(), what));
  if (++skipped_in_a_row_ < kMostSkippedInARow) return true;
  throw divergence(
      options_, fmt::format("{} steps in a row were skipped; {}", skipped_in_a_row_, what), done());
}

// The first steps warm caches and pages.
bool Run::is_traced() const {
  const auto taken = static_cast<std::int64_t>(report_.losses.size());
  return !options_.trace_file.empty() && !report_.trace_file &&
         (taken == 2 || done() + 1 == total_steps_);
}

void Run::trace(const runtime::StepRecord& record) {
  const TraceLabels labels{.rank = static_cast<int>(shard_.rank),
                           .world_size = static_cast<int>(shard_.ranks),
                           .step = done()};
  try {
    report_.trace_file = write_trace(options_.trace_file, session_->planned(), record, labels);
  } catch (const base::Error& error) {  // no reason to lose the training
    warn(fmt::format("the trace of step {} was not written: {}", done(), error.what()));
    options_.trace_file.clear();
    return;
  }
  note(fmt::format("wrote {}: what ran when in step {}", report_.trace_file->string(), done()));
}

// The mean over all items of the global batch; and whether anybody wants to stop.
float Run::loss_of_all(float own, const std::vector<float>& weights) {
  if (ranks_ == nullptr) return own;
  // Those of micro-batches have been weighted by the step.
  const double weight = shard_.micro_batches > 1 ? 1.0 : static_cast<double>(weights.front());
  double sums[2] = {weight > 0 ? weight * static_cast<double>(own) : 0.0, stop_asked() ? 1.0 : 0.0};
  ranks_->all_reduce(std::span<double>(sums));
  stop_agreed_ = sums[1] > 0;
  return static_cast<float>(sums[0]);
}

void Run::evaluate() {
  if (!session_->can_evaluate() || evaluated_at_ == done()) return;
  const Scores scores = api::evaluate(*session_, *source_, shard_, ranks_);
  evaluated_at_ = done();
  report_.test_loss = scores.loss;
  report_.test_accuracy = scores.accuracy;
  if (!std::isfinite(*report_.test_loss)) {
    warn(fmt::format("the evaluation after step {} has a loss of {}", done(), *report_.test_loss));
  }
  if (hooks_.evaluated) {
    hooks_.evaluated({.step = done(),
                      .epoch = epoch(),
                      .accuracy = *report_.test_accuracy,
                      .loss = *report_.test_loss});
  }
}

void Run::save() {
  if (options_.save_folder.empty() || saved_at_ == done()) return;
  saved_at_ = done();
  require_finite_state(options_, *session_, total_steps_);
  RunFacts facts{
      .settings = settings_, .steps_per_epoch = source_->steps_per_epoch(), .ranks = shard_.ranks};
  if (ranks_ != nullptr) {
    facts.whole_states =
        gather_carried_states(*session_, model_options_.batch, shard_.of_rank(), *ranks_);
  }
  if (!is_first()) return;
  const auto file = save_checkpoint(options_, facts, *session_);
  note(fmt::format("saved {}", file.string()));
}

void Run::finish() {
  report_.stopped_early = done() < total_steps_;
  if (!stopped()) evaluate();
  if (ranks_ != nullptr) require_same_replicas(*session_, *ranks_);
  require_finite_state(options_, *session_, total_steps_);
  save();
  if (report_.stopped_early) {
    warn(fmt::format("stopped early, after step {} of {}{}", done(), total_steps_,
                     options_.save_folder.empty()
                         ? std::string("; nothing was saved, for want of --save")
                         : fmt::format("; --resume {} goes on", options_.save_folder.string())));
  }
  report_.world_size = static_cast<int>(shard_.ranks);
  report_.steps = static_cast<std::int64_t>(report_.losses.size());
  report_.ms_per_step = median_step(step_ms_);
  report_.data_ms_per_step = median_step(data_ms_);
  report_.predicted_ms_per_step = static_cast<double>(report_.plan.cost_ns) * 1e-6;
  report_.peak_bytes_measured = session_->peak_bytes_measured();
  const Bytes arena_on_host = session_->arena_is_on_device() ? 0 : session_->arena_bytes();
  report_.process_overhead_bytes = std::max<Bytes>(0, runtime::resident_bytes() - arena_on_host);
  if (session_->arena_is_on_device())
    report_.device_overhead_bytes = session_->device_overhead_bytes();
  report_.state_hash = session_->state_hash();
  if (ranks_ != nullptr) ranks_->barrier();  // no rank ends well unless all do
}

void give_up(runtime::comm::Communicator& ranks, const std::string& where, const char* what) {
  ranks.abort(fmt::format("{}: {}", where, what));
}

}  // namespace

std::variant<TrainReport, planner::Infeasible> train(const TrainOptions& options,
                                                     const TrainHooks& hooks) {
  Run run(options, hooks);
  if (!options.session.ranks) return run.go();
  // The others hear why.
  try {
    return run.go();
  } catch (const std::bad_alloc&) {
    give_up(*options.session.ranks, run.where(), "out of memory");
    throw;
  } catch (const std::exception& error) {
    give_up(*options.session.ranks, run.where(), error.what());
    throw;
  }
}

}  // namespace reprise::api
