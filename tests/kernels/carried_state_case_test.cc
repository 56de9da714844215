// Truncated backpropagation through time: h_t = w h_{t-1} + x_t with w = 0.5, h_0 = 0, x_t = 1, and
// w held fixed. Each step of training is one window; (h) is carried from window to window.

#include <cmath>

#include "fmt/format.h"

#include "graph/builder.h"
#include "tests/kernels/on_backend.h"

namespace reprise::test {
namespace {

using graph::Builder;
using graph::Graph;

class CarriedStateCase : public OnBackend {};

// loss = h at the window's end.
Graph window(int length) {
  Builder b("window");
  const ValueId w = b.parameter("w", {1});
  const ValueId start = b.state("h", {1});
  ValueId h = start;
  for (int t = 0; t < length; ++t) {
    h = b.add(b.mul(w, h), b.input(fmt::format("x{}", t), {1}), fmt::format("h{}", t));
  }
  b.assign(start, h);
  b.set_loss(b.reduce_sum(h, {}, false, "loss"));
  return with_gradients(b.finish(), {w});
}

void start(Interpreter& run, float h) {
  run.set<float>("w", {0.5});
  run.set<float>("h", {h});
  for (int t = 0; run.has(fmt::format("x{}", t)); ++t) run.set<float>(fmt::format("x{}", t), {1});
}

// Window 1: h_1 = 1, h_2 = 1.5, dh_2/dw = h_1 + w h_0 = 1.
// Window 2: h_3 = 1.75, h_4 = 1.875, dh_4/dw = h_3 + w h_2 = 2.5: h_2's value comes in, its
// dependence on w does not.
TEST_P(CarriedStateCase, TheValueIsCarriedAndTheGradientIsCut) {
  for (const InterpreterOptions& options : run_options()) {
    Interpreter run = prepare(window(2), options);
    start(run, 0);
    run.step();
    EXPECT_EQ(run.get("loss"), (std::vector<float>{1.5}));
    EXPECT_EQ(run.get("grad/w"), (std::vector<float>{1.0}));
    run.step();
    EXPECT_EQ(run.get("loss"), (std::vector<float>{1.875}));
    EXPECT_EQ(run.get("grad/w"), (std::vector<float>{2.5}));
    // A new sequence starts from 0 again.
    run.set<float>("h", {0});
    run.step();
    EXPECT_EQ(run.get("loss"), (std::vector<float>{1.5}));
    EXPECT_EQ(run.get("grad/w"), (std::vector<float>{1.0}));
  }
}

// h_3 + w (h_2 + w (h_1 + w h_0)) = 1.75 + 0.5 (1.5 + 0.5 * 1) = 2.75
TEST_P(CarriedStateCase, OneWindowOverTheWholeSequenceIsNotCut) {
  Interpreter run = prepare(window(4));
  start(run, 0);
  run.step();
  EXPECT_EQ(run.get("loss"), (std::vector<float>{1.875}));
  EXPECT_EQ(run.get("grad/w"), (std::vector<float>{2.75}));
}

// h -> 1 / (1 - w) = 2, dh/dw -> 2 + 0.5 * 2 = 3.
TEST_P(CarriedStateCase, AThousandWindowsReachTheFixedPoint) {
  Interpreter run = prepare(window(2));
  start(run, 0);
  for (std::uint64_t step = 0; step < 1000; ++step) run.step({.seed = 0, .step = step});
  EXPECT_EQ(run.get("h"), (std::vector<float>{2}));
  EXPECT_EQ(run.get("grad/w"), (std::vector<float>{3}));
}

// Seven steps in windows of 3, 3 and 1: h_7 = 2 (1 - 2^-7) = 1.984375, dh_7/dw = h_6 = 1.96875.
TEST_P(CarriedStateCase, ALastWindowOfOneStepCarriesOn) {
  Interpreter whole = prepare(window(3));
  start(whole, 0);
  whole.step();
  EXPECT_EQ(whole.get("grad/w"), (std::vector<float>{2}));  // h_2 + w h_1
  whole.step();
  Interpreter rest = prepare(window(1));
  start(rest, whole.get("h")[0]);
  rest.step();
  EXPECT_EQ(rest.get("loss"), (std::vector<float>{1.984375}));
  EXPECT_EQ(rest.get("grad/w"), (std::vector<float>{1.96875}));
}

// h_0 = 2, x = 1: h = 2, dh/dw = h_0 = 2.
TEST_P(CarriedStateCase, AWindowOfOneStepReadsWhatIsCarriedIn) {
  Interpreter run = prepare(window(1));
  start(run, 2);
  run.step();
  EXPECT_EQ(run.get("loss"), (std::vector<float>{2}));
  EXPECT_EQ(run.get("grad/w"), (std::vector<float>{2}));
}

REPRISE_ON_EVERY_BACKEND(CarriedStateCase);

}  // namespace
}  // namespace reprise::test
