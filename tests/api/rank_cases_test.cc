// Ways in which data-parallel training goes wrong in silence, each as the smallest case that shows
// it.

#include <cmath>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "gmock/gmock.h"

#include "api/checkpoint.h"
#include "api/devices.h"
#include "api/trainer.h"
#include "tests/api/training_case.h"
#include "tests/runtime/comm_kinds.h"
#include "tests/runtime/image_files.h"
#include "tests/support/hooked_backend.h"

namespace reprise::api {
namespace {

using namespace std::chrono_literals;
using runtime::comm::Communicator;
using runtime::comm::testing::run_ranks;
using runtime::comm::testing::threads_kind;
using runtime::comm::testing::world;
using ::testing::Each;
using ::testing::FloatNear;
using ::testing::IsEmpty;

// One step of plain SGD at rate 1 on each rank; `set` gives the inputs and the weight. Returns w of
// each rank before minus after: the gradient.
std::vector<std::vector<float>> gradients_of(const models::Model& model, int ranks,
                                             SessionOptions options,
                                             const std::function<void(Session&, std::size_t)>& set,
                                             const std::string& parameter = "w") {
  std::vector<std::vector<float>> gradients(static_cast<std::size_t>(ranks));
  const auto thrown = run_ranks(threads_kind(), world(ranks), [&](Communicator& end) {
    SessionOptions mine = options;
    mine.ranks = {&end, [](Communicator*) {}};
    const auto session = make_session(
        model, mine, {.optimizer = graph::SgdAttributes{.rate = {.base = 1.0}, .momentum = 0}});
    const auto rank = static_cast<std::size_t>(end.rank());
    set(*session, rank);
    std::vector<float> gradient = numbers(session->read(parameter));
    (void)session->step();
    const std::vector<float> after = numbers(session->read(parameter));
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] -= after[i];
    gradients[rank] = std::move(gradient);
  });
  EXPECT_THAT(thrown, Each(IsEmpty()));
  return gradients;
}

// loss = mean of w x over the items: the gradient is the mean of x.
models::Model mean_of_product(std::int64_t rows) {
  graph::Builder b("mean");
  const auto y = b.matmul(b.input("x", {rows, 1}), b.parameter("w", {1, 1}));
  b.set_loss(b.reduce_sum(y));
  return {.graph = b.finish(), .initializers = {{"w", {Kind::kOnes, 0}}}};
}

// C35: a split of the user's own, 5, 3, 1 and 0 of 9 items 1..9: the mean is 5 on all four ranks.
TEST(RankCases, PartsMayBeCutAsTheUserLikes) {
  const std::vector<std::size_t> parts{5, 3, 1, 0};
  const auto gradients =
      gradients_of(mean_of_product(5), 4, on("reference"), [&](Session& session, std::size_t rank) {
        std::size_t first = 0;
        for (std::size_t r = 0; r < rank; ++r) first += parts[r];
        std::vector<float> x(5, 0.0F);
        for (std::size_t i = 0; i < parts[rank]; ++i) x[i] = static_cast<float>(first + i + 1);
        session.set_input("x", bytes_of(x));
        session.set_gradient_weight(1.0F / 9.0F);  // the loss is a sum
      });
  for (const auto& each : gradients) EXPECT_THAT(each, Each(FloatNear(5, 1e-6F)));
}

// C37: 3 images in batches of 2 over 2 ranks: one full batch a pass, and the third image is left
// out of that pass on both ranks alike, so none waits for the other.
TEST(RankCases, AllRanksTakeTheSameNumberOfStepsAndWhatFillsNoBatchIsLeftOut) {
  runtime::testing::TempFolder folder;
  runtime::testing::write_idx_folder(folder);
  TrainOptions options;
  options.model = "mlp";
  options.model_options = {.batch = 2, .hidden = 4, .layers = 1};
  options.data = {.kind = DataSpec::Kind::kIdx, .path = folder.path()};
  options.session = on("reference", "keep_all");
  options.evaluate = false;
  options.epochs = 4;
  const auto report =
      std::get<TrainReport>(train_on_devices(options, {.device = "reference", .count = 2}, 20s));
  EXPECT_EQ(report.steps, 4);
}

// C38: two parameters of 4; their gradients are 1 and 10 on rank 0, 3 and 30 on rank 1, where each
// kernel may come late. The means are 2 and 20, 100 times.
TEST(RankCases, SumsPairUpWhicheverRankIsLate) {
  graph::Builder b("two");
  const auto product = [&](const char* parameter, const char* input) {
    return b.reduce_sum(b.mul(b.parameter(parameter, {4}), b.input(input, {4})));
  };
  const auto first = product("w", "g1");
  b.set_loss(b.add(first, product("v", "g2")));
  const models::Model model{.graph = b.finish(),
                            .initializers = {{"w", {Kind::kOnes, 0}}, {"v", {Kind::kOnes, 0}}}};
  std::vector<std::pair<std::vector<float>, std::vector<float>>> ends(2);
  const auto thrown = run_ranks(threads_kind(), world(2), [&](Communicator& end) {
    std::mt19937 random(38);
    SessionOptions options = on("reference");
    options.ranks = {&end, [](Communicator*) {}};
    options.backend = std::make_shared<test::HookedBackend>(
        kernels::make_backend("reference", {}),
        [&](const graph::PreparedGraph&, graph::NodeId, const kernels::Call&) {
          if (end.rank() == 1 && random() % 4 == 0) std::this_thread::sleep_for(200us);
        });
    const auto session = make_session(
        model, options, {.optimizer = graph::SgdAttributes{.rate = {.base = 1.0}, .momentum = 0}});
    const float scale = end.rank() == 0 ? 1.0F : 3.0F;
    for (int step = 0; step < 100; ++step) {
      session->set_input("g1", bytes_of(std::vector<float>(4, scale)));
      session->set_input("g2", bytes_of(std::vector<float>(4, 10 * scale)));
      session->set_gradient_weight(0.5F);
      (void)session->step();
    }
    ends[static_cast<std::size_t>(end.rank())] = {numbers(session->read("w")),
                                                  numbers(session->read("v"))};
  });
  EXPECT_THAT(thrown, Each(IsEmpty()));
  for (const auto& [w, v] : ends) {
    EXPECT_THAT(w, Each(1.0F - 100 * 2.0F));
    EXPECT_THAT(v, Each(1.0F - 100 * 20.0F));
  }
}

// C40: [1,2,3] and [3,4,5] have the mean [2,3,4], and one rank alone keeps every bit.
TEST(RankCases, AMeanOverRanksIsNoSumAndNoMeanTakenTwice) {
  graph::Builder b("vector");
  b.set_loss(b.reduce_sum(b.mul(b.parameter("w", {3}), b.input("x", {3}))));
  const models::Model model{.graph = b.finish(), .initializers = {{"w", {Kind::kZeros, 0}}}};
  for (const char* device : {"reference", "cpu"}) {
    const auto two = gradients_of(model, 2, on(device), [](Session& session, std::size_t rank) {
      const float more = rank == 0 ? 0.0F : 2.0F;
      session.set_input("x", bytes_of(std::vector<float>{1 + more, 2 + more, 3 + more}));
      session.set_gradient_weight(0.5F);
    });
    for (const auto& each : two) EXPECT_THAT(each, ::testing::ElementsAre(2, 3, 4)) << device;
    const auto one = gradients_of(model, 1, on(device), [](Session& session, std::size_t) {
      session.set_input("x", bytes_of(std::vector<float>{0.1F, 1e-30F, 3e30F}));
    });
    EXPECT_THAT(one[0], ::testing::ElementsAre(0.1F, 1e-30F, 3e30F)) << device;
  }
}

// C41: part A has one token that counts, with loss 4, part B three with loss 1 each: 7 / 4, and
// with none in B 4. The loss of a token is log(1 + e^z), its gradient by z s = e^z / (1 + e^z); w
// scales all z by 1, so dw is the mean of z s.
TEST(RankCases, TokensCountAloneAndNotByPart) {
  graph::Builder b("tokens");
  const auto logits = b.matmul(b.input("x", {3, 2}), b.parameter("w", {2, 2}));
  b.set_loss(b.softmax_cross_entropy(logits, b.input("labels", {3}, graph::DType::kI32)));
  const models::Model model{.graph = b.finish(), .initializers = {{"w", {Kind::kZeros, 0}}}};
  const double a = std::log(std::exp(4.0) - 1), c = std::log(std::exp(1.0) - 1);
  const double of_a = a * (1 - std::exp(-4.0)), of_c = c * (1 - std::exp(-1.0));
  for (const bool empty : {false, true}) {
    std::vector<float> losses(2);
    std::vector<std::vector<float>> changes(2);
    const auto thrown = run_ranks(threads_kind(), world(2), [&](Communicator& end) {
      SessionOptions options = on("reference");
      options.ranks = {&end, [](Communicator*) {}};
      const auto session =
          make_session(model, options,
                       {.optimizer = graph::SgdAttributes{.rate = {.base = 1.0}, .momentum = 0}});
      session->write("w", bytes_of(std::vector<float>{1, 0, 0, 1}));
      const bool first = end.rank() == 0;
      const auto z = static_cast<float>(first ? a : c);
      session->set_input("x", bytes_of(std::vector<float>{0, z, 0, z, 0, z}));
      const std::int32_t counts = !first && empty ? -100 : 0;
      session->set_input("labels", bytes_of(first ? std::vector<std::int32_t>{0, -100, -100}
                                                  : std::vector<std::int32_t>(3, counts)));
      const float weight = empty ? (first ? 1.0F : 0.0F) : (first ? 0.25F : 0.75F);
      session->set_gradient_weight(weight);
      const auto rank = static_cast<std::size_t>(end.rank());
      losses[rank] = weight * session->step();
      changes[rank] = numbers(session->read("w"));
    });
    EXPECT_THAT(thrown, Each(IsEmpty()));
    EXPECT_NEAR(losses[0] + losses[1], empty ? 4.0 : 1.75, 1e-6);
    for (const auto& w : changes)  // w[1][1] scales the second logit
      EXPECT_NEAR(1 - w[3], empty ? of_a : (of_a + 3 * of_c) / 4, 1e-6);
  }
}

// After each of 200 steps every rank compares the hash of parameters and optimizer state; at the
// end everything that is kept has one hash, running statistics too.
TEST(RankCases, AllRanksHoldTheSameBitsAfterEachOf200Steps) {
  for (const std::string model : {"resnet20", "mlp", "lstm"}) {
    TrainOptions options;
    options.model = model;
    options.model_options =
        model == "lstm" ? models::ModelOptions{.batch = 5,
                                               .hidden = 8,
                                               .layers = 1,
                                               .vocabulary = 11,
                                               .seq_len = 8,
                                               .chunk = 4}
                        : models::ModelOptions{
                              .batch = 5, .channels = 1, .height = 8, .width = 8, .classes = 3};
    options.session = on("cpu", "keep_all");
    options.session.synchronise_batch_norm = true;
    options.optimizer = graph::SgdAttributes{.rate = {.base = 0.01}, .momentum = 0.9};
    options.steps = 200;
    options.evaluate = false;
    options.compare_every = 1;
    std::vector<std::uint64_t> hashes(2);
    const auto thrown = run_ranks(threads_kind(), world(2), [&](Communicator& end) {
      TrainOptions mine = options;
      mine.session.ranks = {&end, [](Communicator*) {}};
      const auto report = std::get<TrainReport>(train(mine));
      EXPECT_EQ(report.steps, 200);
      hashes[static_cast<std::size_t>(end.rank())] = report.state_hash;
    });
    EXPECT_THAT(thrown, Each(IsEmpty()));
    if (model != "lstm") {  // whose carried state is each rank's own
      EXPECT_EQ(hashes[0], hashes[1]) << model;
    }
  }
}

// Running statistics of ranks and of all of them are different runs.
TEST(RankCases, ASnapshotSaysWhoseStatisticsBatchNormTakes) {
  TrainOptions options;
  EXPECT_FALSE(settings_of(options, {}, "").contains("batch norm"));
  options.session.synchronise_batch_norm = true;
  EXPECT_EQ(settings_of(options, {}, "").at("batch norm"), "over all ranks");
}

}  // namespace
}  // namespace reprise::api
