// Memory stays where it was: over the steps of one session, and over sessions of many sizes.

#include <malloc.h>

#include "runtime/memory_info.h"
#include "tests/api/training_case.h"

namespace reprise::api {
namespace {

// Sanitizers keep freed blocks for a while.
bool memory_is_the_systems() {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return false;
#else
  return true;
#endif
}

// Bytes handed out by the allocator and not given back.
Bytes live_bytes() {
  const auto info = mallinfo2();
  return static_cast<Bytes>(info.uordblks + info.hblkhd);
}

models::Model network(std::int64_t size) {
  models::Model model;
  graph::Builder b("network");
  const auto parameter = [&](const std::string& name, graph::Shape shape) {
    model.initializers.push_back({name, {Kind::kNormal, 0.3}});
    return b.parameter(name, std::move(shape));
  };
  graph::ValueId h = b.input("images", {2, 1, size, size});
  h = b.relu(b.conv2d(h, parameter("a", {4, 1, 3, 3}), {.padding = {1, 1}}));
  h = b.relu(b.conv2d(h, parameter("b", {4, 4, 3, 3}), {.padding = {1, 1}}));
  const graph::ValueId logits = b.linear(b.global_avg_pool(h), parameter("head", {3, 4}));
  b.set_loss(b.softmax_cross_entropy(logits, b.input("labels", {2}, graph::DType::kI32)));
  model.graph = b.finish();
  return model;
}

std::unique_ptr<Session> session_of(const models::Model& model) {
  return make_session(model, on("cpu", "sqrt_n"),
                      {.optimizer = graph::SgdAttributes{.rate = {.base = 0.01}}});
}

// After step n what there was after step 2; pages may come for something that the process does
// once.
TEST(FlatMemoryCase, AThousandStepsTakeNoByteMoreThanTwo) {
  if (!memory_is_the_systems()) GTEST_SKIP() << "sanitizers replace the allocator";
  const models::Model model = network(8);
  const auto session = session_of(model);
  Bytes live = 0, resident = 0;
  for (std::size_t step = 1; step <= 1000; ++step) {
    feed(*session, model.graph, 3, step);
    session->step();
    if (step == 2) {
      live = live_bytes();
      resident = runtime::resident_bytes();
    }
    if (step > 2) {
      ASSERT_EQ(live_bytes(), live) << step;
    }
  }
  EXPECT_LE(runtime::resident_bytes() - resident, 256 * base::kKiB);
  EXPECT_EQ(session->peak_bytes_measured(), session->arena_bytes());
}

// Fifty image sizes as fifty sessions one after another, over and over. oneDNN keeps the kernels of
// the first pass (at most 1,024 of them); later passes find them there.
TEST(FlatMemoryCase, SessionsOfFiftySizesLeaveNothingBehind) {
  if (!memory_is_the_systems()) GTEST_SKIP() << "sanitizers replace the allocator";
  std::vector<Bytes> resident, live;
  for (int pass = 0; pass < 4; ++pass) {
    for (std::int64_t size = 6; size < 56; ++size) {
      const models::Model model = network(size);
      const auto session = session_of(model);
      feed(*session, model.graph, 3, 0);
      session->step();
    }
    malloc_trim(0);
    resident.push_back(runtime::resident_bytes());
    live.push_back(live_bytes());
  }
  EXPECT_LE(live[3] - live[1], 64 * base::kKiB) << live[0] << " after the first pass";
  EXPECT_LE(resident[3] - resident[1], base::kMiB) << resident[0] << " after the first pass";
}

}  // namespace
}  // namespace reprise::api
