#include "graph/evaluation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/graph/small_graphs.h"

namespace reprise::graph {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// x ─▶ linear (w) ─▶ loss, with persistent values in another order than the training graph has
// them.
Graph evaluation_of(const Shape& w_shape, std::string_view w_name = "w", bool state = false) {
  Builder b("evaluation");
  const ValueId x = b.input("x", {7, 2, 1, 3});
  const ValueId mean = b.state("bn.mean_running", {2});
  const ValueId w = state ? b.state(w_name, w_shape) : b.parameter(w_name, w_shape);
  const ValueId gamma = b.parameter("bn.gamma", {2});
  const ValueId bn = b.batch_norm_inference(x, gamma, b.parameter("bn.beta", {2}, false), mean,
                                            b.state("bn.var_running", {2}), {}, "bn");
  const ValueId flat = b.flatten(bn, "flat");
  b.set_loss(b.reduce_sum(b.matmul(flat, w, {.transpose_b = true}, "fc"), {}, false, "loss"));
  return b.finish();
}

TEST(SharedValues, ComeFirstInTheOrderOfTheTrainingGraph) {
  const Graph training = one_of_each();
  const Graph shared = share_persistent_values(evaluation_of({2, 6}), training);
  std::vector<std::string> persistent;
  for (const Value& value : training.values) {
    if (is_persistent(value.role)) persistent.push_back(value.name);
  }
  ASSERT_EQ(persistent.size(), 7u);  // gamma, beta, two statistics, h, w, momentum
  for (std::size_t i = 0; i < persistent.size(); ++i) {
    EXPECT_EQ(shared.values[ValueId(i)].name, persistent[i]);
  }
  EXPECT_EQ(shared.values[ValueId(7)].name, "x");
  EXPECT_TRUE(value_named(shared, "w.momentum").valid());  // there although nothing reads it
}

TEST(SharedValues, LeaveTheRestOfTheGraphAsItWas) {
  const Graph evaluation = evaluation_of({2, 6});
  const Graph shared = share_persistent_values(evaluation, one_of_each());
  EXPECT_NO_THROW(validate(shared));
  ASSERT_EQ(shared.nodes.size(), evaluation.nodes.size());
  for (std::size_t i = 0; i < shared.nodes.size(); ++i) {
    const Node& before = evaluation.nodes[NodeId(i)];
    const Node& after = shared.nodes[NodeId(i)];
    EXPECT_EQ(after.name, before.name);
    ASSERT_EQ(after.inputs.size(), before.inputs.size());
    for (std::size_t k = 0; k < after.inputs.size(); ++k) {
      EXPECT_EQ(shared.values[after.inputs[k]].name, evaluation.values[before.inputs[k]].name);
    }
  }
  EXPECT_EQ(shared.values[shared.loss].name, "loss");
  EXPECT_EQ(shared.outputs, std::vector<ValueId>{shared.loss});
}

TEST(SharedValues, CarryTheUpdatesOfStates) {
  Builder b("stateful");
  const ValueId h = b.state("h", {4, 2, 1, 3});
  b.assign(h, b.input("x", {4, 2, 1, 3}));
  const Graph shared = share_persistent_values(b.finish(), one_of_each());
  ASSERT_EQ(shared.updates.size(), 1u);
  EXPECT_EQ(shared.updates[0].initial, value_named(shared, "h"));
  EXPECT_EQ(shared.updates[0].final, value_named(shared, "h.next"));
}

TEST(SharedValues, MustExistInTheTrainingGraph) {
  EXPECT_THAT(input_error_of([] {
                (void)share_persistent_values(evaluation_of({2, 6}, "head.w"), one_of_each());
              }),
              AllOf(HasSubstr("parameter 'head.w'"), HasSubstr("missing in the training graph")));
}

TEST(SharedValues, MustAgreeInShapeAndRole) {
  EXPECT_THAT(input_error_of([] {
                (void)share_persistent_values(evaluation_of({5, 6}), one_of_each());
              }),
              AllOf(HasSubstr("'w'"), HasSubstr("[5,6]"), HasSubstr("[2,6]")));
  EXPECT_THAT(input_error_of([] {
                (void)share_persistent_values(evaluation_of({2, 6}, "w", true), one_of_each());
              }),
              AllOf(HasSubstr("'w' is state"), HasSubstr("parameter f32 [2,6]")));
}

TEST(SharedValues, RefuseAnActivationOfTheSameName) {
  Builder b("clash");
  b.relu(b.input("x", {2}), "w.momentum");
  EXPECT_THAT(input_error_of([&] { (void)share_persistent_values(b.finish(), one_of_each()); }),
              AllOf(HasSubstr("'w.momentum' is activation"), HasSubstr("optimizer_state")));
}

}  // namespace
}  // namespace reprise::graph
