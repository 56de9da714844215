// The chunk length chosen together with the plan.

#include <gtest/gtest.h>
#include <optional>

#include "api/chunk.h"
#include "base/error.h"

namespace reprise::api {
namespace {

TrainOptions small_run() {
  TrainOptions options;
  options.model = "lstm";
  options.model_options.batch = 32;
  options.model_options.hidden = 16;
  options.model_options.layers = 1;
  options.model_options.vocabulary = 8;
  options.model_options.seq_len = 48;
  options.session.threads = 1;
  options.session.plan.search_moves = 1;
  options.choose_chunk = true;
  return options;
}

TEST(ChunkCandidates, AreDivisorsSpreadEvenly) {
  // 16 divisors; six of them about a factor of four apart: 1000^(1/5) = 4.
  EXPECT_EQ(chunk_candidates(1000), (std::vector<std::int64_t>{1, 4, 20, 50, 250, 1000}));
  EXPECT_EQ(chunk_candidates(6), (std::vector<std::int64_t>{1, 2, 3, 6}));
  EXPECT_EQ(chunk_candidates(1), (std::vector<std::int64_t>{1}));
}

TEST(ChunkCandidates, MakeAtMostTwoAndAHalfThousandChunks) {
  for (const std::int64_t length : {20'000, 100'000, 99'991}) {
    for (const std::int64_t chunk : chunk_candidates(length)) {
      EXPECT_LE((length + chunk - 1) / chunk, 2'500) << length << " " << chunk;
    }
    EXPECT_GE(chunk_candidates(length).size(), 4U) << length;
  }
}

TEST(ChunkCandidates, OfAPrimeArePowersOfFourBesides) {
  EXPECT_EQ(chunk_candidates(13), (std::vector<std::int64_t>{1, 4, 13}));
}

TEST(ChooseChunk, TakesTheCheapestOfThePlansOfSingleLengths) {
  for (const double percent : {50.0, 70.0, 95.0}) {
    TrainOptions options = small_run();
    options.session.plan.budget = {.kind = Budget::Kind::kPercent, .percent = percent};
    const auto outcome = choose_chunk(options);
    ASSERT_TRUE(std::holds_alternative<ChunkChoice>(outcome)) << percent;
    const auto& choice = std::get<ChunkChoice>(outcome);
    ASSERT_EQ(choice.budget.kind, Budget::Kind::kBytes);
    ASSERT_GE(choice.trials.size(), 5U);
    adopt(choice, options);
    options.session.plan.find_floor = false;
    std::optional<std::int64_t> least, chosen;
    for (const ChunkTrial& trial : choice.trials) {
      options.model_options.chunk = trial.chunk;
      const PreparedTraining training = prepare_training(options);
      const auto planned = plan_step(training.graph, options.session.plan, training.costs);
      const auto* step = std::get_if<PlannedTraining>(&planned);
      EXPECT_EQ(step != nullptr, trial.feasible) << percent << " " << trial.chunk;
      if (step == nullptr) continue;
      EXPECT_EQ(step->report.cost_ns, trial.cost_ns) << percent << " " << trial.chunk;
      EXPECT_LE(step->report.peak_bytes, choice.budget.bytes);
      if (!least || step->report.cost_ns < *least) least = step->report.cost_ns;
      if (trial.chunk == choice.chunk) chosen = step->report.cost_ns;
    }
    ASSERT_TRUE(chosen.has_value()) << percent;
    EXPECT_EQ(*chosen, *least) << percent;
  }
}

TEST(ChooseChunk, SaysTheLeastFloorWhenNothingFits) {
  TrainOptions options = small_run();
  options.session.plan.budget = {.kind = Budget::Kind::kBytes, .bytes = 1};
  const auto refused = choose_chunk(options);
  ASSERT_TRUE(std::holds_alternative<planner::Infeasible>(refused));
  const Bytes floor = std::get<planner::Infeasible>(refused).floor;
  options.session.plan.budget = {.kind = Budget::Kind::kFloor};
  const auto outcome = choose_chunk(options);
  ASSERT_TRUE(std::holds_alternative<ChunkChoice>(outcome));
  for (const ChunkTrial& trial : std::get<ChunkChoice>(outcome).trials) {
    EXPECT_GE(trial.peak_bytes, floor);
    if (trial.chunk == std::get<ChunkChoice>(outcome).chunk) {
      EXPECT_EQ(trial.peak_bytes, floor);
    }
  }
}

TEST(ChooseChunk, RefusesModelsWithoutChunks) {
  TrainOptions options = small_run();
  options.model = "mlp";
  options.model_options = {};
  EXPECT_THROW((void)choose_chunk(options), base::Error);
}

}  // namespace
}  // namespace reprise::api
