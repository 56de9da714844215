#include "graph/builder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "tests/graph/small_graphs.h"

namespace reprise::graph {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(Builder, NamesOutputsAfterTheirNode) {
  Builder b("g");
  const ValueId x = b.input("x", {4, 2});
  b.batch_norm(x, b.parameter("gamma", {2}), b.parameter("beta", {2}), b.state("rm", {2}),
               b.state("rv", {2}), 0.1, {}, "bn");
  const Graph g = b.finish();
  for (const char* name : {"bn", "bn.mean", "bn.var", "bn.running", "bn.running.var"}) {
    EXPECT_TRUE(value_named(g, name).valid()) << name;
  }
}

TEST(Builder, GivesNamelessNodesTheOpAndANumber) {
  Builder b("g");
  const ValueId x = b.input("relu1", {2});  // a value that takes the name of the second node
  const ValueId first = b.relu(x);
  const ValueId second = b.relu(first);
  EXPECT_EQ(b.graph().values[first].name, "relu0");
  EXPECT_EQ(b.graph().values[second].name, "relu2");
}

TEST(Builder, ScopesPrefixTheNamesThatFollow) {
  Builder b("g");
  const ValueId x = b.input("x", {2, 2});
  ValueId w, y;
  {
    const Builder::Scope outer(b, "layer1.");
    const Builder::Scope inner(b, "0.");
    w = b.parameter("w", {3, 2});
    y = b.linear(x, w, "fc");
  }
  const ValueId z = b.relu(y, "act");
  EXPECT_EQ(b.graph().values[w].name, "layer1.0.w");
  EXPECT_EQ(b.graph().values[y].name, "layer1.0.fc");
  EXPECT_EQ(b.graph().values[z].name, "act");
}

TEST(Builder, RefusesTakenAndImpossibleNames) {
  Builder b("g");
  const ValueId x = b.input("x", {2});
  EXPECT_THAT(input_error_of([&] { b.input("x", {2}); }),
              HasSubstr("already has a value named 'x'"));
  EXPECT_THAT(input_error_of([&] { b.relu(x, "x"); }), HasSubstr("already has a value named 'x'"));
  EXPECT_THAT(input_error_of([&] { b.input("two words", {2}); }), HasSubstr("'two words'"));
  EXPECT_THAT(input_error_of([&] { b.input("", {2}); }), HasSubstr("''"));
  EXPECT_THAT(input_error_of([&] {
                b.input("empty", {2, 0});
              }),
              AllOf(HasSubstr("'empty'"), HasSubstr("[2,0]")));
}

TEST(Builder, RefusedNodesLeaveNoTrace) {
  Builder b("g");
  const ValueId x = b.input("x", {4, 2});
  b.input("bn.var", {1});  // collides with the third output of the node below
  const Graph before = b.graph();
  const std::vector<ValueId> inputs{x, b.parameter("gamma", {2}), b.parameter("beta", {2})};
  const std::size_t values = b.graph().values.size();
  EXPECT_THAT(input_error_of([&] { b.append(OpKind::kBatchNorm, inputs, NormAttributes{}, "bn"); }),
              HasSubstr("'bn.var'"));
  EXPECT_EQ(b.graph().values.size(), values);
  EXPECT_EQ(b.graph().nodes, before.nodes);
  b.append(OpKind::kBatchNorm, inputs, NormAttributes{}, "bn2");
  b.relu(x, "bn");  // the name is still free
  EXPECT_NO_THROW((void)b.finish());
}

TEST(Builder, RefusesValuesOfNoGraphAndAttributesOfOtherOps) {
  Builder b("g");
  const ValueId x = b.input("x", {2});
  EXPECT_THAT(input_error_of([&] { b.relu(ValueId(7), "r"); }),
              AllOf(HasSubstr("relu 'r'"), HasSubstr("no value"), HasSubstr("has 1 values")));
  EXPECT_THAT(input_error_of([&] { b.add(x, ValueId{}, "a"); }), HasSubstr("input 1 is no value"));
  EXPECT_THAT(input_error_of([&] { b.append(OpKind::kRelu, {x}, ScaleAttributes{}, "r"); }),
              HasSubstr("attributes of another op"));
  EXPECT_THAT(input_error_of([&] {
                b.append(OpKind::kRelu, {x, x}, NoAttributes{}, "r");
              }),
              AllOf(HasSubstr("takes 1 inputs"), HasSubstr("got 2")));
  EXPECT_THAT(input_error_of([&] {
                b.append(OpKind::kRelu, {x}, NoAttributes{}, "r", Phase::kForward, true);
              }),
              HasSubstr("no accumulate form"));
  EXPECT_THAT(input_error_of([&] { b.scale(x, std::numeric_limits<double>::quiet_NaN(), "s"); }),
              HasSubstr("factor is not a number"));
}

// x[4,2,1,3]: each of 2 channels has 4 * 1 * 3 = 12 values.
TEST(Builder, BatchNormUpdatesItsRunningStatisticsOncePerStep) {
  const Graph g = one_of_each();
  const Node& update = g.nodes[node_named(g, "bn.running")];
  EXPECT_EQ(update.op, OpKind::kBatchNormUpdate);
  EXPECT_EQ(update.phase, Phase::kForward);
  EXPECT_EQ(std::get<RunningUpdateAttributes>(update.attributes),
            (RunningUpdateAttributes{.rate = 0.1, .count = 12, .unbiased = true}));
  EXPECT_EQ(g.values[update.outputs[0]].role, Role::kUpdate);
  EXPECT_THAT(g.updates, testing::Contains(Update{value_named(g, "bn.mean_running"),
                                                  value_named(g, "bn.running")}));
  EXPECT_THAT(g.updates, testing::Contains(Update{value_named(g, "bn.var_running"),
                                                  value_named(g, "bn.running.var")}));
}

ValueId batch_norm_of(Builder& b, const Shape& shape) {
  const Dim c = shape[1];
  return b.batch_norm(b.input("x", shape), b.parameter("gamma", {c}), b.parameter("beta", {c}),
                      b.state("rm", {c}), b.state("rv", {c}), 0.1, {}, "stem.bn");
}

TEST(Builder, BatchNormNeedsTwoValuesPerChannelInTraining) {
  Builder one("one"), four("four");
  EXPECT_THAT(input_error_of([&] {
                batch_norm_of(one, {1, 3, 1, 1});
              }),
              AllOf(HasSubstr("batch_norm 'stem.bn'"), HasSubstr("[1,3,1,1]"),
                    HasSubstr("more than one value per channel")));
  EXPECT_NO_THROW(batch_norm_of(four, {1, 1, 1, 4}));  // one image, four pixels
  Builder evaluation("evaluation");
  const ValueId channel = evaluation.parameter("gamma", {1});
  EXPECT_NO_THROW(evaluation.batch_norm_inference(evaluation.input("x", {1, 1, 1, 1}), channel,
                                                  channel, evaluation.state("rm", {1}),
                                                  evaluation.state("rv", {1})));
}

TEST(Builder, OneStatisticServesOneBatchNorm) {
  Builder b("g");
  const ValueId x = b.input("x", {4, 2});
  const ValueId gamma = b.parameter("gamma", {2});
  const ValueId rm = b.state("rm", {2});
  b.batch_norm(x, gamma, gamma, rm, b.state("rv", {2}), 0.1, {}, "bn1");
  const std::size_t nodes = b.graph().nodes.size();
  EXPECT_THAT(input_error_of(
                  [&] { b.batch_norm(x, gamma, gamma, rm, b.state("rv2", {2}), 0.1, {}, "bn2"); }),
              AllOf(HasSubstr("'bn2'"), HasSubstr("'rm' already has an update")));
  EXPECT_THAT(input_error_of(
                  [&] { b.batch_norm(x, gamma, gamma, x, b.state("rv3", {2}), 0.1, {}, "bn3"); }),
              AllOf(HasSubstr("'x' is no persistent value"), HasSubstr("input")));
  EXPECT_EQ(b.graph().nodes.size(), nodes);
}

// h is read by add, after assign() was called.
TEST(Builder, AssignsAtTheEndOfTheStep) {
  Builder b("g");
  const ValueId h = b.state("h", {2});
  const ValueId x = b.input("x", {2});
  b.assign(h, x);
  const ValueId sum = b.add(h, x, "sum");
  b.add_output(sum);
  const Graph g = b.finish();
  ASSERT_EQ(g.nodes.size(), 2u);
  EXPECT_EQ(g.nodes[NodeId(0)].name, "sum");
  EXPECT_EQ(g.nodes[NodeId(1)].op, OpKind::kAssign);
  EXPECT_EQ(g.nodes[NodeId(1)].phase, Phase::kUpdate);
  EXPECT_THAT(g.updates, ElementsAre(Update{h, value_named(g, "h.next")}));
}

TEST(Builder, RefusesAssignmentsThatDoNotFit) {
  Builder b("g");
  const ValueId h = b.state("h", {2});
  const ValueId x = b.input("x", {3});
  EXPECT_THAT(input_error_of([&] { b.assign(h, x); }),
              AllOf(HasSubstr("'h' is f32 [2]"), HasSubstr("'x' is f32 [3]")));
  EXPECT_THAT(input_error_of([&] { b.assign(x, x); }), HasSubstr("'x' is no persistent value"));
  b.assign(h, b.slice(x, 0, 0, 2));
  EXPECT_THAT(input_error_of([&] { b.assign(h, h); }), HasSubstr("'h' already has an update"));
}

TEST(Builder, EveryDropoutHasItsOwnStream) {
  Builder first("g");
  const ValueId a = first.dropout(first.input("x", {8}), 0.5, "a");
  first.dropout(a, 0.5, "b");
  Builder second(first.finish());  // goes on where the first stopped
  second.dropout(a, 0.5, "c");
  const Graph g = second.finish();
  std::vector<std::int64_t> streams;
  for (const Node& node : g.nodes) {
    streams.push_back(std::get<DropoutAttributes>(node.attributes).stream);
  }
  EXPECT_THAT(streams, ElementsAre(0, 1, 2));
}

TEST(Builder, TheLossIsAScalarOutput) {
  Builder b("g");
  const ValueId x = b.input("x", {2});
  EXPECT_THAT(input_error_of([&] { b.set_loss(x); }),
              AllOf(HasSubstr("scalar f32"), HasSubstr("'x' is f32 [2]")));
  const ValueId loss = b.reduce_sum(x, {}, false, "loss");
  b.set_loss(loss);
  b.add_output(loss);
  b.add_output(x);
  const Graph g = b.finish();
  EXPECT_EQ(g.loss, loss);
  EXPECT_THAT(g.outputs, ElementsAre(loss, x));
}

TEST(Builder, IsEmptyAfterFinishing) {
  Builder b("g");
  b.dropout(b.input("x", {2}), 0.5, "d");
  (void)b.finish();
  EXPECT_TRUE(b.graph().values.empty());
  const ValueId again = b.dropout(b.input("x", {2}), 0.5, "d");  // names and streams start afresh
  EXPECT_EQ(again, ValueId(1));
  EXPECT_EQ(std::get<DropoutAttributes>(b.graph().nodes[NodeId(0)].attributes).stream, 0);
}

TEST(Graphs, FollowReshapesToTheirStorage) {
  Builder b("g");
  const ValueId x = b.input("x", {2, 6});
  const ValueId view = b.reshape(b.reshape(x, {3, 4}), {12});
  EXPECT_EQ(storage_root(b.graph(), view), x);
  const ValueId y = b.relu(view);
  EXPECT_EQ(storage_root(b.graph(), y), y);
}

TEST(Graphs, ListEachReaderOnce) {
  Builder b("g");
  const ValueId x = b.input("x", {2});
  b.mul(x, x);
  b.relu(x);
  EXPECT_THAT(readers_of(b.graph())[x], ElementsAre(NodeId(0), NodeId(1)));
}

TEST(Graphs, CountParametersTrainableAndFrozen) {
  // bn.gamma 2 + bn.beta 2 (frozen) + w 12; neither its momentum nor its next version counts
  EXPECT_EQ(parameter_count(one_of_each()), 16);
}

}  // namespace
}  // namespace reprise::graph
