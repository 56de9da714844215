#include "runtime/profiler.h"

#include <memory>
#include <set>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "kernels/backend.h"
#include "tests/runtime/fake_program.h"
#include "tests/runtime/temp_folder.h"

namespace reprise::runtime {
namespace {

using graph::OpKind;
using graph::ValueId;
using ::testing::ElementsAre;
using testing::error_of;
using testing::FakeProgram;
using testing::floats;
using ::testing::HasSubstr;
using ::testing::Pair;
using testing::TempFolder;
using testing::write_file;

constexpr const char* kReluKey = "relu f32[4]@plain -> f32[4]@plain";

// a -relu-> b -relu-> c, then c -scale by 3-> d, all f32[4]. Time passes only inside of kernels.
struct ThreeNodes {
  FakeProgram program;
  std::int64_t now = 0;
  std::vector<std::int64_t> relu_times{100};  // of the runs, one after the other; the last repeats
  std::size_t relu_runs = 0;
  graph::NodeId first, second, third;

  ThreeNodes() {
    const ValueId a = program.value("a", 4);
    const ValueId b = program.value("b", 4);
    const ValueId c = program.value("c", 4);
    const ValueId d = program.value("d", 4);
    const auto relu = [this](const kernels::Call&, const auto&) {
      now += relu_times[std::min(relu_runs++, relu_times.size() - 1)];
    };
    first = program.node("first", {a}, {b}, relu);
    second = program.node("second", {b}, {c}, relu);
    third =
        program.node("third", {c}, {d}, [this](const kernels::Call&, const auto&) { now += 7; });
    auto& nodes = program.prepared_graph().graph.nodes;
    nodes[first].op = nodes[second].op = OpKind::kRelu;
    nodes[third].attributes = graph::ScaleAttributes{.factor = 3};
  }
  ProfileOptions options() {
    return {.repeats = 5, .enough_ns = 1'000'000, .clock_ns = [this] { return now; }};
  }
};

TEST(CostKey, NamesOpAttributesShapesAndLayouts) {
  ThreeNodes net;
  const graph::PreparedGraph& prepared = net.program.prepared();
  EXPECT_EQ(cost_key(prepared, net.first), kReluKey);
  EXPECT_EQ(cost_key(prepared, net.first), cost_key(prepared, net.second));
  EXPECT_EQ(cost_key(prepared, net.third), "scale factor=3 f32[4]@plain -> f32[4]@plain");
  graph::PreparedGraph changed = prepared;
  changed.value_layouts[ValueId(1)] = "blocked";
  EXPECT_NE(cost_key(changed, net.first), kReluKey);
  changed = prepared;
  changed.graph.values[ValueId(1)].shape = {2, 2};
  EXPECT_NE(cost_key(changed, net.first), kReluKey);
  changed = prepared;
  changed.graph.nodes[net.first].accumulate = true;
  EXPECT_NE(cost_key(changed, net.first), kReluKey);
}

TEST(MeasureCosts, TakesTheMedianOfWarmRunsOfEachDistinctNode) {
  ThreeNodes net;
  net.relu_times = {9999, 100, 500, 120, 110, 130};  // the first only warms up
  CostTable table;
  EXPECT_EQ(measure_costs(net.program, table, net.options()), 2);
  EXPECT_THAT(table.cost_ns, ElementsAre(Pair(kReluKey, 120), Pair(HasSubstr("scale"), 7)));
  EXPECT_EQ(net.relu_runs, 6u) << "the second relu is the same node";
  EXPECT_EQ(measure_costs(net.program, table, net.options()), 0) << "all are known";
}

TEST(MeasureCosts, StopsEarlyWhenANodeTakesLong) {
  ThreeNodes net;
  net.relu_times = {1'000'000};
  CostTable table;
  (void)measure_costs(net.program, table, net.options());
  EXPECT_EQ(net.relu_runs, 1u + 3);
}

// w' = w in place, with a workspace: addresses as the executor would give them.
TEST(MeasureCosts, GivesForcedPairsOneBufferAndEverythingElseItsOwn) {
  FakeProgram program;
  const ValueId w = program.value("w", 20);
  const ValueId g = program.value("g", 20);
  const ValueId next = program.value("next", 20);
  std::set<const std::byte*> seen;
  (void)program.node("update", {w, g}, {next},
                     [&](const kernels::Call& call, const auto&) {
                       EXPECT_EQ(call.inputs[0], call.outputs[0]);
                       EXPECT_NE(call.inputs[0], call.inputs[1]);
                       ASSERT_NE(call.workspace, nullptr);
                       for (const std::byte* at : {call.inputs[0], call.inputs[1],
                                                   static_cast<const std::byte*>(call.workspace)}) {
                         EXPECT_EQ(reinterpret_cast<std::uintptr_t>(at) % 64, 0u);
                         seen.insert(at);
                       }
                       for (int i = 0; i < 20; ++i) {
                         EXPECT_GT(floats(call.inputs[1])[i], 0.0f);
                         EXPECT_LE(floats(call.inputs[1])[i], 1.0f);
                       }
                     },
                     10, {{.input = 0, .output = 0, .forced = true}});
  CostTable table;
  EXPECT_EQ(measure_costs(program, table), 1);
  EXPECT_EQ(seen.size(), 3u);
}

// Convolution, batch norm, pooling, dropout and loss, with their gradients and updates.
graph::Graph small_training_graph() {
  graph::Builder builder("small");
  const ValueId images = builder.input("images", {2, 3, 8, 8});
  const ValueId labels = builder.input("labels", {2}, graph::DType::kI32);
  const ValueId filter = builder.parameter("filter", {4, 3, 3, 3});
  ValueId x = builder.conv2d(images, filter, {.padding = {1, 1}});
  const ValueId gamma = builder.parameter("gamma", {4});
  const ValueId beta = builder.parameter("beta", {4});
  x = builder.batch_norm(x, gamma, beta, builder.state("mean", {4}), builder.state("var", {4}));
  x = builder.relu(x);
  x = builder.max_pool(x, {.kernel = {2, 2}, .stride = {2, 2}});
  x = builder.dropout(builder.flatten(x), 0.5);
  x = builder.linear(x, builder.parameter("weight", {10, 64}));
  const ValueId loss = builder.softmax_cross_entropy(x, labels);
  builder.set_loss(loss);
  builder.add_output(loss);
  return graph::make_training_graph(builder.finish(),
                                    {.optimizer = graph::SgdAttributes{.momentum = 0.9}})
      .graph;
}

class MeasureCostsOnABackend : public ::testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Backends, MeasureCostsOnABackend, ::testing::Values("reference", "cpu"));

TEST_P(MeasureCostsOnABackend, RunsEveryNodeOfATrainingGraphAlone) {
  std::unique_ptr<kernels::Backend> backend;
  try {
    backend = kernels::make_backend(GetParam(), {.threads = 1});
  } catch (const base::Error& error) {
    GTEST_SKIP() << error.what();  // built without it
  }
  const auto program = backend->prepare(small_training_graph());
  CostTable table{.device = backend->description(), .cost_ns = {}};
  EXPECT_GT(measure_costs(*program, table, {.repeats = 1, .clock_ns = {}}), 10);
  graph::PreparedGraph prepared = program->prepared();
  EXPECT_EQ(apply_costs(table, prepared), 0);
  EXPECT_EQ(prepared.cost_source, "measured on " + backend->description());
  for (const auto& [key, cost] : table.cost_ns) EXPECT_GT(cost, 0) << key;
}

TEST(ApplyCosts, FillsWhatItKnowsAndCountsTheRest) {
  ThreeNodes net;
  graph::PreparedGraph prepared = net.program.prepared();
  for (auto& node : prepared.nodes) node.cost_ns = 1;
  prepared.cost_source = "analytic";
  EXPECT_EQ(apply_costs({.device = "box", .cost_ns = {}}, prepared), 3);
  EXPECT_EQ(prepared.cost_source, "analytic");
  EXPECT_EQ(apply_costs({.device = "box", .cost_ns = {{kReluKey, 42}}}, prepared), 1);
  EXPECT_EQ(prepared.nodes[net.first].cost_ns, 42);
  EXPECT_EQ(prepared.nodes[net.second].cost_ns, 42);
  EXPECT_EQ(prepared.nodes[net.third].cost_ns, 1);
  EXPECT_EQ(prepared.cost_source, "measured on box, 1 of 3 nodes analytic");
}

TEST(CostFile, ReadsWhatItWroteAndNamesDamage) {
  TempFolder folder;
  const CostTable table{.device = "oneDNN, 2 threads", .cost_ns = {{kReluKey, 42}, {"b", 0}}};
  save_costs(folder / "costs.json", table);
  EXPECT_EQ(load_costs(folder / "costs.json"), table);
  const auto error_with = [&](const std::string& text) {
    write_file(folder / "bad.json", text);
    const std::string message = error_of([&] { (void)load_costs(folder / "bad.json"); });
    EXPECT_THAT(message, HasSubstr("bad.json"));
    return message;
  };
  EXPECT_THAT(error_with(""), HasSubstr("is not JSON"));
  EXPECT_THAT(error_with("[]"), HasSubstr("is no cost table"));
  EXPECT_THAT(error_with("{}"), HasSubstr("no field 'format'"));
  EXPECT_THAT(error_with(R"({"format":2})"), HasSubstr("format 2; this program reads 1"));
  EXPECT_THAT(error_with(R"({"format":1,"device":"x"})"), HasSubstr("no field 'cost_ns'"));
  EXPECT_THAT(error_with(R"({"format":1,"device":1,"cost_ns":{}})"), HasSubstr("device is number"));
  for (const char* cost : {"-1", "1.5", "\"1\"", "18446744073709551615"}) {
    EXPECT_THAT(
        error_with(fmt::format(R"({{"format":1,"device":"x","cost_ns":{{"k":{}}}}})", cost)),
        HasSubstr("cost of 'k' is"));
  }
}

}  // namespace
}  // namespace reprise::runtime
