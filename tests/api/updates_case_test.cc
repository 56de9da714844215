// Updates at once or after all gradients: another peak, the same bits. After their common norm: the
// same bits for every planner and budget.

#include "tests/api/training_case.h"

namespace reprise::api {
namespace {

struct Trained {
  std::uint64_t hash = 0;
  Bytes peak = 0;
};

Trained run(const graph::Optimizer& optimizer, bool updates_last, const std::string& planner,
            const Budget& budget) {
  models::ModelOptions options{.batch = 2};
  options.channels = 1;
  options.height = 4;
  options.width = 8;
  options.hidden = 32;
  options.layers = 5;
  options.classes = 3;
  const models::Model model = models::make_model("mlp", options);
  SessionOptions session_options = on("cpu", planner, budget);
  session_options.debug = true;
  const auto session =
      make_session(model, session_options, {.optimizer = optimizer, .updates_last = updates_last});
  std::vector<float> images(2 * 32);
  std::vector<std::int32_t> labels = {0, 2};
  for (int step = 0; step < 3; ++step) {
    for (std::size_t i = 0; i < images.size(); ++i) {
      images[i] = static_cast<float>((i * 37 + static_cast<std::size_t>(step) * 11) % 23) / 11.0f;
    }
    for (const graph::Value& value : model.graph.values) {
      if (value.role != graph::Role::kInput) continue;
      session->set_input(value.name,
                         value.dtype == graph::DType::kI32 ? bytes_of(labels) : bytes_of(images));
    }
    (void)session->step();
  }
  return {session->state_hash(), session->peak_bytes_measured()};
}

TEST(UpdatesCase, BitsAreTheSameWhereverTheyStand) {
  const Budget floor{.kind = Budget::Kind::kFloor};
  for (const graph::Optimizer& optimizer :
       {graph::Optimizer(graph::SgdAttributes{.rate = {.base = 0.1}, .momentum = 0.9}),
        graph::Optimizer(graph::AdamAttributes{})}) {
    const Trained first = run(optimizer, false, "keep_all", {});
    for (const char* planner : {"keep_all", "auto"}) {
      const Trained at_once = run(optimizer, false, planner, floor);
      const Trained at_end = run(optimizer, true, planner, floor);
      EXPECT_EQ(at_once.hash, first.hash) << planner;
      EXPECT_EQ(at_end.hash, first.hash) << planner;
      // Five weights of 32 x 32 floats: four more gradients are held.
      EXPECT_GE(at_end.peak - at_once.peak, 3 * 4096) << planner;
    }
  }
}

// A clip of 0.01 is below the norm of every step here.
TEST(UpdatesCase, ClippedBitsDependNeitherOnThePlannerNorOnTheBudget) {
  const Budget floor{.kind = Budget::Kind::kFloor};
  for (const graph::Optimizer& optimizer :
       {graph::Optimizer(graph::SgdAttributes{
            .rate = {.base = 0.1}, .momentum = 0.9, .clip_norm = 0.01, .skip_nonfinite = true}),
        graph::Optimizer(graph::AdamAttributes{.clip_norm = 0.01})}) {
    const Trained first = run(optimizer, false, "keep_all", {});
    for (const char* planner : {"keep_all", "segments", "auto"}) {
      for (const bool updates_last : {false, true}) {
        const Trained clipped = run(optimizer, updates_last, planner, floor);
        EXPECT_EQ(clipped.hash, first.hash) << planner;
        EXPECT_LE(clipped.peak, first.peak);
      }
    }
  }
}

}  // namespace
}  // namespace reprise::api
