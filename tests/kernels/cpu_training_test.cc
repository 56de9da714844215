// Whole training steps on the CPU backend: the same bits however often, and in whatever buffers, a
// node runs; no allocation of ours while it runs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <random>

#include "allocation_counter.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "tests/kernels/cpu_runner.h"

namespace reprise::kernels {
namespace {

using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::ValueId;

// conv-bn-relu, max pool, a residual block with 20 channels (which fill no block of 16), global
// pool, dropout, linear.
Graph image_net() {
  Builder b("image_net");
  const auto x = b.input("images", {4, 3, 12, 12});
  const auto labels = b.input("labels", {4}, DType::kI32);
  const auto norm = [&](ValueId h, const std::string& name, std::int64_t c) {
    return b.batch_norm(h, b.parameter(name + ".gamma", {c}), b.parameter(name + ".beta", {c}),
                        b.state(name + ".running_mean", {c}), b.state(name + ".running_var", {c}),
                        0.1, {}, name);
  };
  const auto conv = [&](ValueId h, const std::string& name, std::int64_t in, std::int64_t out) {
    return b.conv2d(h, b.parameter(name + ".w", {out, in, 3, 3}), {.padding = {1, 1}}, name);
  };
  ValueId h = b.relu(norm(conv(x, "conv1", 3, 20), "bn1", 20));
  h = b.max_pool(h, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  h = b.relu(b.add(h, norm(conv(h, "conv2", 20, 20), "bn2", 20)));
  h = b.sigmoid(h);
  const auto pooled = b.avg_pool(h, {.kernel = {2, 2}, .stride = {2, 2}});
  const auto flat = b.dropout(b.global_avg_pool(pooled), 0.25);
  const auto logits = b.linear(flat, b.parameter("fc.w", {7, 20}), b.parameter("fc.b", {7}), "fc");
  b.set_loss(b.softmax_cross_entropy(logits, labels, {}, "loss"));
  b.add_output(b.graph().loss);
  return b.finish();
}

// Two chunks of one LSTM over embedded tokens: its weight gradients accumulate.
Graph language_model(bool gru) {
  constexpr std::int64_t kSteps = 3, kBatch = 5, kVocabulary = 11, kHidden = 18;
  Builder b("language_model");
  const auto table = b.parameter("table", {kVocabulary, kHidden});
  const std::int64_t gates = gru ? 3 : 4;
  const auto w_ih = b.parameter("w_ih", {gates * kHidden, kHidden});
  const auto w_hh = b.parameter("w_hh", {gates * kHidden, kHidden});
  const auto bias = b.parameter("bias", {4 * kHidden});
  const auto gamma = b.parameter("gamma", {kHidden});
  const auto beta = b.parameter("beta", {kHidden});
  const auto out = b.parameter("out", {kVocabulary, kHidden});
  Builder::Recurrent state{{}, b.state("h", {kBatch, kHidden}), b.state("c", {kBatch, kHidden})};
  const auto h_first = state.h_n;
  const auto c_first = state.c_n;
  ValueId loss{};
  for (const std::string chunk : {"0", "1"}) {
    const auto tokens = b.input("tokens" + chunk, {kSteps, kBatch}, DType::kI32);
    const auto targets = b.input("targets" + chunk, {kSteps * kBatch}, DType::kI32);
    const auto x = b.embedding(table, tokens);
    const auto c = state.c_n;
    state = gru ? b.gru(x, state.h_n, w_ih, w_hh, bias) : b.lstm(x, state.h_n, c, w_ih, w_hh, bias);
    if (gru) state.c_n = c;
    const auto normal = b.layer_norm(state.y, gamma, beta);
    const auto logits = b.reshape(b.linear(b.gelu(normal), out), {kSteps * kBatch, kVocabulary});
    const auto part = b.softmax_cross_entropy(logits, targets);
    loss = loss.valid() ? b.add(loss, part) : part;
  }
  b.assign(h_first, state.h_n);
  if (!gru) b.assign(c_first, state.c_n);
  b.set_loss(b.scale(loss, 0.5, "loss"));
  b.add_output(b.graph().loss);
  return b.finish();
}

struct Case {
  std::string name;
  Graph graph;
};

std::vector<Case> cases() {
  const graph::Optimizer sgd = graph::SgdAttributes{.momentum = 0.9, .weight_decay = 1e-3};
  const graph::Optimizer adam = graph::AdamAttributes{.rate = {.base = 1e-2}};
  std::vector<Case> all;
  all.push_back({"image_net", graph::make_training_graph(image_net(), {.optimizer = sgd}).graph});
  all.push_back(
      {"lstm", graph::make_training_graph(language_model(false), {.optimizer = adam}).graph});
  all.push_back(
      {"gru", graph::make_training_graph(language_model(true), {.optimizer = sgd}).graph});
  return all;
}

bool is_persistent_start(const graph::Value& value) {
  return !value.producer.valid() && graph::is_persistent(value.role);
}

// Everything from outside, from one seed.
void fill(CpuRunner& runner) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const graph::Value& value : runner.prepared().graph.values) {
    if (value.producer.valid()) continue;
    const auto count = static_cast<std::size_t>(graph::element_count(value.shape));
    if (value.dtype == DType::kI32) {
      std::vector<std::int32_t> ids(count);
      for (auto& id : ids) id = static_cast<std::int32_t>(random() % 7);
      runner.set(value.name, ids);
      continue;
    }
    std::vector<float> data(count);
    const bool optimizer = value.role == graph::Role::kOptimizerState;
    for (float& x : data) x = optimizer ? 0.0f : 0.3f * normal(random);
    runner.set(value.name, data);
  }
}

// All persistent values and the loss after three steps.
std::vector<float> after_three_steps(const Graph& graph, bool inplace, int threads = 2) {
  CpuRunner runner(make_cpu_backend({.threads = threads})->prepare(graph), inplace);
  fill(runner);
  std::vector<float> all;
  for (std::uint64_t step = 0; step < 3; ++step) {
    runner.step({.seed = 5, .step = step});
    all.push_back(runner.get("loss")[0]);
  }
  for (const graph::Value& value : runner.prepared().graph.values) {
    if (!is_persistent_start(value)) continue;
    const auto data = runner.get(value.name);
    all.insert(all.end(), data.begin(), data.end());
  }
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

TEST(CpuTraining, RepeatsItselfBitForBit) {
  for (const Case& c : cases()) {
    const auto first = after_three_steps(c.graph, false);
    for (const float x : first) ASSERT_TRUE(std::isfinite(x)) << c.name;
    EXPECT_TRUE(same_bits(first, after_three_steps(c.graph, false))) << c.name;
  }
}

TEST(CpuTraining, InPlaceChangesNoBit) {
  for (const Case& c : cases()) {
    EXPECT_TRUE(same_bits(after_three_steps(c.graph, false), after_three_steps(c.graph, true)))
        << c.name;
  }
}

TEST(CpuTraining, LowersTheLoss) {
  for (const Case& c : cases()) {
    CpuRunner runner(make_cpu_backend({.threads = 2})->prepare(c.graph));
    fill(runner);
    runner.step({.seed = 1, .step = 0});
    const float first = runner.get("loss")[0];
    for (std::uint64_t step = 1; step < 40; ++step) runner.step({.seed = 1, .step = step});
    EXPECT_LT(runner.get("loss")[0], 0.8f * first) << c.name;
  }
}

TEST(CpuTraining, ANodeRunsAgainToTheSameBits) {
  for (const Case& c : cases()) {
    CpuRunner runner(make_cpu_backend({.threads = 2})->prepare(c.graph));
    fill(runner);
    runner.step({.seed = 5, .step = 0});
    const graph::PreparedGraph& prepared = runner.prepared();
    for (std::size_t n = 0; n < prepared.graph.nodes.size(); ++n) {
      const graph::NodeId id(n);
      if (!graph::op_info(prepared.graph.nodes[id].op).recomputable) continue;
      if (prepared.graph.nodes[id].accumulate) continue;
      const auto once = runner.fresh_outputs(id, {.seed = 5, .step = 0});
      const auto again = runner.fresh_outputs(id, {.seed = 5, .step = 0});
      EXPECT_EQ(once, again) << c.name << ": " << prepared.graph.nodes[id].name;
    }
  }
}

TEST(CpuTraining, AWarmStepAllocatesNothingOfOurOwn) {
  if (!AllocationCounter::works()) GTEST_SKIP() << "sanitizers own the allocator";
  for (const Case& c : cases()) {
    CpuRunner runner(make_cpu_backend({.threads = 2})->prepare(c.graph));
    fill(runner);
    runner.step({.seed = 5, .step = 0});
    std::vector<CpuRunner::Prepared> calls;
    const std::size_t nodes = runner.prepared().graph.nodes.size();
    for (std::size_t n = 0; n < nodes; ++n) calls.push_back(runner.addresses(NodeId(n)));
    for (int round = 0; round < 2; ++round) {  // the first warms up
      AllocationCounter::start();
      for (std::size_t n = 0; n < nodes; ++n) {
        runner.run(NodeId(n), calls[n], {.seed = 5, .step = 1});
      }
      AllocationCounter::stop();
    }
    const AllocationCounter::Counts counts = AllocationCounter::counts();
    EXPECT_EQ(counts.ours, 0) << c.name;
    // oneDNN makes a map of arguments and a context for each run: small, and gone afterwards.
    EXPECT_LT(counts.largest_of_libraries, 4096) << c.name;
    RecordProperty(c.name + "_library_allocations", static_cast<int>(counts.libraries));
  }
}

}  // namespace
}  // namespace reprise::kernels
