// The trace of a step: lanes, every instruction under its name, what is recomputed, sums with their
// members, and the bytes in use.

#include "api/trace.h"

#include <fstream>
#include <map>
#include <mutex>
#include <set>

#include "gmock/gmock.h"

#include "api/trainer.h"
#include "tests/api/training_case.h"
#include "tests/runtime/comm_group.h"
#include "tests/runtime/temp_folder.h"

namespace reprise::api {
namespace {

using runtime::comm::Communicator;
using runtime::comm::testing::run_ranks;
using runtime::comm::testing::threads_kind;
using runtime::comm::testing::world;
using Json = nlohmann::ordered_json;

models::Model deep_mlp() {
  return models::make_model("mlp", {.batch = 64,
                                    .channels = 1,
                                    .height = 4,
                                    .width = 4,
                                    .classes = 3,
                                    .hidden = 16,
                                    .layers = 8});
}

struct Traced {
  schedule::PlannedStep planned;
  runtime::StepRecord record;
  Json document;
};

// One step of each of `ranks` ranks, at the floor of memory, as rank 0 traces it.
Traced traced_step(int ranks, Bytes bucket_bytes) {
  Traced traced;
  const auto thrown = run_ranks(threads_kind(), world(ranks), [&](Communicator& end) {
    SessionOptions options = on("cpu", "auto", {.kind = Budget::Kind::kFloor});
    options.ranks = {&end, [](Communicator*) {}};
    options.bucket_bytes = bucket_bytes;
    const models::Model model = deep_mlp();
    const auto session = make_session(model, options, {});
    feed(*session, model.graph, 3, 0);
    session->set_gradient_weight(1.0F / static_cast<float>(ranks));
    runtime::StepRecord record;
    (void)session->step(&record);
    if (end.rank() != 0) return;
    traced.planned = session->planned();
    traced.record = record;
    traced.document =
        trace_document(session->planned(), record, {.rank = 0, .world_size = ranks, .step = 1});
  });
  EXPECT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
  return traced;
}

std::vector<Json> slices(const Json& document, int lane) {
  std::vector<Json> found;
  for (const Json& event : document["traceEvents"])
    if (event["ph"] == "X" && event["tid"] == lane) found.push_back(event);
  return found;
}

TEST(Trace, EveryInstructionIsASliceUnderTheNameOfItsNode) {
  const Traced traced = traced_step(1, 1 << 20);
  std::vector<std::string> names, wanted;
  std::int64_t recomputed = 0, stretches = 0;
  double end = 0;
  for (const Json& slice : slices(traced.document, 1)) {
    if (slice["name"] == "recompute") {
      ++stretches;
      continue;
    }
    names.push_back(slice["name"]);
    recomputed += slice["args"]["recomputed"].get<bool>();
    EXPECT_GE(slice["ts"].get<double>(), end);  // one at a time
    end = slice["ts"].get<double>() + slice["dur"].get<double>() - 1e-3;
  }
  std::map<graph::NodeId, int> runs;
  std::int64_t again = 0;
  for (const auto& instruction : traced.planned.schedule.instructions) {
    wanted.push_back(traced.planned.prepared.graph.nodes[instruction.node].name);
    again += runs[instruction.node]++ > 0;
  }
  EXPECT_EQ(names, wanted);
  EXPECT_EQ(recomputed, again);
  EXPECT_GT(again, 0) << "the budget asks for none";
  EXPECT_GT(stretches, 0);
  EXPECT_LE(stretches, again);
  EXPECT_THAT(slices(traced.document, 2), ::testing::IsEmpty());
}

TEST(Trace, EverySumIsASliceBetweenItsStartAndItsWait) {
  const Traced traced = traced_step(2, 2000);
  const auto sums = slices(traced.document, 2);
  ASSERT_GT(sums.size(), 1u);
  std::set<std::string> members;
  Bytes bytes = 0;
  for (const Json& sum : sums) {
    EXPECT_GE(sum["ts"].get<double>(), sum["args"]["started_us"].get<double>());
    bytes += sum["args"]["bytes"].get<Bytes>();
    for (const std::string member : sum["args"]["members"])
      EXPECT_TRUE(members.insert(member).second) << member << " is summed twice";
  }
  const graph::Graph& graph = traced.planned.prepared.graph;
  EXPECT_EQ(members.size(), 18u);  // 9 layers with a weight and a bias each
  EXPECT_GE(bytes, 4 * graph::parameter_count(graph));
  std::map<std::string, double> wait_end;
  for (const Json& slice : slices(traced.document, 1)) {
    if (slice["cat"] == "wait")
      wait_end[slice["name"]] = slice["ts"].get<double>() + slice["dur"].get<double>();
  }
  EXPECT_EQ(wait_end.size(), members.size());
  for (const Json& sum : sums) {
    for (const std::string member : sum["args"]["members"]) {
      const std::string wait = "await/" + member.substr(member.find('/') + 1);
      EXPECT_LE(sum["ts"].get<double>() + sum["dur"].get<double>(), wait_end.at(wait));
    }
  }
}

// The largest of the counter is the largest sum of live bytes, which fits into the arena.
TEST(Trace, BytesInUseAreThoseOfTheSchedule) {
  const Traced traced = traced_step(1, 1 << 20);
  Bytes most = 0;
  std::size_t count = 0;
  for (const Json& event : traced.document["traceEvents"]) {
    if (event["ph"] != "C") continue;
    ++count;
    most = std::max(most, event["args"]["bytes"].get<Bytes>());
  }
  EXPECT_EQ(count, traced.planned.schedule.instructions.size());
  EXPECT_LE(most, traced.planned.schedule.arena_bytes);
  EXPECT_GT(most, traced.planned.schedule.arena_bytes * 9 / 10);
}

TEST(Trace, SeveralRanksWriteAFileEach) {
  const std::filesystem::path path = "folder.d/step.json";
  EXPECT_EQ(trace_path(path, {.rank = 0, .world_size = 1}), path);
  EXPECT_EQ(trace_path(path, {.rank = 3, .world_size = 4}), "folder.d/step.rank3.json");
  EXPECT_EQ(trace_path("step", {.rank = 0, .world_size = 2}), "step.rank0");
}

// The third step of five; the last of two.
TEST(Trace, OfARunIsThatOfALaterStep) {
  const runtime::testing::TempFolder folder;
  for (const auto& [steps, traced] : {std::pair{5, 3}, std::pair{2, 2}}) {
    TrainOptions options;
    options.model = "mlp";
    options.model_options = {.batch = 8, .channels = 1, .height = 4, .width = 4, .classes = 3};
    options.session = on("cpu", "keep_all");
    options.steps = steps;
    options.evaluate = false;
    options.trace_file = folder.path() / "step.json";
    const auto report = std::get<TrainReport>(train(options));
    EXPECT_EQ(report.trace_file, options.trace_file);
    std::ifstream file(options.trace_file);
    const Json document = Json::parse(file);
    const std::string name = document["traceEvents"][0]["args"]["name"];
    EXPECT_THAT(name, ::testing::HasSubstr(fmt::format("step {}", traced)));
  }
}

// What cannot be written is a warning: the training, and what it saves, is worth more.
TEST(Trace, ThatCannotBeWrittenDoesNotEndTheRun) {
  const runtime::testing::TempFolder folder;
  TrainOptions options;
  options.model = "mlp";
  options.model_options = {.batch = 8, .channels = 1, .height = 4, .width = 4, .classes = 3};
  options.session = on("cpu", "keep_all");
  options.steps = 5;
  options.evaluate = false;
  options.trace_file = folder.path() / "gone" / "step.json";
  const auto report = std::get<TrainReport>(train(options));
  EXPECT_EQ(report.steps, 5);
  EXPECT_FALSE(report.trace_file);
  ASSERT_EQ(report.warnings.size(), 1u);
  EXPECT_THAT(report.warnings[0], ::testing::HasSubstr("gone"));
}

}  // namespace
}  // namespace reprise::api
