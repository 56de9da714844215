// Training over several GPUs, on the double with its NCCL: the step of one GPU that has the whole
// batch, the same bits on all ranks, whatever the order in which streams get on.

#include <filesystem>

#include "gmock/gmock.h"

#include "api/devices.h"
#include "kernels/cuda/nccl_sums.h"
#include "tests/cuda/double/device_array.h"
#include "tests/cuda/rank_backend.h"
#include "tests/cuda/rank_case.h"
#include "tests/kernels/agreement.h"

namespace reprise::api {
namespace {

using test::cuda::Policy;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr double kRelative = 1e-5;

double loss_of_all(const GroupRun& group, std::size_t step) {
  double sum = 0;
  for (const RankRun& rank : group.ranks) sum += rank.losses.at(step);
  return sum;
}

// 10 over 2 is 5, 5; 10 over 3 is 4, 4, 2; 7 over 2 is 4, 3.
TEST(CudaRanks, FirstStepIsThatOfOneGpuWithTheWholeBatch) {
  for (const std::string model : {"resnet20", "mlp", "lstm"}) {
    for (const auto& [batch, size] : {std::pair{10, 2}, {10, 3}, {7, 2}}) {
      SCOPED_TRACE(fmt::format("{}, batch {} over {} GPUs", model, batch, size));
      const TrainOptions options = rank_options(model, batch);
      set_gpus(1);
      const RankRun one = run_rank(options, 1);
      set_gpus(size);
      const GroupRun group = run_group(options, size, 1);
      ASSERT_THAT(group.thrown, Each(IsEmpty()));
      EXPECT_NEAR(loss_of_all(group, 0), one.losses[0], kRelative * one.losses[0]);
      for (const auto& [name, values] : one.parameters) {
        for (const RankRun& rank : group.ranks)
          EXPECT_LE(kernels::relative_difference(rank.parameters.at(name), values), kRelative)
              << name;
      }
    }
  }
}

TEST(CudaRanks, HoldTheSameBitsAfterEveryStepRecordedOrNot) {
  for (const std::string model : {"resnet20", "mlp", "lstm"}) {
    for (const int size : {2, 3}) {
      SCOPED_TRACE(fmt::format("{} over {} GPUs", model, size));
      TrainOptions options = rank_options(model, 9);
      std::vector<GroupRun> runs;
      for (const bool recorded : {false, true}) {
        set_gpus(size);
        options.session.record_steps = recorded;
        runs.push_back(run_group(options, size, 4));
        ASSERT_THAT(runs.back().thrown, Each(IsEmpty()));
        for (const RankRun& rank : runs.back().ranks)
          EXPECT_EQ(rank.hashes, runs.back().ranks[0].hashes);
        // The first step runs plainly; of each of the others a rank has one launch.
        EXPECT_EQ(test::cuda::counts().graph_launches,
                  recorded ? 3u * static_cast<std::size_t>(size) : 0u);
      }
      EXPECT_EQ(runs[0].ranks[0].hashes, runs[1].ranks[0].hashes);
      for (std::size_t rank = 0; rank < runs[0].ranks.size(); ++rank)
        EXPECT_EQ(runs[0].ranks[rank].losses, runs[1].ranks[rank].losses);
    }
  }
}

// A pair of accesses that nothing orders ends the process.
TEST(CudaRanks, EveryOrderOfStreamsGivesTheSameBits) {
  std::map<std::string, std::uint64_t> hashes;
  for (int seed = 0; seed < 120; ++seed) {
    const std::string model = seed % 12 == 0 ? "resnet20" : seed % 2 == 0 ? "lstm" : "mlp";
    SCOPED_TRACE(fmt::format("{}, seed {}", model, seed));
    set_gpus(2);
    const Policy policies[] = {Policy::kRandom, Policy::kStarve, Policy::kOthersFirst};
    test::cuda::set_policy(policies[seed % 3], static_cast<std::uint64_t>(seed));
    TrainOptions options = rank_options(model, 4);
    options.session.plan.planner = "segments";  // bytes are used over and over
    options.session.record_steps = seed % 4 < 2;
    const GroupRun group = run_group(options, 2, 3);
    ASSERT_THAT(group.thrown, Each(IsEmpty()));
    ASSERT_EQ(group.ranks[0].hashes, group.ranks[1].hashes);
    const std::uint64_t hash = group.ranks[0].hashes.back();
    ASSERT_EQ(hashes.emplace(model, hash).first->second, hash);
  }
  EXPECT_EQ(hashes.size(), 3u);
}

TEST(CudaRanks, AStepWithoutTheWaitForItsSumsIsFoundOut) {
  for (const bool recorded : {false, true}) {
    for (const std::string model : {"mlp", "resnet20"}) {
      set_gpus(2);
      const test::cuda::CollectedFaults faults;
      TrainOptions options = rank_options(model, 4);
      options.session.record_steps = recorded;
      const GroupRun group = run_group_with<ForgetfulSums>(options, 2, 2);
      EXPECT_THAT(faults.all(), ::testing::Contains(HasSubstr("ncclAllReduce")))
          << model << ", recorded " << recorded;
    }
  }
  set_gpus(1);
}

// Debug mode: each sum is waited for at once, and nothing else is written.
TEST(CudaRanks, EveryInstructionWritesWhatItSaysAndNothingElse) {
  TrainOptions options = rank_options("mlp", 6);
  set_gpus(2);
  const GroupRun plain = run_group(options, 2, 2);
  options.session.debug = true;
  set_gpus(2);
  const GroupRun checked = run_group(options, 2, 2);
  ASSERT_THAT(checked.thrown, Each(IsEmpty()));
  EXPECT_EQ(checked.ranks[0].hashes, plain.ranks[0].hashes);
}

TEST(CudaDevices, AreNamedByNumberOrLeftToTheRank) {
  EXPECT_EQ(parse_device("cuda").ordinal, std::nullopt);
  EXPECT_EQ(parse_device("cuda:1").ordinal, 1);
}

// Two devices of one process, with gradients of two micro-batches, clipped by the norm of all, an
// evaluation and a trace.
TEST(CudaDevices, TrainAsOneDoes) {
  const std::filesystem::path folder =
      std::filesystem::path(::testing::TempDir()) / "reprise_cuda_devices";
  std::filesystem::create_directories(folder);
  TrainOptions options = rank_options("mlp", 8);
  options.evaluate = true;
  options.micro_batches = 2;
  options.steps = 4;
  options.optimizer =
      graph::SgdAttributes{.rate = {.base = 0.01}, .momentum = 0.9, .clip_norm = 0.5};
  std::vector<TrainReport> reports;
  for (const char* devices : {"cuda:0", "cuda:0,1"}) {
    set_gpus(2);
    options.trace_file = folder / "step.json";
    auto outcome = train_on_devices(options, parse_devices(devices), std::chrono::seconds(60));
    ASSERT_TRUE(std::holds_alternative<TrainReport>(outcome));
    reports.push_back(std::get<TrainReport>(std::move(outcome)));
  }
  ASSERT_EQ(reports[0].losses.size(), 4u);
  EXPECT_NEAR(reports[1].losses[0], reports[0].losses[0], kRelative * reports[0].losses[0]);
  for (std::size_t step = 1; step < 4; ++step)
    EXPECT_NEAR(reports[1].losses[step], reports[0].losses[step], 1e-4 * reports[0].losses[step]);
  EXPECT_NEAR(*reports[1].grad_norm, *reports[0].grad_norm, 1e-4 * *reports[0].grad_norm);
  EXPECT_NEAR(*reports[1].test_loss, *reports[0].test_loss, 1e-4 * *reports[0].test_loss);
  EXPECT_TRUE(std::filesystem::exists(folder / "step.rank1.json"));
  std::filesystem::remove_all(folder);
}

// The order of one sum among kernels, and each half of it left out.
class Unordered : public kernels::cuda::NcclSums {
 public:
  Unordered(std::shared_ptr<kernels::cuda::Device> device, bool before, bool after)
      : NcclSums(std::move(device)), before_(before), after_(after) {}

 protected:
  void follow_compute() override {
    if (before_) NcclSums::follow_compute();
  }
  void make_compute_wait(cudaEvent_t finished) override {
    if (after_) NcclSums::make_compute_wait(finished);
  }

 private:
  bool before_, after_;
};

std::vector<std::string> faults_of_a_sum(bool before, bool after) {
  using test::cuda::DeviceArray;
  set_gpus(2);
  const test::cuda::CollectedFaults faults;
  const std::string id = kernels::cuda::make_nccl_id();
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank) {
    ranks.emplace_back([&, rank] {
      const auto device = std::make_shared<kernels::cuda::Device>(rank, false);
      Unordered sums(device, before, after);
      sums.join(id, rank, 2, {});
      const DeviceArray<float> gradient(std::vector<float>{0, 0});
      const auto queue = [&](const char* name, bool written) {
        test::cuda::must(test::cuda::enqueue(
            device->compute(), name, {written ? gradient.written() : gradient.read()}, [=] {
              if (written) gradient.at_run()[0] = static_cast<float>(rank + 1);
            }));
      };
      queue("gradient", true);
      const std::span<std::byte> piece(reinterpret_cast<std::byte*>(gradient.get()), 8);
      sums.start(0, std::span(&piece, 1), graph::DType::kF32);
      sums.wait(0);
      queue("update", false);
      while (!sums.idle()) std::this_thread::yield();
      if (before && after) {
        EXPECT_EQ(gradient.values()[0], 3);
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return faults.all();
}

TEST(NcclSums, ComeBehindWhatComputeHasQueuedAndBeforeWhatWaitsForThem) {
  EXPECT_THAT(faults_of_a_sum(true, true), IsEmpty());
  EXPECT_THAT(faults_of_a_sum(false, true), ::testing::Contains(HasSubstr("'gradient'")));
  EXPECT_THAT(faults_of_a_sum(true, false), ::testing::Contains(HasSubstr("'update'")));
  set_gpus(1);
}

}  // namespace
}  // namespace reprise::api
