// One broken graph per rule. Each test takes a valid graph, breaks one thing and reads the names in
// the error.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>

#include "tests/graph/small_graphs.h"

namespace reprise::graph {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string fault_of(const Graph& graph) {
  return input_error_of([&] { validate(graph); });
}

class Validate : public testing::Test {
 protected:
  Value& value(std::string_view name) { return g.values[value_named(g, name)]; }
  Node& node(std::string_view name) { return g.nodes[node_named(g, name)]; }
  ValueId id(std::string_view name) { return value_named(g, name); }

  Graph g = one_of_each();
};

TEST_F(Validate, AcceptsWhatTheBuilderMakes) {
  EXPECT_EQ(fault_of(g), "no error");
  EXPECT_EQ(fault_of(one_layer()), "no error");
  EXPECT_EQ(fault_of(Graph{}), "no error");
}

TEST_F(Validate, RejectsTwoValuesOfOneName) {
  value("bn.beta").name = "bn.gamma";
  EXPECT_THAT(fault_of(g), HasSubstr("two values named 'bn.gamma'"));
}

TEST_F(Validate, RejectsTwoNodesOfOneName) {
  node("flat").name = "bn";
  EXPECT_THAT(fault_of(g), HasSubstr("two nodes named 'bn'"));
}

TEST_F(Validate, RejectsNamesWithOtherCharacters) {
  value("x").name = "x y";
  EXPECT_THAT(fault_of(g), HasSubstr("'x y' is no name of a value"));
}

TEST_F(Validate, RejectsEmptyNodeNames) {
  node("flat").name = "";
  EXPECT_THAT(fault_of(g), HasSubstr("'' is no name of a node"));
}

TEST_F(Validate, RejectsAxesBelowOne) {
  value("x").shape[2] = 0;
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'x'"), HasSubstr("[4,2,0,3]")));
}

TEST_F(Validate, RejectsMoreBytesThanCanBeCounted) {
  value("x").shape[2] = Dim{1} << 60;  // 24 * 2^60 elements
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'x'"), HasSubstr("beyond 2^63")));
}

TEST_F(Validate, RejectsTrainableValuesThatAreNoParameters) {
  value("h").trainable = true;
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'h'"), HasSubstr("trainable"), HasSubstr("state")));
}

TEST_F(Validate, RejectsActivationsThatNoNodeMakes) {
  value("x").role = Role::kActivation;
  EXPECT_THAT(fault_of(g), HasSubstr("'x' of role activation is made by no node"));
}

TEST_F(Validate, RejectsAnOutputNumberWithoutAProducer) {
  value("x").output = 1;
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'x'"), HasSubstr("output 1")));
}

TEST_F(Validate, RejectsProducersOutsideOfTheGraph) {
  value("bn").producer = NodeId(99);
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'bn'"), HasSubstr("node 99")));
}

TEST_F(Validate, RejectsValuesThatTheirProducerDoesNotList) {
  std::swap(value("bn.mean").output, value("bn.var").output);
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'bn.mean'"), HasSubstr("output 2 of node 'bn'")));
}

TEST_F(Validate, RejectsOutputsThatNameAnotherProducer) {
  node("flat").outputs[0] = id("drop");  // made by drop
  value("flat").producer = NodeId{};
  value("flat").role = Role::kInput;
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("reshape 'flat'"), HasSubstr("'drop'"),
                                 HasSubstr("something else makes it")));
}

TEST_F(Validate, RejectsUnknownInputs) {
  node("flat").inputs[0] = ValueId(1'000);
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("reshape 'flat'"), HasSubstr("input 0 is no value")));
}

TEST_F(Validate, RejectsUnknownOutputs) {
  node("flat").outputs[0] = ValueId{};
  value("flat").producer = NodeId{};
  value("flat").role = Role::kInput;
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("reshape 'flat'"), HasSubstr("output 0 is no value")));
}

TEST_F(Validate, RejectsReadingBeforeMaking) {
  // act reads what comes after it: swap the nodes fc and act of the small graph
  g = one_layer();
  std::swap(g.nodes[NodeId(0)], g.nodes[NodeId(1)]);
  value("fc").producer = NodeId(1);
  value("act").producer = NodeId(0);
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("node 'act' (number 0)"), HasSubstr("'fc'"),
                                 HasSubstr("(number 1) makes it")));
}

TEST_F(Validate, RejectsNodesThatReadThemselves) {
  g = one_layer();
  node("act").inputs[0] = id("act");
  EXPECT_THAT(fault_of(g), HasSubstr("before node 'act'"));
}

TEST_F(Validate, RejectsAWrongNumberOfInputs) {
  node("flat").inputs.push_back(id("x"));
  EXPECT_THAT(fault_of(g),
              AllOf(HasSubstr("reshape 'flat'"), HasSubstr("takes 1 inputs"), HasSubstr("got 2")));
}

TEST_F(Validate, RejectsAWrongNumberOfOutputs) {
  g = one_layer();
  node("act").outputs.clear();
  value("act").producer = NodeId{};
  value("act").role = Role::kInput;
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("relu 'act' makes 1 outputs"), HasSubstr("lists 0")));
}

TEST_F(Validate, RejectsOpsBeyondTheTable) {
  node("flat").op = static_cast<OpKind>(250);
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'flat'"), HasSubstr("op number 250")));
}

TEST_F(Validate, RejectsAttributesOfAnotherOp) {
  node("flat").attributes = NormAttributes{};
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'flat'"), HasSubstr("attributes of another op")));
}

TEST_F(Validate, RejectsAttributesThatAreNotANumber) {
  std::get<NormAttributes>(node("bn").attributes).epsilon =
      std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'bn'"), HasSubstr("epsilon is not a number")));
}

TEST_F(Validate, RejectsShapesThatDifferFromTheInferred) {
  value("flat").shape = {4, 5};
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'flat' is f32 [4,5]"), HasSubstr("makes f32 [4,6]")));
}

TEST_F(Validate, RejectsDTypesThatDifferFromTheInferred) {
  value("flat").dtype = DType::kI32;
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'flat' is i32"), HasSubstr("makes f32")));
}

TEST_F(Validate, RejectsRolesThatDoNotFitThePhase) {
  value("flat").role = Role::kGradient;
  EXPECT_THAT(fault_of(g),
              AllOf(HasSubstr("'flat' has role gradient"), HasSubstr("forward it is activation")));
}

TEST_F(Validate, RejectsAccumulatingOpsWithoutThatForm) {
  node("flat").accumulate = true;
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("reshape 'flat'"), HasSubstr("no accumulate form")));
}

TEST_F(Validate, RejectsASumOfAnotherShape) {
  g.nodes[node_named(g, "grad/w")].inputs[2] = id("flat");
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'grad/w'"), HasSubstr("sum must have shape [2,6]"),
                                 HasSubstr("got [4,6]")));
}

TEST_F(Validate, RejectsAccumulatingIntoValuesFromOutside) {
  node("grad/w").inputs[2] = id("w");
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("matmul 'grad/w' accumulates into 'w'"),
                                 HasSubstr("role parameter")));
}

TEST_F(Validate, RejectsReadersAfterAnInPlaceWrite) {
  // sgd reads the first part of the gradient, which grad/w has overwritten by then
  node("w.next").inputs[1] = id("grad/w.part");
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("matmul 'grad/w'"), HasSubstr("'grad/w.part'"),
                                 HasSubstr("sgd 'w.next'"), HasSubstr("reads it later")));
}

// flat is a reshape of drop: the node that adds into drop's bytes also destroys flat.
//   drop ─▶ matmul acc(drop) ─▶ y        flat = reshape(drop) ─▶ relu, after the write
TEST_F(Validate, RejectsReadersThroughAReshapeAfterAnInPlaceWrite) {
  Builder b("views");
  const ValueId x = b.input("x", {2, 2});
  const ValueId sum = b.relu(x, "sum");
  const ValueId view = b.reshape(sum, {4}, "view");
  b.append(OpKind::kMatmul, {x, x, sum}, MatmulAttributes{}, "into", Phase::kForward, true);
  b.relu(view, "late");
  EXPECT_THAT(
      input_error_of([&] { (void)b.finish(); }),
      AllOf(HasSubstr("matmul 'into'"), HasSubstr("overwrites 'sum'"), HasSubstr("relu 'late'")));
}

TEST_F(Validate, RejectsASumThatIsAlsoAnOperand) {
  Builder b("twice");
  const ValueId sum = b.relu(b.input("x", {2, 2}), "sum");
  b.append(OpKind::kMatmul, {sum, sum, sum}, MatmulAttributes{}, "into", Phase::kForward, true);
  EXPECT_THAT(input_error_of([&] { (void)b.finish(); }),
              AllOf(HasSubstr("matmul 'into'"), HasSubstr("also reads it as another input")));
}

TEST_F(Validate, RejectsOverwritingAnOutput) {
  g.outputs.push_back(id("grad/w.part"));
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'grad/w.part'"), HasSubstr("output or the loss")));
}

TEST_F(Validate, RejectsFetchingAParameterThatChanges) {
  g.outputs.push_back(id("w"));
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("sgd 'w.next' overwrites 'w'"), HasSubstr("output")));
}

TEST_F(Validate, RejectsReadingAParameterAfterItsUpdate) {
  Builder b(g);
  b.append(OpKind::kScale, {id("w")}, ScaleAttributes{}, "late", Phase::kUpdate);
  EXPECT_THAT(input_error_of([&] { (void)b.finish(); }),
              AllOf(HasSubstr("sgd 'w.next'"), HasSubstr("scale 'late'")));
}

TEST_F(Validate, RejectsTwoUpdatesOfOneValue) {
  g.updates.push_back(g.updates.front());
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'bn.mean_running' has two updates")));
}

TEST_F(Validate, RejectsUpdatesOfFrozenParameters) {
  value("w").trainable = false;
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("update 'w' -> 'w.next'"), HasSubstr("frozen")));
}

TEST_F(Validate, RejectsUpdatesOfInputs) {
  value("w").role = Role::kInput;
  value("w").trainable = false;
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("update 'w' -> 'w.next'"), HasSubstr("role is input")));
}

TEST_F(Validate, RejectsUpdatesMadeFromAnotherValue) {
  for (Update& update : g.updates) {
    if (update.initial == id("w")) update.final = id("w.next.momentum");
  }
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("update 'w' -> 'w.next.momentum'"),
                                 HasSubstr("no update op makes the second from the first")));
}

TEST_F(Validate, RejectsUpdateOpsThatUpdateNothing) {
  g.updates.pop_back();
  EXPECT_THAT(fault_of(g), HasSubstr("listed as the update of nothing"));
}

TEST_F(Validate, RejectsUpdatesThatNameNoValue) {
  g.updates.push_back({ValueId(500), ValueId(501)});
  EXPECT_THAT(fault_of(g), HasSubstr("an update names no value"));
}

TEST_F(Validate, RejectsDropoutsOnOneStream) {
  Builder b("g");
  const ValueId x = b.input("x", {4});
  b.dropout(b.dropout(x, 0.5, "first"), 0.5, "second");
  g = b.finish();
  std::get<DropoutAttributes>(node("second").attributes).stream = 0;
  EXPECT_THAT(fault_of(g), HasSubstr("dropout 'first' and dropout 'second' share random stream 0"));
}

TEST_F(Validate, RejectsRepeatedOutputs) {
  g.outputs.push_back(g.outputs.front());
  EXPECT_THAT(fault_of(g), HasSubstr("'loss' is an output twice"));
}

TEST_F(Validate, RejectsUnknownGraphOutputs) {
  g.outputs.push_back(ValueId(777));
  EXPECT_THAT(fault_of(g), HasSubstr("an output is no value"));
}

TEST_F(Validate, RejectsALossThatIsNoScalar) {
  g.loss = id("flat");
  EXPECT_THAT(fault_of(g), AllOf(HasSubstr("'flat' is f32 [4,6]"), HasSubstr("scalar")));
}

TEST_F(Validate, RejectsAnUnknownLoss) {
  g.loss = ValueId(777);
  EXPECT_THAT(fault_of(g), HasSubstr("the loss is no value"));
}

}  // namespace
}  // namespace reprise::graph
