// Speed of the CPU kernels: each node of small training graphs, with its share of what the machine
// can do. The peaks are measured at the start through the same backend: a large matrix product for
// arithmetic, and scaling an array that fits no cache for memory.

#include <algorithm>
#include <benchmark/benchmark.h>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "graph/autodiff.h"
#include "graph/builder.h"
#include "tests/kernels/cpu_runner.h"

namespace reprise::kernels {
namespace {

using graph::Builder;
using graph::DType;

struct BenchCase {
  std::string name;
  std::function<ValueId(Builder&)> loss_of;  // a scalar loss
};

ValueId summed(Builder& b, ValueId y) {
  return b.reduce_sum(y);
}

BenchCase conv(const std::string& name, std::int64_t in, std::int64_t out, std::int64_t size,
               std::int64_t kernel, std::int64_t stride) {
  return {name, [=](Builder& b) {
            const auto x = b.parameter("x", {16, in, size, size});
            const auto w = b.parameter("w", {out, in, kernel, kernel});
            return summed(
                b,
                b.conv2d(x, w, {.stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}}));
          }};
}

// A residual block's tail: all that is bound by memory.
BenchCase normalized() {
  return {"block_64x56", [](Builder& b) {
            const auto x = b.parameter("x", {16, 64, 56, 56});
            const auto y = b.conv2d(x, b.parameter("w", {64, 64, 1, 1}));
            const auto n = b.batch_norm(y, b.parameter("gamma", {64}), b.parameter("beta", {64}),
                                        b.state("mean", {64}), b.state("var", {64}));
            const auto r = b.relu(b.add(n, y));
            const auto p = b.max_pool(r, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
            return summed(b, b.global_avg_pool(p));
          }};
}

BenchCase language_model(bool gru) {
  return {gru ? "gru_512" : "lstm_512", [=](Builder& b) {
            constexpr std::int64_t kSteps = 20, kBatch = 32, kHidden = 512, kVocabulary = 10000;
            const std::int64_t gates = gru ? 3 : 4;
            const auto x = b.embedding(b.parameter("table", {kVocabulary, kHidden}),
                                       b.input("ids", {kSteps, kBatch}, DType::kI32));
            const auto h = b.parameter("h0", {kBatch, kHidden});
            const auto w_ih = b.parameter("w_ih", {gates * kHidden, kHidden});
            const auto w_hh = b.parameter("w_hh", {gates * kHidden, kHidden});
            const auto bias = b.parameter("bias", {4 * kHidden});
            const auto y =
                gru ? b.gru(x, h, w_ih, w_hh, bias).y : b.lstm(x, h, h, w_ih, w_hh, bias).y;
            const auto norm = b.layer_norm(b.dropout(y, 0.2), b.parameter("gamma", {kHidden}),
                                           b.parameter("beta", {kHidden}));
            const auto logits = b.linear(b.gelu(norm), b.parameter("out", {kVocabulary, kHidden}));
            return b.softmax_cross_entropy(b.reshape(logits, {kSteps * kBatch, kVocabulary}),
                                           b.input("labels", {kSteps * kBatch}, DType::kI32));
          }};
}

std::unique_ptr<CpuRunner> make_runner(const BenchCase& c) {
  Builder b(c.name);
  b.set_loss(c.loss_of(b));
  b.add_output(b.graph().loss);
  const graph::Optimizer adam = graph::AdamAttributes{.rate = {.base = 1e-4}};
  auto runner = std::make_unique<CpuRunner>(make_cpu_backend({})->prepare(
      graph::make_training_graph(b.finish(), {.optimizer = adam}).graph));
  std::mt19937 random(1);
  std::uniform_real_distribution<float> uniform(-0.1f, 0.1f);
  for (const graph::Value& value : runner->prepared().graph.values) {
    if (value.producer.valid()) continue;
    const auto count = static_cast<std::size_t>(graph::element_count(value.shape));
    if (value.dtype == DType::kI32) {
      std::vector<std::int32_t> ids(count);
      for (auto& id : ids) id = static_cast<std::int32_t>(random() % 10000);
      runner->set(value.name, ids);
    } else {
      std::vector<float> data(count);
      const bool zero = value.role == graph::Role::kOptimizerState;
      for (float& x : data) x = zero ? 0.0f : uniform(random);
      runner->set(value.name, data);
    }
  }
  runner->step();
  return runner;
}

// Seconds of the fastest of a few runs of the first node with this op.
double fastest(CpuRunner& runner, graph::OpKind op, int runs) {
  const graph::PreparedGraph& prepared = runner.prepared();
  double best = 1e30;
  for (std::size_t n = 0; n < prepared.graph.nodes.size(); ++n) {
    if (prepared.graph.nodes[NodeId(n)].op != op) continue;
    const auto call = runner.addresses(NodeId(n));
    for (int i = 0; i < runs; ++i) {
      const auto start = std::chrono::steady_clock::now();
      runner.run(NodeId(n), call, {});
      const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start;
      best = std::min(best, spent.count());
    }
    break;
  }
  return best;
}

struct Peak {
  double flops = 0;  // per second
  double bytes = 0;
};

const Peak& peak() {
  static const Peak measured = [] {
    const auto product = make_runner({"peak_flops", [](Builder& b) {
                                        return summed(b, b.matmul(b.parameter("a", {2048, 2048}),
                                                                  b.parameter("b", {2048, 2048})));
                                      }});
    const auto copy = make_runner({"peak_bytes", [](Builder& b) {
                                     return summed(b, b.scale(b.parameter("x", {1 << 25}), 1.0));
                                   }});
    return Peak{.flops = 2.0 * 2048 * 2048 * 2048 / fastest(*product, graph::OpKind::kMatmul, 10),
                .bytes = 2.0 * 4 * (1 << 25) / fastest(*copy, graph::OpKind::kScale, 10)};
  }();
  return measured;
}

void run_node(benchmark::State& state, const BenchCase& c, graph::OpKind op) {
  const Peak& best = peak();
  const auto runner = make_runner(c);
  const graph::PreparedGraph& prepared = runner->prepared();
  std::size_t n = 0;
  while (prepared.graph.nodes[NodeId(n)].op != op) ++n;
  const auto call = runner->addresses(NodeId(n));
  for ([[maybe_unused]] auto round : state) runner->run(NodeId(n), call, {});
  using benchmark::Counter;
  const graph::PreparedNode& node = prepared.nodes[NodeId(n)];
  const auto rate = Counter::kIsIterationInvariantRate;
  state.counters["flops"] = Counter(node.flops, rate);
  state.counters["bytes"] = Counter(node.bytes_moved, rate);
  // Of the roofline: the share of the nearer of the two bounds.
  const double bound = std::max(node.flops / best.flops, node.bytes_moved / best.bytes);
  state.counters["of_peak"] = Counter(bound, rate);
}

std::vector<BenchCase> bench_cases() {
  return {conv("conv3x3_64x56", 64, 64, 56, 3, 1),
          conv("conv3x3_256x14", 256, 256, 14, 3, 1),
          conv("conv1x1_256x56", 256, 64, 56, 1, 1),
          conv("conv3x3_16x32", 16, 16, 32, 3, 1),
          conv("conv7x7_3x224", 3, 64, 224, 7, 2),
          normalized(),
          language_model(false),
          language_model(true)};
}

// One benchmark for each kind of op in each graph: forward, backward and updates.
const bool registered = [] {
  for (const BenchCase& c : bench_cases()) {
    Builder b(c.name);
    b.set_loss(c.loss_of(b));
    const auto training = graph::make_training_graph(
        b.finish(), {.optimizer = graph::AdamAttributes{.rate = {.base = 1e-4}}});
    std::map<graph::OpKind, bool> seen;
    for (const graph::Node& node : training.graph.nodes) {
      if (node.op == graph::OpKind::kReshape || node.op == graph::OpKind::kFill) continue;
      if (!seen.emplace(node.op, true).second) continue;
      const graph::OpKind op = node.op;
      const std::string name = c.name + "/" + std::string(graph::op_info(op).name);
      benchmark::RegisterBenchmark(name.c_str(), [c, op](benchmark::State& state) {
        run_node(state, c, op);
      })->UseRealTime();
    }
  }
  return true;
}();

}  // namespace
}  // namespace reprise::kernels
