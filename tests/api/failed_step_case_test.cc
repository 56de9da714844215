// A kernel that fails somewhere in a step: nothing is half done in silence.

#include <gmock/gmock.h>
#include <new>

#include "tests/api/training_case.h"
#include "tests/support/hooked_backend.h"

namespace reprise::api {
namespace {

using testing::HasSubstr;

constexpr std::size_t kClasses = 3;

graph::TrainingOptions adam() {
  return {.optimizer = graph::AdamAttributes{.rate = {.base = 0.01}}};
}

// Convolution, norm (running statistics), dropout (random draws), twice: states of every kind.
models::Model small_network() {
  models::Model model;
  graph::Builder b("small");
  graph::ValueId h = b.input("images", {2, 2, 5, 5});
  const auto parameter = [&](const std::string& name, graph::Shape shape, Kind kind) {
    model.initializers.push_back({name, {kind, 0.4}});
    return b.parameter(name, std::move(shape));
  };
  const auto state = [&](const std::string& name) {
    model.initializers.push_back({name, {Kind::kOnes}});
    return b.state(name, {2});
  };
  for (const std::string layer : {"a", "b"}) {
    h = b.conv2d(h, parameter(layer + ".w", {2, 2, 3, 3}, Kind::kNormal), {.padding = {1, 1}});
    h = b.batch_norm(h, parameter(layer + ".gamma", {2}, Kind::kOnes),
                     parameter(layer + ".beta", {2}, Kind::kZeros), state(layer + ".mean"),
                     state(layer + ".var"));
    h = b.dropout(b.tanh(h), 0.25);
  }
  const graph::ValueId head = parameter("head", {kClasses, 2}, Kind::kNormal);
  const graph::ValueId logits = b.linear(b.global_avg_pool(h), head, "logits");
  b.set_loss(b.softmax_cross_entropy(logits, b.input("labels", {2}, graph::DType::kI32)));
  model.graph = b.finish();
  return model;
}

// Fails at a chosen kernel call, once.
struct Fault {
  long call = 0;
  long fail_at = -1;

  std::shared_ptr<kernels::Backend> backend() {
    return std::make_shared<test::HookedBackend>(
        kernels::make_backend("cpu", {.threads = 1}),
        [this](const auto&, graph::NodeId, const kernels::Call&) {
          if (call++ != fail_at) return;
          fail_at = -1;
          throw std::bad_alloc();
        });
  }
};

SessionOptions floor_with(Fault& fault, bool recoverable) {
  SessionOptions options = on("cpu", "auto", {.kind = Budget::Kind::kFloor});
  options.backend = fault.backend();
  options.recoverable = recoverable;
  return options;
}

TEST(FailedStepCase, LeavesARecoverableSessionAsItWasAndTheRetryEqualsACleanStep) {
  const models::Model model = small_network();
  Fault fault, none;
  const auto session = make_session(model, floor_with(fault, true), adam());
  const auto clean = make_session(model, floor_with(none, false), adam());
  EXPECT_GT(session->report().recomputed_nodes, 0);
  const auto calls = static_cast<long>(session->planned().schedule.instructions.size());
  for (long k = 0; k < calls; ++k) {
    const auto step = static_cast<std::size_t>(k);
    const auto& at = session->planned().schedule.instructions[step];
    const std::string& node = session->planned().prepared.graph.nodes[at.node].name;
    feed(*session, model.graph, kClasses, step);
    feed(*clean, model.graph, kClasses, step);
    const std::uint64_t before = session->state_hash();
    fault = {.call = 0, .fail_at = k};
    EXPECT_EQ(error_of([&] { session->step(); }), "node '" + node + "': out of memory");
    EXPECT_EQ(session->state_hash(), before) << node;
    EXPECT_EQ(session->steps_done(), step);
    EXPECT_EQ(session->step(), clean->step()) << node;  // the same batch, not fed again
    ASSERT_EQ(session->state_hash(), clean->state_hash()) << node;
  }
}

// Without a copy a failure before the first update costs the batch, a later one the state.
TEST(FailedStepCase, OtherwiseRefusesToGoOnFromAStateThatNobodyKnows) {
  const models::Model model = small_network();
  Fault none;
  const auto clean = make_session(model, floor_with(none, false), adam());
  feed(*clean, model.graph, kClasses, 0);
  const float loss = clean->step();
  const auto calls = static_cast<long>(clean->planned().schedule.instructions.size());
  long refused = 0;
  for (long k = 0; k < calls; k += 3) {
    Fault fault;
    const auto session = make_session(model, floor_with(fault, false), adam());
    std::vector<std::pair<std::string, std::vector<std::byte>>> snapshot;
    for (const auto& variable : session->variables()) {
      snapshot.emplace_back(variable.name, session->read(variable.name));
    }
    feed(*session, model.graph, kClasses, 0);
    fault = {.call = 0, .fail_at = k};
    EXPECT_THAT(error_of([&] { session->step(); }), HasSubstr("out of memory"));
    EXPECT_THAT(error_of([&] { session->step(); }), testing::Not(""));
    feed(*session, model.graph, kClasses, 0);
    if (!error_of([&] { (void)session->state_hash(); }).empty()) {
      ++refused;
      EXPECT_THAT(error_of([&] { session->step(); }), HasSubstr("load a snapshot"));
      EXPECT_THAT(error_of([&] { (void)session->read("a.w"); }), HasSubstr("is not known"));
      for (const auto& [name, plain] : snapshot) session->write(name, plain);
    }
    EXPECT_EQ(session->step(), loss) << k;
    EXPECT_EQ(session->state_hash(), clean->state_hash()) << k;
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(3 * refused, calls);  // the calls before the first update need no snapshot
}

TEST(FailedStepCase, OutputsOfAFailedStepCannotBeRead) {
  const models::Model model = small_network();
  Fault fault;
  const auto session = make_session(model, floor_with(fault, true), adam());
  const std::string loss = model.graph.values[model.graph.loss].name;
  feed(*session, model.graph, kClasses, 0);
  fault = {.call = 0, .fail_at = 5};
  EXPECT_THROW(session->step(), base::Error);
  EXPECT_THAT(error_of([&] { (void)session->read(loss); }), HasSubstr("after a training step"));
  const float value = session->step();
  EXPECT_EQ(numbers(session->read(loss)), std::vector<float>{value});
}

}  // namespace
}  // namespace reprise::api
