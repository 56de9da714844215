// Random ops: the mask is a function of (seed, step, op, element), whatever else runs.

#include <algorithm>

#include "graph/builder.h"
#include "tests/kernels/on_backend.h"

namespace reprise::test {
namespace {

using graph::Builder;
using graph::Graph;

class DropoutCase : public OnBackend {};

TEST_P(DropoutCase, ARecomputedMaskIsTheMaskOfTheForwardPart) {
  Builder b("dropout");
  const ValueId x = b.input("x", {64});
  const ValueId y = b.dropout(x, 0.5, "y");
  b.add_output(y);
  b.set_loss(b.reduce_sum(y, {}, false, "loss"));
  const Graph graph = with_gradients(b.finish(), {x});
  std::vector<float> first;
  for (const InterpreterOptions& options : run_options()) {
    Interpreter run = prepare(graph, options);
    run.set("x", std::vector<float>(64, 1));
    run.step({.seed = 1, .step = 0});
    const std::vector<float> kept = run.get("y");
    for (const float value : kept) EXPECT_TRUE(value == 0.0f || value == 2.0f) << value;
    // 64 fair coins: all equal with probability 2^-63.
    EXPECT_NE(std::ranges::count(kept, 0.0f), 0);
    EXPECT_NE(std::ranges::count(kept, 0.0f), 64);
    EXPECT_EQ(run.get("grad/x"), kept);  // dL/dx_i = y_i / x_i
    if (first.empty()) first = kept;
    EXPECT_EQ(kept, first);
  }
}

// Two dropout layers with a product between, one SGD parameter.
Graph two_dropouts() {
  Builder b("two");
  const ValueId w = b.parameter("w", {33});
  const ValueId first = b.dropout(b.mul(w, b.input("x", {33})), 0.5, "first");
  const ValueId second = b.dropout(b.tanh(first), 0.5, "second");
  b.add_output(first);
  b.add_output(second);
  b.set_loss(b.reduce_sum(second, {}, false, "loss"));
  return graph::make_training_graph(b.finish(), {}).graph;
}

using Masks = std::vector<std::vector<bool>>;

std::vector<bool> mask_of(const std::vector<float>& values) {
  std::vector<bool> mask;
  for (const float value : values) mask.push_back(value != 0);
  return mask;
}

Masks masks(Interpreter run, std::uint64_t first_step, std::uint64_t steps,
            std::uint64_t seed = 7) {
  Masks all;
  run.set("x", std::vector<float>(33, 1));
  run.set("w", std::vector<float>(33, 0.5));
  for (std::uint64_t step = first_step; step < first_step + steps; ++step) {
    run.step({.seed = seed, .step = step});
    all.push_back(mask_of(run.get("first")));
    all.push_back(mask_of(run.get("second")));
  }
  return all;
}

TEST_P(DropoutCase, MasksOfThreeStepsAreThoseOfThePlainRun) {
  const Graph graph = two_dropouts();
  const Masks plain = masks(prepare(graph), 0, 3);
  for (const InterpreterOptions& options : run_options()) {
    EXPECT_EQ(masks(prepare(graph, options), 0, 3), plain);
  }
  // Neither steps before it nor another backend move the mask of a step.
  const Masks last = masks(prepare(graph), 2, 1);
  EXPECT_EQ(last, Masks(plain.end() - 2, plain.end()));
  EXPECT_EQ(masks(Interpreter(prepare_on("reference", graph)), 0, 3), plain);
}

TEST_P(DropoutCase, StepsLayersAndSeedsHaveMasksOfTheirOwn) {
  const Graph graph = two_dropouts();
  Masks all = masks(prepare(graph), 0, 3);
  const Masks other_seed = masks(prepare(graph), 0, 1, 8);
  all.push_back(other_seed[0]);
  for (std::size_t i = 0; i < all.size(); i += 2) {
    for (std::size_t j = 0; j < i; j += 2) EXPECT_NE(all[i], all[j]) << i << " " << j;
  }
  // The second layer keeps part of what the first dropped, and the other way round.
  Builder b("side_by_side");
  const ValueId x = b.input("x", {64});
  b.add_output(b.dropout(x, 0.5, "a"));
  b.add_output(b.dropout(x, 0.5, "b"));
  Interpreter run = prepare(b.finish());
  run.set("x", std::vector<float>(64, 1));
  run.step({.seed = 7, .step = 0});
  EXPECT_NE(run.get("a"), run.get("b"));
}

REPRISE_ON_EVERY_BACKEND(DropoutCase);

}  // namespace
}  // namespace reprise::test
