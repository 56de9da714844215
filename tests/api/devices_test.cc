// Several devices in one process: the bits of as many ranks, idle devices, ends in order, and the
// name of the one that fails.

#include "api/devices.h"

#include <atomic>
#include <map>
#include <mutex>
#include <thread>

#include "gmock/gmock.h"

#include "api/data_source.h"
#include "tests/api/small_run.h"
#include "tests/api/training_case.h"
#include "tests/runtime/comm_kinds.h"
#include "tests/support/hooked_backend.h"

namespace reprise::api {
namespace {

using namespace std::chrono_literals;
using runtime::comm::Communicator;
using ::testing::AllOf;
using ::testing::HasSubstr;

TrainOptions mlp(std::int64_t batch) {
  return small_mlp_run(batch, 3);
}

DeviceList reference(int count) {
  return {.device = "reference", .count = count};
}

TrainReport trained(const TrainOptions& options, const DeviceList& devices) {
  return std::get<TrainReport>(train_on_devices(options, devices, 20s));
}

TEST(Devices, AreNamedWithTheirNumber) {
  EXPECT_EQ(parse_devices("cpu:4").count, 4);
  EXPECT_EQ(parse_devices("reference:2").device, "reference");
  EXPECT_EQ(parse_devices("cpu").count, 1);
  for (const char* text :
       {"cpu:0", "cpu:-1", "cpu:", "cpu:x", "cpu:2x", "cpu:99999999999", "cpu:257"})
    EXPECT_THAT(error_of([&] { (void)parse_devices(text); }),
                AllOf(HasSubstr(text), HasSubstr("cpu:4")))
        << text;
  EXPECT_THAT(error_of([] { (void)parse_devices("tpu:2"); }), HasSubstr("no device 'tpu'"));
}

TEST(Devices, GiveTheBitsOfAsManyRanks) {
  std::map<int, TrainReport> ranks;
  std::mutex mutex;
  const auto thrown = runtime::comm::testing::run_ranks(
      runtime::comm::testing::threads_kind(), runtime::comm::testing::world(3),
      [&](Communicator& end) {
        TrainOptions mine = mlp(10);
        mine.session.ranks = {&end, [](Communicator*) {}};
        auto outcome = train(mine);
        const std::lock_guard lock(mutex);
        ranks[end.rank()] = std::get<TrainReport>(std::move(outcome));
      });
  EXPECT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
  const TrainReport report = trained(mlp(10), reference(3));
  EXPECT_EQ(report.losses, ranks.at(0).losses);
  EXPECT_EQ(report.state_hash, ranks.at(0).state_hash);
  EXPECT_EQ(report.world_size, 3);
}

TEST(Devices, OneIsTrainingAlone) {
  EXPECT_EQ(trained(mlp(10), reference(1)).state_hash,
            std::get<TrainReport>(train(mlp(10))).state_hash);
}

// C35: 10 items over 8 devices are five parts of 2; three devices are idle, and no step waits.
TEST(Devices, WithoutItemsAreIdle) {
  const TrainReport alone = std::get<TrainReport>(train(mlp(10)));
  const TrainReport report = trained(mlp(10), reference(8));
  ASSERT_EQ(report.losses.size(), alone.losses.size());
  for (std::size_t i = 0; i < alone.losses.size(); ++i)
    EXPECT_NEAR(report.losses[i], alone.losses[i], 1e-5 * alone.losses[i]);
}

TEST(Devices, ABudgetBelowTheFloorIsAnAnswer) {
  TrainOptions options = mlp(10);
  options.session.plan.budget = bytes_budget(1000);
  const auto outcome = train_on_devices(options, reference(2), 20s);
  EXPECT_GT(std::get<planner::Infeasible>(outcome).floor, 1000);
}

TEST(Devices, AllStopAfterTheSameStep) {
  std::atomic<bool> stop{false};
  TrainOptions options = mlp(9);
  options.steps = 100000;
  TrainHooks hooks;
  hooks.stop = &stop;
  hooks.stepped = [&](const TrainHooks::Step& step) { stop = stop || step.step == 4; };
  const auto report = std::get<TrainReport>(train_on_devices(options, reference(3), 20s, hooks));
  EXPECT_TRUE(report.stopped_early);
  EXPECT_LT(report.steps, 8);
}

// Device 0 is this thread.
TEST(Devices, TheOneThatFailsIsNamed) {
  const auto here = std::this_thread::get_id();
  for (const bool first : {false, true}) {
    TrainOptions options = mlp(8);
    std::atomic<int> calls{0};
    options.session.backend = std::make_shared<test::HookedBackend>(
        kernels::make_backend("reference", {}),
        [&](const graph::PreparedGraph&, graph::NodeId, const kernels::Call&) {
          if ((std::this_thread::get_id() == here) == first && ++calls == 60)
            throw base::device_error("disk on fire");
        });
    const std::string error = error_of([&] { (void)train_on_devices(options, reference(2), 20s); });
    EXPECT_THAT(error, HasSubstr("disk on fire"));
    EXPECT_EQ(error.starts_with("device 1: "), !first) << error;
  }
}

TEST(Devices, WhatIsWrongOnAllOfThemIsSaidOnce) {
  TrainOptions options = mlp(10);
  options.model_options.classes = -3;
  const std::string alone = error_of([&] { (void)train(options); });
  EXPECT_EQ(error_of([&] { (void)train_on_devices(options, reference(3), 20s); }), alone);
}

TEST(Devices, AreRefusedInAProcessThatIsARank) {
  TrainOptions options = mlp(10);
  options.session.ranks = std::move(runtime::comm::make_thread_group({.world_size = 1})[0]);
  EXPECT_THAT(error_of([&] { (void)train_on_devices(options, reference(2), 20s); }),
              HasSubstr("one of several ranks"));
}

TEST(Devices, LoadTheDataOnce) {
  DataCache cache;
  int loads = 0;
  const auto load = [&] {
    ++loads;
    return runtime::make_synthetic_text(5, 100, 1);
  };
  const auto first = cache.get<runtime::TextDataset>(load);
  EXPECT_EQ(cache.get<runtime::TextDataset>(load), first);
  EXPECT_EQ(loads, 1);
}

}  // namespace
}  // namespace reprise::api
