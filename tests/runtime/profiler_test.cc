#include "runtime/profiler.h"

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "tests/runtime/fake_program.h"
#include "tests/runtime/temp_folder.h"

namespace reprise::runtime {
namespace {

using graph::OpKind;
using graph::ValueId;
using testing::error_of;
using testing::FakeProgram;
using ::testing::HasSubstr;
using testing::read_file;
using testing::TempFolder;
using testing::write_file;

constexpr const char* kReluKey = "relu f32[4]@plain -> f32[4]@plain";

// a -relu-> b -relu-> c, then c -scale by 3-> d, all f32[4]. Time passes only inside of kernels.
struct ThreeNodes {
  std::unique_ptr<FakeProgram> program = std::make_unique<FakeProgram>();
  std::int64_t now = 0;
  std::vector<std::int64_t> relu_times{100};  // of the runs, one after the other; the last repeats
  std::size_t relu_runs = 0;
  graph::NodeId first, second, third;

  ThreeNodes() {
    const ValueId a = program->value("a", 4);
    const ValueId b = program->value("b", 4);
    const ValueId c = program->value("c", 4);
    const ValueId d = program->value("d", 4);
    const auto relu = [this](const kernels::Call&, const auto&) {
      now += relu_times[std::min(relu_runs++, relu_times.size() - 1)];
    };
    first = program->node("first", {a}, {b}, relu);
    second = program->node("second", {b}, {c}, relu);
    third =
        program->node("third", {c}, {d}, [this](const kernels::Call&, const auto&) { now += 7; });
    auto& nodes = program->prepared_graph().graph.nodes;
    nodes[first].op = nodes[second].op = OpKind::kRelu;
    nodes[third].attributes = graph::ScaleAttributes{.factor = 3};
  }
  TimedProgram timed() {
    return TimedProgram(std::move(program), [this] { return now; });
  }
};

TEST(CostKey, NamesOpShapesAndLayouts) {
  ThreeNodes net;
  const graph::PreparedGraph& prepared = net.program->prepared();
  EXPECT_EQ(cost_key(prepared, net.first), kReluKey);
  EXPECT_EQ(cost_key(prepared, net.first), cost_key(prepared, net.second));
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

TEST(CostKey, HasTheAttributesThatTakeTimeAndNoOthers) {
  ThreeNodes net;
  graph::PreparedGraph prepared = net.program->prepared();
  graph::Node& node = prepared.graph.nodes[net.first];
  const auto key_of = [&](OpKind op, graph::Attributes attributes) {
    node.op = op;
    node.attributes = std::move(attributes);
    return cost_key(prepared, net.first);
  };
  using graph::AxisAttributes;
  using graph::Conv2dAttributes;
  using graph::DropoutAttributes;
  using graph::SgdAttributes;
  EXPECT_EQ(key_of(OpKind::kScale, graph::ScaleAttributes{.factor = 3}),
            "scale f32[4]@plain -> f32[4]@plain");
  EXPECT_EQ(key_of(OpKind::kSlice, AxisAttributes{.axis = 0, .begin = 4, .end = 8}),
            key_of(OpKind::kSlice, AxisAttributes{.axis = 0, .begin = 8, .end = 12}));
  EXPECT_NE(key_of(OpKind::kSlice, AxisAttributes{.axis = 0, .begin = 4, .end = 8}),
            key_of(OpKind::kSlice, AxisAttributes{.axis = 1, .begin = 4, .end = 8}));
  EXPECT_EQ(key_of(OpKind::kDropout, DropoutAttributes{.probability = 0.1, .stream = 7}),
            key_of(OpKind::kDropout, DropoutAttributes{.probability = 0.5, .stream = 8}));
  EXPECT_EQ(key_of(OpKind::kSgd, SgdAttributes{.rate = {.base = 0.1}, .weight_decay = 1e-4}),
            key_of(OpKind::kSgd, SgdAttributes{.rate = {.base = 0.2}}));
  EXPECT_NE(key_of(OpKind::kConv2d, Conv2dAttributes{.stride = {2, 2}}),
            key_of(OpKind::kConv2d, Conv2dAttributes{.stride = {1, 1}}));
}

TEST(TypicalTime, IsTheMedianOfWhatNothingDisturbed) {
  // Up to twice the fastest, 100 to 200, counts: the median of 100 120 110 130 200 is 120.
  const TypicalTime time = typical_time({500, 100, 120, 16'000'000, 110, 130, 200, 201});
  EXPECT_EQ(time.ns, 120);
  EXPECT_EQ(time.runs, 8);
  EXPECT_EQ(time.disturbed, 3);
  EXPECT_EQ(typical_time({42}).ns, 42);
  EXPECT_EQ(typical_time({}).runs, 0);
}

TEST(TimedProgram, TimesDistinctNodesWhileRecordingIsOn) {
  ThreeNodes net;
  net.relu_times = {1999, 150, 120, 110, 130};  // the first two are not recorded
  TimedProgram timed = net.timed();
  const auto step = [&] {
    for (const graph::NodeId node : {net.first, net.second, net.third}) timed.run(node, {}, {});
  };
  step();
  timed.record(true);
  EXPECT_TRUE(timed.measured().empty());
  step();
  timed.run(net.first, {}, {});
  timed.record(false);
  step();
  const auto measured = timed.measured();
  ASSERT_EQ(measured.size(), 2U);
  EXPECT_EQ(measured[0].key, kReluKey);
  EXPECT_EQ(measured[0].example, net.first);
  EXPECT_EQ(measured[0].nodes, 2) << "the second relu is the same node";
  EXPECT_EQ(measured[0].time.runs, 3);
  EXPECT_EQ(measured[0].time.ns, 120);  // of 120 110 130
  EXPECT_EQ(measured[1].time.ns, 7);
  EXPECT_EQ(net.relu_runs, 2U + 2 + 1 + 2) << "every call runs";
}

CostTable table_of(std::string device, std::map<std::string, NodeCost> nodes) {
  return {.device = std::move(device), .nodes = std::move(nodes)};
}

TEST(ApplyCosts, FillsWhatItKnowsAndCountsTheRest) {
  ThreeNodes net;
  graph::PreparedGraph prepared = net.program->prepared();
  for (auto& node : prepared.nodes) node.cost_ns = 1;
  prepared.cost_source = "analytic";
  EXPECT_EQ(apply_costs(table_of("box", {}), prepared), 3);
  EXPECT_EQ(prepared.cost_source, "analytic");
  const CostTable table = table_of("box", {{kReluKey, {.ns = 42, .measured_at = 7}}});
  EXPECT_EQ(count_missing(table, prepared), 1);
  EXPECT_EQ(apply_costs(table, prepared), 1);
  EXPECT_EQ(prepared.nodes[net.first].cost_ns, 42);
  EXPECT_EQ(prepared.nodes[net.second].cost_ns, 42);
  EXPECT_EQ(prepared.nodes[net.third].cost_ns, 1);
  EXPECT_EQ(prepared.cost_source, "measured on box, 1 of 3 nodes analytic");
}

TEST(ApplyCosts, OtherAlgorithmsKeepTheirRatioToTheFirst) {
  ThreeNodes net;
  graph::PreparedGraph prepared = net.program->prepared();
  prepared.nodes[net.first].cost_ns = 10;
  prepared.nodes[net.first].others = {{"lean", 0, 25}};
  prepared.nodes[net.third].others = {{"lean", 0, 25}};  // not in the table
  apply_costs(table_of("box", {{kReluKey, {42, 7}}}), prepared);
  EXPECT_EQ(prepared.nodes[net.first].others[0].cost_ns, 105);  // 42 * 25 / 10
  EXPECT_EQ(prepared.nodes[net.third].others[0].cost_ns, 25);
}

TEST(OldestMeasure, LooksAtWhatTheGraphUses) {
  ThreeNodes net;
  const graph::PreparedGraph& prepared = net.program->prepared();
  const std::string scale = cost_key(prepared, net.third);
  const auto oldest = [&](std::map<std::string, NodeCost> nodes) {
    return oldest_measure(table_of("box", std::move(nodes)), prepared);
  };
  EXPECT_EQ(oldest({{kReluKey, {1, 700}}, {scale, {1, 500}}, {"unused", {1, 3}}}), 500);
  EXPECT_EQ(oldest({{"unused", {1, 3}}}), 0);
}

TEST(CostFile, ReadsWhatItWroteAndNamesDamage) {
  TempFolder folder;
  const CostTable table =
      table_of("oneDNN, 2 threads", {{kReluKey, {42, 1'700'000'000}}, {"b", {}}});
  save_costs(folder / "costs.json", table);
  EXPECT_EQ(load_costs(folder / "costs.json"), table);
  const auto error_with = [&](const std::string& text) {
    write_file(folder / "bad.json", text);
    const std::string message = error_of([&] { (void)load_costs(folder / "bad.json"); });
    EXPECT_THAT(message, HasSubstr("bad.json"));
    return message;
  };
  EXPECT_THAT(error_with(""), HasSubstr("is no table of costs"));
  EXPECT_THAT(error_with("[]"), HasSubstr("is no cost table"));
  EXPECT_THAT(error_with("{}"), HasSubstr("no field 'format'"));
  EXPECT_THAT(error_with(R"({"format":1})"), HasSubstr("format 1; this program reads 2"));
  EXPECT_THAT(error_with(R"({"format":2,"device":"x"})"), HasSubstr("no field 'nodes'"));
  EXPECT_THAT(error_with(R"({"format":2,"device":1,"nodes":{}})"), HasSubstr("device is number"));
  for (const char* cost : {"-1", "1.5", "\"1\"", "18446744073709551615", "5e18"}) {
    const std::string entry = fmt::format(R"({{"ns":{},"measured_at":0}})", cost);
    EXPECT_THAT(error_with(R"({"format":2,"device":"x","nodes":{"k":)" + entry + "}}"),
                HasSubstr("node 'k' has ns"));
  }
  for (const char* entry : {"1", "null", "{}", R"({"ns":1})"}) {
    EXPECT_THAT(error_with(fmt::format(R"({{"format":2,"device":"x","nodes":{{"k":{}}}}})", entry)),
                HasSubstr("node 'k' has"));
  }
}

TEST(CostFile, ReadsOrRefusesEveryDamagedByte) {
  TempFolder folder;
  save_costs(folder / "costs.json", table_of("box", {{kReluKey, {42, 7}}}));
  const std::string good = read_file(folder / "costs.json");
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const char wrong : {'9', '"', '\xff'}) {
      std::string text = good;
      text[at] = wrong;
      write_file(folder / "bad.json", text);
      try {
        (void)load_costs(folder / "bad.json");
      } catch (const base::Error& error) {
        EXPECT_EQ(error.kind(), base::ErrorKind::kInput) << text;
      }
    }
  }
}

}  // namespace
}  // namespace reprise::runtime
