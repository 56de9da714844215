// Training in bf16 over several GPUs, on the double with its NCCL: gradients of parameters, which
// are what is summed over the ranks, are f32 as ever.

#include <cmath>

#include "gmock/gmock.h"

#include "tests/cuda/rank_case.h"
#include "tests/kernels/agreement.h"

namespace reprise::api {
namespace {

using ::testing::Each;
using ::testing::IsEmpty;

TrainOptions bf16_options(const std::string& model, std::int64_t batch) {
  TrainOptions options = rank_options(model, batch);
  options.model_options.precision = graph::DType::kBF16;
  return options;
}

// Ranks sum a weight's gradient, and the statistics of batch norm, in another order than one GPU:
// last bits of f32, which round some numbers to the other neighbour, 2^-7 of them away.
TEST(CudaBF16Ranks, FirstStepIsThatOfOneGpuWithTheWholeBatch) {
  for (const std::string model : {"resnet20", "mlp", "lstm"}) {
    SCOPED_TRACE(model);
    const TrainOptions options = bf16_options(model, 7);  // 4 and 3
    set_gpus(1);
    const RankRun one = run_rank(options, 1);
    set_gpus(2);
    const GroupRun group = run_group(options, 2, 1);
    ASSERT_THAT(group.thrown, Each(IsEmpty()));
    const double loss = group.ranks[0].losses[0] + group.ranks[1].losses[0];
    EXPECT_NEAR(loss, one.losses[0], one.losses[0] / 128);
    for (const auto& [name, values] : one.parameters)
      EXPECT_LE(kernels::relative_difference(group.ranks[0].parameters.at(name), values), 1.0 / 128)
          << name;
  }
  set_gpus(1);
}

TEST(CudaBF16Ranks, HoldTheSameBitsAfterEveryStepRecordedOrNot) {
  for (const std::string model : {"resnet20", "lstm"}) {
    SCOPED_TRACE(model);
    TrainOptions options = bf16_options(model, 4);
    options.session.plan.planner = "segments";  // bytes are used over and over
    std::vector<std::uint64_t> hashes;
    for (const bool recorded : {false, true}) {
      set_gpus(2);
      test::cuda::set_policy(test::cuda::Policy::kStarve, recorded ? 1 : 2);
      options.session.record_steps = recorded;
      const GroupRun group = run_group(options, 2, 3);
      ASSERT_THAT(group.thrown, Each(IsEmpty()));
      EXPECT_EQ(group.ranks[0].hashes, group.ranks[1].hashes);
      hashes.push_back(group.ranks[0].hashes.back());
    }
    EXPECT_EQ(hashes[0], hashes[1]);
  }
  set_gpus(1);
}

}  // namespace
}  // namespace reprise::api
