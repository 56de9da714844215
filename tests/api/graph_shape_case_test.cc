// Graphs of awkward shapes through a whole session, under every planner.

#include "tests/api/training_case.h"

namespace reprise::api {
namespace {

graph::TrainingOptions sgd(double rate, std::vector<graph::ValueId> gradients = {}) {
  return {.optimizer = graph::SgdAttributes{.rate = {.base = rate}},
          .fetch_gradients = std::move(gradients)};
}

// At each strategy's floor.
template <class Check>
void for_every_planner(const models::Model& model, const graph::TrainingOptions& training,
                       const Check& check) {
  for (const planner::Strategy* strategy : planner::all_strategies()) {
    const std::string name(strategy->name());
    SCOPED_TRACE(name);
    auto created = Session::create(model, {}, training, on("cpu", name, bytes_budget(1)));
    ASSERT_TRUE(std::holds_alternative<planner::Infeasible>(created));
    const Bytes floor = std::get<planner::Infeasible>(created).floor;
    SessionOptions options = on("cpu", name, bytes_budget(floor));
    options.debug = true;
    check(*make_session(model, options, training));
  }
}

// A segment that ignores its input: seg(x) = 1 p, upstream gradient g = [5,7]. dp = g, dx = 0: not
// the identity's [5,7]. tanh around it gives the plan something to recompute: at p = 0 its slope
// is 1.
TEST(GraphShapeCase, AnOutputThatIgnoresTheInputGivesItAGradientOfZero) {
  models::Model model;
  graph::Builder b("ignores");
  const graph::ValueId x = b.input("x", {2});
  const graph::ValueId p = b.parameter("p", {2});
  model.initializers.push_back({"p", {Kind::kZeros}});
  (void)b.scale(x, 3, "of_x");  // made from x, and not handed on
  graph::ValueId y = b.scale(p, 1, "segment");
  for (int i = 0; i < 4; ++i) y = b.tanh(y);
  b.set_loss(b.reduce_sum(b.mul(y, b.input("g", {2}))));
  model.graph = b.finish();
  for_every_planner(model, sgd(0.5, {x, p}), [](Session& session) {
    session.set_input("x", bytes_of<float>({1, 1}));
    session.set_input("g", bytes_of<float>({5, 7}));
    session.step();
    EXPECT_EQ(numbers(session.read("grad/x")), (std::vector<float>{0, 0}));
    EXPECT_EQ(numbers(session.read("grad/p")), (std::vector<float>{5, 7}));
    EXPECT_EQ(numbers(session.read("p")), (std::vector<float>{-2.5, -3.5}));
  });
}

// y = w (w x), w = 2, x = 3: y = 12, dw = 2 w x = 12; w' = 2 - 0.125 * 12 = 0.5, and both uses see
// it: y' = 0.5 * 0.5 * 3 = 0.75.
TEST(GraphShapeCase, ATiedWeightIsOneParameterThatBothUsesSeeUpdated) {
  models::Model model;
  graph::Builder b("tied");
  const graph::ValueId w = b.parameter("w", {1});
  model.initializers.push_back({"w", {Kind::kZeros}});
  b.set_loss(b.reduce_sum(b.mul(w, b.mul(w, b.input("x", {1})))));
  model.graph = b.finish();
  EXPECT_EQ(graph::parameter_count(model.graph), 1);
  for_every_planner(model, sgd(0.125, {w}), [](Session& session) {
    EXPECT_EQ(session.variables().size(), 1u);
    session.write("w", bytes_of<float>({2}));
    session.set_input("x", bytes_of<float>({3}));
    EXPECT_EQ(session.step(), 12);
    EXPECT_EQ(numbers(session.read("grad/w")), std::vector<float>{12});
    EXPECT_EQ(numbers(session.read("w")), std::vector<float>{0.5});
    session.set_input("x", bytes_of<float>({3}));
    EXPECT_EQ(session.step(), 0.75);
  });
}

// A parameter that nobody says the start of is refused, never left as it comes.
TEST(GraphShapeCase, AParameterWithoutAStartIsRefused) {
  models::Model model;
  graph::Builder b("unset");
  b.set_loss(b.reduce_sum(b.mul(b.parameter("w", {1}), b.input("x", {1}))));
  model.graph = b.finish();
  const std::string error = error_of([&] { (void)make_session(model, on("cpu"), sgd(0.1)); });
  EXPECT_NE(error.find("does not say how 'w' starts"), std::string::npos) << error;
}

}  // namespace
}  // namespace reprise::api
