// Batch norm over ranks: the step of one rank that has the whole batch, whatever the parts, the
// planner and the communicator.

#include <cmath>
#include <map>
#include <mutex>

#include "gmock/gmock.h"

#include "api/shard.h"
#include "api/trainer.h"
#include "tests/api/training_case.h"
#include "tests/runtime/comm_kinds.h"

namespace reprise::api {
namespace {

using runtime::comm::Communicator;
using runtime::comm::testing::run_ranks;
using runtime::comm::testing::threads_kind;
using runtime::comm::testing::world;
using ::testing::HasSubstr;

std::shared_ptr<Communicator> borrowed(Communicator& end) {
  return {&end, [](Communicator*) {}};
}

// What a step of `x` [N,1] -> batch norm with scale 1 and shift 0 -> loss sum(y target) / count
// leaves on each rank; `parts` are the items of each.
struct Normalised {
  std::vector<float> y, dx, running_mean, running_var;
};

std::vector<Normalised> normalise_over(const std::vector<std::vector<float>>& parts,
                                       const std::string& device) {
  const auto rows = static_cast<std::int64_t>(
      std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
        return a.size() < b.size();
      })->size());
  graph::Builder b("norm");
  const auto x = b.input("x", {rows, 1});
  const auto y = b.batch_norm(x, b.parameter("gamma", {1}), b.parameter("beta", {1}),
                              b.state("mean", {1}), b.state("var", {1}), 0.1, {.epsilon = 0}, "y");
  b.add_output(y);
  b.set_loss(b.reduce_sum(b.mul(y, b.input("slope", {rows, 1}))));
  models::Model model{
      .graph = b.finish(),
      .initializers = {{"gamma", {Kind::kOnes, 0}}, {"beta", {}}, {"mean", {}}, {"var", {}}}};
  std::vector<Normalised> results(parts.size());
  const auto thrown =
      run_ranks(threads_kind(), world(static_cast<int>(parts.size())), [&](Communicator& end) {
        SessionOptions options = on(device);
        options.ranks = borrowed(end);
        options.synchronise_batch_norm = true;
        const auto session = make_session(
            model, options,
            {.optimizer = graph::SgdAttributes{.rate = {.base = 0}}, .fetch_gradients = {x}});
        const auto rank = static_cast<std::size_t>(end.rank());
        std::vector<float> mine = parts[rank], slope;
        std::vector<std::int64_t> items;
        for (const auto& each : parts) items.push_back(static_cast<std::int64_t>(each.size()));
        for (const float value : mine) slope.push_back(value * value);
        mine.resize(static_cast<std::size_t>(rows), 1e6F);  // padding that would be seen anywhere
        slope.resize(static_cast<std::size_t>(rows), 0);
        session->set_input("x", bytes_of(mine));
        session->set_input("slope", bytes_of(slope));
        session->set_gradient_weight(1);
        session->set_batch_parts(items);
        (void)session->step();
        results[rank] = {numbers(session->read("y")), numbers(session->read("grad/x")),
                         numbers(session->read("mean")), numbers(session->read("var"))};
      });
  EXPECT_THAT(thrown, ::testing::Each(::testing::IsEmpty()));
  return results;
}

// C43: C = 1, [0,0] and [4,4], rate 0.1 from 0: mean 2, population variance 4, sample variance
// 16/3. Both ranks save 0.2 and 0.1 * 16 / 3; y is (x - 2) / 2.
TEST(BatchNormOverRanks, RunningStatisticsAreThoseOfAllItemsOnEveryRank) {
  for (const char* device : {"reference", "cpu"}) {
    const auto results = normalise_over({{0, 0}, {4, 4}}, device);
    for (const Normalised& each : results) {
      EXPECT_NEAR(each.running_mean[0], 0.2, 1e-6) << device;
      EXPECT_NEAR(each.running_var[0], 1.6 / 3, 1e-6) << device;
    }
    EXPECT_THAT(results[0].y, ::testing::Each(::testing::FloatNear(-1, 1e-6F)));
    EXPECT_THAT(results[1].y, ::testing::Each(::testing::FloatNear(1, 1e-6F)));
  }
}

// Parts of 3, 1 and 0 items, weighted by count: mean (1 + 2 + 3 + 6) / 4 = 3, variance
// (4 + 1 + 0 + 9) / 4 = 3.5. Padding, a million, counts nowhere and has no gradient.
TEST(BatchNormOverRanks, PartsOfOtherSizesAreWeightedAndPaddingDoesNotCount) {
  for (const char* device : {"reference", "cpu"}) {
    const auto results = normalise_over({{1, 2, 3}, {6}, {}}, device);
    const double deviation = std::sqrt(3.5);
    for (const Normalised& each : results) {
      EXPECT_NEAR(each.running_mean[0], 0.3, 1e-6) << device;
      EXPECT_NEAR(each.running_var[0], 0.1 * 14 / 3, 1e-6) << device;  // 14 / (4 - 1)
    }
    EXPECT_NEAR(results[0].y[0], -2 / deviation, 1e-6);
    EXPECT_NEAR(results[1].y[0], 3 / deviation, 1e-6);
    EXPECT_THAT(results[2].y, ::testing::Each(0.0F));
    // dy = x^2 = 1 4 9 36, mean 12.5; xhat dy sums to (-2 - 4 + 0 + 108) / d = 102 / d:
    // dx = (dy - 12.5 - (x - 3) 102 / (4 * 3.5)) / d
    const auto dx = [&](double x) { return (x * x - 12.5 - (x - 3) * 102 / 14) / deviation; };
    EXPECT_NEAR(results[0].dx[0], dx(1), 1e-5) << device;
    EXPECT_NEAR(results[0].dx[2], dx(3), 1e-5) << device;
    EXPECT_NEAR(results[1].dx[0], dx(6), 1e-5) << device;
    EXPECT_EQ(results[1].dx[1], 0);
    EXPECT_THAT(results[2].dx, ::testing::Each(0.0F));
  }
}

// Mean 1e4 with deviation 1 on either rank: nothing of the variance is lost in the mean.
TEST(BatchNormOverRanks, ALargeMeanDoesNotCancel) {
  for (const char* device : {"reference", "cpu"}) {
    const auto results = normalise_over({{9999, 10001}, {9999, 10001}}, device);
    EXPECT_NEAR(results[0].running_var[0], 0.1 * 4 / 3, 1e-6) << device;  // 4 / (4 - 1)
    EXPECT_NEAR(results[0].y[1], 1, 1e-5) << device;
  }
}

// One value over all ranks has no variance: an error of all of them, not a NaN.
TEST(BatchNormOverRanks, OneValueInAllIsRefused) {
  graph::Builder b("norm");
  const auto y = b.batch_norm(b.input("x", {2, 1}), b.parameter("gamma", {1}),
                              b.parameter("beta", {1}), b.state("mean", {1}), b.state("var", {1}));
  b.set_loss(b.reduce_sum(y));
  models::Model model{.graph = b.finish(),
                      .initializers = {{"gamma", {}}, {"beta", {}}, {"mean", {}}, {"var", {}}}};
  for (const char* device : {"reference", "cpu"}) {
    const auto thrown = run_ranks(threads_kind(), world(2), [&](Communicator& end) {
      SessionOptions options = on(device);
      options.ranks = borrowed(end);
      options.synchronise_batch_norm = true;
      const auto session = make_session(model, options, {});
      session->set_input("x", bytes_of(std::vector<float>{1, 2}));
      session->set_gradient_weight(1);
      session->set_batch_parts(std::vector<std::int64_t>{1, 0});
      (void)session->step();
    });
    EXPECT_THAT(thrown, ::testing::Contains(HasSubstr("1 values per channel together"))) << device;
  }
}

}  // namespace
}  // namespace reprise::api
