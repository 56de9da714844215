// The rewrite on tiny graphs, with the nodes that must come out written down.

#include "graph/mixed_precision.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/autodiff.h"
#include "graph/text.h"
#include "tests/graph/small_graphs.h"

namespace reprise::graph {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

// "bf16 y = matmul(x.bf16, w.bf16)" for each node.
std::vector<std::string> nodes(const Graph& graph) {
  std::vector<std::string> all;
  for (const Node& node : graph.nodes) {
    std::string inputs;
    for (const ValueId input : node.inputs)
      inputs += (inputs.empty() ? "" : ", ") + graph.values[input].name;
    all.push_back(fmt::format("{} {} = {}({})", dtype_name(graph.values[node.outputs[0]].dtype),
                              node.name, op_info(node.op).name, inputs));
  }
  return all;
}

TEST(MixedPrecision, CastsOperandsOfALinearLayerAndWhatTheLossReads) {
  EXPECT_THAT(
      nodes(mixed_precision(one_layer())),
      ElementsAre("bf16 x.bf16 = cast(x)", "bf16 w.bf16 = cast(w)",
                  "bf16 fc = matmul(x.bf16, w.bf16)", "bf16 act = relu(fc)",
                  "f32 act.f32 = cast(act)", "f32 loss = mean_squared_error(act.f32, target)"));
}

TEST(MixedPrecision, CastsAWeightOnceForAllItsReaders) {
  Builder b("shared");
  const ValueId x = b.input("x", {4, 3}), w = b.parameter("w", {3, 3});
  const ValueId y = b.linear(b.linear(x, w, "a"), w, "b");
  b.set_loss(b.mean_squared_error(y, x, Reduction::kMean, "loss"));
  EXPECT_THAT(nodes(mixed_precision(b.finish())),
              ElementsAre("bf16 x.bf16 = cast(x)", "bf16 w.bf16 = cast(w)",
                          "bf16 a = matmul(x.bf16, w.bf16)", "bf16 b = matmul(a, w.bf16)",
                          "f32 b.f32 = cast(b)", "f32 loss = mean_squared_error(b.f32, x)"));
}

TEST(MixedPrecision, LeavesIslandsOfF32AndCastsNothingBack) {
  Builder b("island");
  const ValueId x = b.input("x", {4, 3});
  const ValueId y = b.sigmoid(b.sigmoid(b.relu(x, "act"), "s1"), "s2");
  b.set_loss(b.reduce_sum(b.relu(b.reshape(y, {12}, "flat"), "last"), {}, false, "loss"));
  EXPECT_THAT(
      nodes(mixed_precision(b.finish())),
      ElementsAre("bf16 x.bf16 = cast(x)", "bf16 act = relu(x.bf16)", "f32 act.f32 = cast(act)",
                  "f32 s1 = sigmoid(act.f32)", "f32 s2 = sigmoid(s1)", "f32 flat = reshape(s2)",
                  "bf16 flat.bf16 = cast(flat)", "bf16 last = relu(flat.bf16)",
                  "f32 last.f32 = cast(last)", "f32 loss = reduce_sum(last.f32)"));
}

TEST(MixedPrecision, AddsLossesInF32) {
  Builder b("losses");
  const ValueId x = b.input("x", {4, 3}), t = b.input("t", {4, 3});
  const ValueId one = b.mean_squared_error(b.relu(x, "r"), t, Reduction::kMean, "one");
  const ValueId two = b.mean_squared_error(x, t, Reduction::kMean, "two");
  b.set_loss(b.add(one, two, "both"));
  EXPECT_THAT(nodes(mixed_precision(b.finish())),
              ElementsAre("bf16 x.bf16 = cast(x)", "bf16 r = relu(x.bf16)", "f32 r.f32 = cast(r)",
                          "f32 one = mean_squared_error(r.f32, t)",
                          "f32 two = mean_squared_error(x, t)", "f32 both = add(one, two)"));
}

TEST(MixedPrecision, KeepsAssignedStatesLastAndFetchedOutputsF32) {
  Builder b("states");
  const ValueId x = b.input("x", {4, 3}), w = b.parameter("w", {3, 3});
  const ValueId h = b.state("h", {4, 3}), k = b.state("k", {4, 3});
  const ValueId y = b.linear(x, w, "y");
  const ValueId z = b.relu(y, "z");
  b.assign(h, y);
  b.assign(k, z);
  b.add_output(y);
  b.set_loss(b.reduce_sum(z, {}, false, "loss"));
  const Graph mixed = mixed_precision(b.finish());
  EXPECT_THAT(nodes(mixed), ElementsAre("bf16 x.bf16 = cast(x)", "bf16 w.bf16 = cast(w)",
                                        "bf16 y = matmul(x.bf16, w.bf16)", "bf16 z = relu(y)",
                                        "f32 z.f32 = cast(z)", "f32 loss = reduce_sum(z.f32)",
                                        "f32 y.f32 = cast(y)", "f32 h.next = assign(h, y.f32)",
                                        "f32 k.next = assign(k, z.f32)"));
  EXPECT_EQ(mixed.values[mixed.outputs[0]].name, "y.f32");
  EXPECT_EQ(mixed.values[mixed.loss].name, "loss");
}

TEST(MixedPrecision, LeavesIntegersAlone) {
  Builder b("counts");
  const ValueId x = b.input("x", {4, 3}), labels = b.input("labels", {4}, DType::kI32);
  const ValueId count = b.correct_count(x, labels, "correct");
  b.add_output(b.reshape(b.add(count, count, "twice"), {1}, "named"));
  EXPECT_THAT(nodes(mixed_precision(b.finish())),
              ElementsAre("i32 correct = correct_count(x, labels)",
                          "i32 twice = add(correct, correct)", "i32 named = reshape(twice)"));
}

TEST(MixedPrecision, RefusesWhatIsMixedAlreadyAndBackwardNodes) {
  EXPECT_THAT(input_error_of([] { (void)mixed_precision(mixed_precision(one_layer())); }),
              HasSubstr("'x.bf16' is bf16 already"));
  const Graph training = make_training_graph(one_layer(), {}).graph;
  EXPECT_THAT(input_error_of([&] { (void)mixed_precision(training); }),
              HasSubstr("is a backward node"));
}

Graph two_uses() {
  Builder b("two_uses");
  const ValueId x = b.input("x", {4, 3}), w = b.parameter("w", {3, 3});
  const ValueId bias = b.parameter("bias", {3});
  const ValueId y = b.relu(b.linear(b.relu(b.linear(x, w, bias, "a"), "ra"), w, "b"), "rb");
  b.set_loss(b.mean_squared_error(y, x, Reduction::kMean, "loss"));
  return b.finish();
}

// Both products for dw are f32 and add up in place: w's gradient is never rounded.
TEST(MixedPrecision, GradientsOfWeightsAreSummedInF32) {
  const Graph training = make_training_graph(mixed_precision(two_uses()), {}).graph;
  std::vector<std::string> products;
  for (const Node& node : training.nodes) {
    if (node.phase != Phase::kBackward || node.op != OpKind::kMatmul) continue;
    products.push_back(fmt::format("{} {}{}", node.name,
                                   dtype_name(training.values[node.outputs[0]].dtype),
                                   node.accumulate ? " accumulate" : ""));
  }
  EXPECT_THAT(products, ElementsAre("grad/b.db f32", "grad/b.da bf16", "grad/a.db f32 accumulate"));
}

TEST(MixedPrecision, GradientsThatUpdatesReadAreF32WithMicroBatchesToo) {
  for (const std::int64_t micro_batches : {1, 3}) {
    const Graph training =
        make_training_graph(mixed_precision(two_uses()), {.micro_batches = micro_batches}).graph;
    int updates = 0;
    for (const Node& node : training.nodes) {
      if (node.op != OpKind::kSgd) continue;
      ++updates;
      for (const ValueId input : node.inputs)
        EXPECT_EQ(training.values[input].dtype, DType::kF32) << training.values[input].name;
    }
    EXPECT_EQ(updates, 2);
    // Each copy after the first adds into the first one's sum; none is added by a node of its own.
    const auto adds =
        std::count_if(training.nodes.begin(), training.nodes.end(), [&](const Node& node) {
          return node.op == OpKind::kAdd && node.phase == Phase::kBackward;
        });
    EXPECT_EQ(adds, 0);
  }
}

TEST(MixedPrecision, FetchedGradientsOfBf16ValuesAreF32) {
  const Graph forward = mixed_precision(one_layer());
  ValueId act;
  for (std::size_t i = 0; i < forward.values.size(); ++i)
    if (forward.values[ValueId(i)].name == "act") act = ValueId(i);
  const Graph training = make_training_graph(forward, {.fetch_gradients = {act}}).graph;
  const Value& fetched = training.values[training.outputs.back()];
  EXPECT_EQ(fetched.name, "grad/act");
  EXPECT_EQ(fetched.dtype, DType::kF32);
}

TEST(MixedPrecision, PrintsAndParses) {
  const Graph training = make_training_graph(mixed_precision(two_uses()), {}).graph;
  const std::string text = print_graph(training);
  EXPECT_THAT(text, HasSubstr("value w.bf16 activation bf16 [3,3]\n"));
  EXPECT_THAT(text, HasSubstr("node w.bf16 forward cast (w) -> (w.bf16) dtype=bf16\n"));
  EXPECT_EQ(parse_graph(text), training);
}

}  // namespace
}  // namespace reprise::graph
