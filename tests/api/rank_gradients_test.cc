// What several ranks compute in their first step against one that has the whole batch: losses and
// gradients, for each model, size of batch, number of ranks, communicator and planner. On the
// reference backend, whose sums are f64: what rounding to f32 does to gradients behind twenty batch
// norms would hide a small fault.

#include <cmath>
#include <map>
#include <mutex>

#include "gmock/gmock.h"

#include "api/data_source.h"
#include "api/shard.h"
#include "tests/api/training_case.h"
#include "tests/runtime/comm_kinds.h"

namespace reprise::api {
namespace {

using runtime::comm::Communicator;
using runtime::comm::testing::gloo_kind;
using runtime::comm::testing::GroupKind;
using runtime::comm::testing::run_ranks;
using runtime::comm::testing::threads_kind;
using runtime::comm::testing::world;

constexpr double kRelative = 1e-5;

TrainOptions options_of(const std::string& model, std::int64_t batch) {
  TrainOptions options;
  options.model = model;
  options.evaluate = false;
  options.session = on("reference", "keep_all");
  options.session.synchronise_batch_norm = true;
  options.optimizer = graph::SgdAttributes{.rate = {.base = 0}};
  if (model == "lstm") {
    options.model_options = {
        .batch = batch, .hidden = 8, .layers = 1, .vocabulary = 11, .seq_len = 8, .chunk = 2};
  } else if (model == "mlp") {
    options.model_options = {.batch = batch,
                             .channels = 1,
                             .height = 4,
                             .width = 4,
                             .classes = 3,
                             .hidden = 12,
                             .layers = 6};
  } else {
    options.model_options = {.batch = batch, .channels = 3, .height = 8, .width = 8, .classes = 4};
  }
  return options;
}

struct FirstStep {
  double loss = 0;  // this rank's part of it
  std::map<std::string, std::vector<float>> gradients;
  PlanReport plan;
};

// The floor where the planner has nothing within the budget.
std::unique_ptr<Session> session_within(const models::Model& model,
                                        const graph::TrainingOptions& training,
                                        SessionOptions options) {
  auto created = Session::create(model, {}, training, options);
  if (const auto* infeasible = std::get_if<planner::Infeasible>(&created)) {
    options.plan.budget = bytes_budget(infeasible->floor);
    return make_session(model, options, training);
  }
  return std::get<std::unique_ptr<Session>>(std::move(created));
}

FirstStep first_step(TrainOptions options, const Shard& shard, Communicator* ranks) {
  if (ranks != nullptr) options.session.ranks = {ranks, [](Communicator*) {}};
  models::ModelOptions local = options.model_options;
  const auto source = open_data(options, local, shard);
  const std::int64_t batch = local.batch;
  local.batch = shard.planned(batch);
  const models::Model model = models::make_model(options.model, local);
  graph::TrainingOptions training{.optimizer = options.optimizer};
  for (std::size_t i = 0; i < model.graph.values.size(); ++i) {
    if (model.graph.values[graph::ValueId(i)].role == graph::Role::kParameter)
      training.fetch_gradients.push_back(graph::ValueId(i));
  }
  const auto session = session_within(model, training, options.session);
  source->fill(*session, 0, 0);
  const float weight = source->gradient_weight();
  session->set_gradient_weight(weight);
  session->set_batch_parts(shard.counts(batch));
  const float loss = session->step();
  FirstStep made{.loss = static_cast<double>(weight) * static_cast<double>(loss),
                 .gradients = {},
                 .plan = session->report()};
  if (shard.count(batch) == 0) made.loss = 0;
  for (const graph::ValueId id : training.fetch_gradients) {
    const std::string& name = model.graph.values[id].name;
    made.gradients[name] = numbers(session->read("grad/" + name));
  }
  return made;
}

FirstStep alone(const TrainOptions& options) {
  return first_step(options, {}, nullptr);
}

double norm(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum);
}

// The ranks' losses add up to that of one; each rank has all of its gradients.
void expect_same_step(const GroupKind& kind, int size, const TrainOptions& options,
                      const FirstStep& wanted) {
  SCOPED_TRACE(fmt::format("{}, batch {} over {} of {}, {}", options.model,
                           options.model_options.batch, size, kind.name,
                           options.session.plan.planner));
  std::map<int, FirstStep> steps;
  std::mutex mutex;
  const auto thrown =
      run_ranks(kind, world(size, std::chrono::seconds(60)), [&](Communicator& end) {
        FirstStep step = first_step(options, {end.rank(), size}, &end);
        const std::lock_guard lock(mutex);
        steps[end.rank()] = std::move(step);
      });
  ASSERT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
  double loss = 0;
  for (const auto& [rank, step] : steps) {
    loss += step.loss;
    for (const auto& [name, gradient] : step.gradients) {
      std::vector<float> difference = wanted.gradients.at(name);
      ASSERT_EQ(gradient.size(), difference.size());
      for (std::size_t i = 0; i < difference.size(); ++i) difference[i] -= gradient[i];
      EXPECT_LE(norm(difference), kRelative * norm(wanted.gradients.at(name)))
          << name << ", rank " << rank;
      EXPECT_EQ(gradient, steps.at(0).gradients.at(name)) << name << ", rank " << rank;
    }
  }
  EXPECT_NEAR(loss, wanted.loss, kRelative * wanted.loss);
}

// C35: parts of 30, 10 and 1 items over up to 4 ranks, uneven and empty ones among them.
TEST(RankGradients, AreThoseOfTheWholeBatchWhateverTheParts) {
  for (const std::string model : {"resnet20", "mlp", "lstm"}) {
    for (const std::int64_t batch : {30, 10, 1}) {
      const TrainOptions options = options_of(model, batch);
      const FirstStep wanted = alone(options);
      for (const int size : {1, 2, 3, 4}) expect_same_step(threads_kind(), size, options, wanted);
    }
  }
}

TEST(RankGradients, AreThoseOfTheWholeBatchOverProcessesToo) {
  if (!runtime::comm::testing::has_gloo()) GTEST_SKIP() << "this build has no Gloo";
  for (const std::string model : {"resnet20", "mlp", "lstm"}) {
    const TrainOptions options = options_of(model, 10);
    const FirstStep wanted = alone(options);
    for (const int size : {1, 2, 3, 4}) expect_same_step(gloo_kind(), size, options, wanted);
  }
}

// Half of what keeping everything takes beyond parameters and optimizer state, or the planner's
// floor where that is more.
TEST(RankGradients, AreThoseOfTheWholeBatchForEachPlannerAtHalfTheActivations) {
  for (const std::string model : {"resnet20", "mlp", "lstm"}) {
    TrainOptions options = options_of(model, model == "resnet20" ? 10 : 30);
    const FirstStep wanted = alone(options);
    PlanReport kept;
    (void)run_ranks(threads_kind(), world(1), [&](Communicator& end) {
      kept = first_step(options, {0, 3}, &end).plan;
    });
    options.session.plan.budget =
        bytes_budget(kept.persistent_bytes + (kept.keep_all_bytes - kept.persistent_bytes) / 2);
    for (const planner::Strategy* strategy : planner::all_strategies()) {
      if (strategy->name() == "exact") continue;  // for graphs of a few ops
      options.session.plan.planner = std::string(strategy->name());
      expect_same_step(threads_kind(), 3, options, wanted);
    }
  }
}

}  // namespace
}  // namespace reprise::api
