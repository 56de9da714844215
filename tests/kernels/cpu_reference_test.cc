// The CPU backend against the reference: every value of a training step, every op, and the state
// after three steps.

#include <algorithm>
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <random>

#include "agreement.h"
#include "graph/autodiff.h"
#include "graph/builder.h"
#include "tests/kernels/cpu_runner.h"

namespace reprise::kernels {
namespace {

using graph::Builder;
using graph::DType;
using graph::Graph;
using graph::Shape;

struct OpCase {
  std::string name;
  std::function<ValueId(Builder&)> make;  // some value; its weighted sum is the loss
};

void PrintTo(const OpCase& c, std::ostream* out) {
  *out << c.name;
}

ValueId image(Builder& b, Shape shape, const std::string& name = "x") {
  return b.parameter(name, std::move(shape));  // a parameter, so that it gets a gradient
}

OpCase conv(std::string name, Shape x, Shape w, graph::Conv2dAttributes attributes, bool bias) {
  return {std::move(name), [=](Builder& b) {
            const auto in = image(b, x);
            const auto weight = b.parameter("w", w);
            return bias ? b.conv2d(in, weight, b.parameter("bias", {w[0]}), attributes, "y")
                        : b.conv2d(in, weight, attributes, "y");
          }};
}

// A blocked value: what follows runs on nChw16c.
ValueId blocked(Builder& b, std::int64_t channels, std::int64_t size = 6) {
  const auto x = image(b, {2, channels, size, size});
  return b.conv2d(x, b.parameter("w", {channels, channels, 1, 1}), {}, "blocked");
}

OpCase on_blocked(std::string name, std::function<ValueId(Builder&, ValueId)> op,
                  std::int64_t channels = 32, std::int64_t size = 6) {
  return {std::move(name), [=](Builder& b) { return op(b, blocked(b, channels, size)); }};
}

OpCase on_plain(std::string name, Shape shape, std::function<ValueId(Builder&, ValueId)> op) {
  return {std::move(name), [=](Builder& b) { return op(b, image(b, shape)); }};
}

OpCase matmul(std::string name, Shape a, Shape p, bool ta, bool tb) {
  return {std::move(name), [=](Builder& b) {
            return b.matmul(image(b, a), b.parameter("p", p), {ta, tb}, "y");
          }};
}

void add_dense(std::vector<OpCase>& all) {
  all.push_back(conv("conv3x3", {2, 16, 7, 7}, {32, 16, 3, 3}, {.padding = {1, 1}}, false));
  all.push_back(conv("conv_bias", {2, 16, 7, 7}, {32, 16, 3, 3}, {.padding = {1, 1}}, true));
  all.push_back(conv("conv_odd_channels", {2, 5, 7, 7}, {9, 5, 3, 3}, {.padding = {1, 1}}, true));
  all.push_back(conv("conv_stride", {2, 16, 9, 9}, {24, 16, 3, 3},
                     {.stride = {2, 2}, .padding = {1, 1}}, false));
  all.push_back(conv("conv1x1_stride", {2, 32, 8, 8}, {64, 32, 1, 1}, {.stride = {2, 2}}, false));
  all.push_back(conv("conv_dilated", {2, 16, 9, 9}, {16, 16, 3, 3},
                     {.padding = {2, 2}, .dilation = {2, 2}}, false));
  all.push_back(
      conv("conv_groups", {2, 32, 7, 7}, {32, 8, 3, 3}, {.padding = {1, 1}, .groups = 4}, true));
  all.push_back(conv("conv_depthwise", {2, 32, 7, 7}, {32, 1, 3, 3},
                     {.padding = {1, 1}, .groups = 32}, false));
  all.push_back(conv("conv_uneven", {1, 3, 11, 6}, {4, 3, 5, 2},
                     {.stride = {3, 1}, .padding = {2, 0}}, true));
  all.push_back(matmul("matmul", {5, 7}, {7, 3}, false, false));
  all.push_back(matmul("matmul_ta", {7, 5}, {7, 3}, true, false));
  all.push_back(matmul("matmul_tb", {5, 7}, {3, 7}, false, true));
  all.push_back(matmul("matmul_tab", {7, 5}, {3, 7}, true, true));
  all.push_back(matmul("matmul_batched", {4, 5, 7}, {4, 7, 3}, false, false));
  all.push_back(matmul("matmul_batched_tb", {2, 2, 5, 7}, {2, 2, 3, 7}, false, true));
  all.push_back(matmul("matmul_column", {5, 7}, {7, 1}, false, false));
  all.push_back(matmul("matmul_row", {1, 7}, {7, 40}, false, false));
  all.push_back({"linear_shared", [](Builder& b) {  // used twice: accumulate form, bias too
                   const auto w = b.parameter("p", {6, 6});
                   const auto bias = b.parameter("bias", {6});
                   return b.linear(b.tanh(b.linear(image(b, {4, 6}), w, bias)), w, bias);
                 }});
  all.push_back({"conv_shared", [](Builder& b) {
                   const auto w = b.parameter("w", {20, 20, 3, 3});
                   const auto x = image(b, {2, 20, 6, 6});
                   return b.conv2d(b.conv2d(x, w, {.padding = {1, 1}}), w, {.padding = {1, 1}});
                 }});
}

void add_norms(std::vector<OpCase>& all) {
  const auto norm = [](Builder& b, ValueId x) {
    const std::int64_t c = b.shape(x)[1];
    return b.batch_norm(x, b.parameter("gamma", {c}), b.parameter("beta", {c}),
                        b.state("running_mean", {c}), b.state("running_var", {c}), 0.1, {}, "bn");
  };
  all.push_back(on_blocked("batch_norm", norm));
  all.push_back(on_blocked("batch_norm_padded", norm, 20));
  all.push_back(on_plain("batch_norm_plain", {3, 5, 4, 4}, norm));
  all.push_back(on_plain("batch_norm_2d", {8, 5}, norm));
  // Large enough that channels are summed in parts, and one after another: 2 * 200^2 * 16 * 4 bytes
  // are 5 MB a block of 16 channels, of which 20 channels take two.
  all.push_back(on_blocked("batch_norm_in_rounds", norm, 20, 200));
  all.push_back(on_plain("batch_norm_few_channels", {3, 3, 131, 67}, norm));
  all.push_back(on_plain("batch_norm_2d_wide", {300, 37}, norm));
  const auto layer = [](Builder& b, ValueId x) {
    const std::int64_t d = b.shape(x).back();
    return b.layer_norm(x, b.parameter("gamma", {d}), b.parameter("beta", {d}));
  };
  all.push_back(on_plain("layer_norm", {40, 19}, layer));
  all.push_back(on_plain("layer_norm_3d", {3, 4, 8}, layer));
}

void add_pointwise(std::vector<OpCase>& all) {
  using Unary = std::function<ValueId(Builder&, ValueId)>;
  const std::vector<std::pair<std::string, Unary>> unary{
      {"relu", [](Builder& b, ValueId x) { return b.relu(x); }},
      {"sigmoid", [](Builder& b, ValueId x) { return b.sigmoid(x); }},
      {"tanh", [](Builder& b, ValueId x) { return b.tanh(x); }},
      {"gelu", [](Builder& b, ValueId x) { return b.gelu(x); }},
      {"scale", [](Builder& b, ValueId x) { return b.scale(x, -1.5); }},
      {"dropout", [](Builder& b, ValueId x) { return b.dropout(x, 0.3); }},
      {"add_self", [](Builder& b, ValueId x) { return b.add(x, x); }},
      {"mul_relu", [](Builder& b, ValueId x) { return b.mul(x, b.relu(x)); }},
      {"add_plain", [](Builder& b, ValueId x) { return b.add(b.parameter("p", b.shape(x)), x); }}};
  for (const auto& [name, op] : unary) {
    all.push_back(on_plain(name + "_plain", {3, 7, 5}, op));
    all.push_back(on_plain(name + "_long", {300, 70}, op));
    all.push_back(on_blocked(name + "_blocked", op));
    all.push_back(on_blocked(name + "_padded", op, 20));
  }
}

void add_pools(std::vector<OpCase>& all) {
  const graph::Pool2dAttributes window{.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}};
  graph::Pool2dAttributes counting = window;
  counting.count_padding = true;
  using Unary = std::function<ValueId(Builder&, ValueId)>;
  const std::vector<std::pair<std::string, Unary>> pools{
      {"max_pool", [=](Builder& b, ValueId x) { return b.max_pool(x, window); }},
      {"avg_pool", [=](Builder& b, ValueId x) { return b.avg_pool(x, window); }},
      {"avg_pool_counting", [=](Builder& b, ValueId x) { return b.avg_pool(x, counting); }},
      {"global_avg_pool", [](Builder& b, ValueId x) { return b.global_avg_pool(x); }},
      {"upsample", [](Builder& b, ValueId x) { return b.upsample(x, 2); }},
      {"upsample_3", [](Builder& b, ValueId x) { return b.upsample(x, 3); }},
      {"flatten", [](Builder& b, ValueId x) { return b.flatten(x); }},
      {"slice_channels", [](Builder& b, ValueId x) { return b.slice(x, 1, 0, 16); }},
      {"slice_odd_channels", [](Builder& b, ValueId x) { return b.slice(x, 1, 3, 17); }},
      {"slice_tail", [](Builder& b, ValueId x) { return b.slice(x, 1, 16, b.shape(x)[1]); }},
      {"slice_rows", [](Builder& b, ValueId x) { return b.slice(x, 2, 1, 4); }},
      {"slice_batch", [](Builder& b, ValueId x) { return b.slice(x, 0, 1, 2); }},
      {"concat_self",
       [](Builder& b, ValueId x) {
         return b.concat({x, b.relu(x)}, 1);
       }},
      {"concat_rows", [](Builder& b, ValueId x) {
         return b.concat({x, b.relu(x)}, 3);
       }}};
  for (const auto& [name, op] : pools) {
    all.push_back(on_plain(name + "_plain", {2, 19, 6, 6}, op));
    all.push_back(on_blocked(name + "_blocked", op));
    all.push_back(on_blocked(name + "_padded", op, 20));
  }
}

void add_shapes(std::vector<OpCase>& all) {
  all.push_back(on_plain("broadcast", {3, 1, 5}, [](Builder& b, ValueId x) {
    return b.broadcast(x, {2, 3, 4, 5});
  }));
  all.push_back(on_plain("broadcast_scalar", {1}, [](Builder& b, ValueId x) {
    return b.broadcast(x, {7, 3});
  }));
  all.push_back(on_plain("broadcast_column", {6, 1}, [](Builder& b, ValueId x) {
    return b.broadcast(x, {6, 9});
  }));
  const std::vector<graph::Ints> axes{{}, {0}, {1}, {2}, {0, 2}, {1, 3}, {0, 1, 3}};
  for (const graph::Ints& a : axes) {
    std::string name = "reduce";
    for (const std::int64_t axis : a) name.append("_").append(std::to_string(axis));
    all.push_back(on_plain(name, {3, 4, 5, 6}, [a](Builder& b, ValueId x) {
      return b.add(b.reduce_mean(x, a), b.reduce_sum(x, a));
    }));
    all.push_back(on_plain(name + "_kept", {30, 4, 50, 6},
                           [a](Builder& b, ValueId x) { return b.reduce_mean(x, a, true); }));
  }
  all.push_back(on_plain("fill", {4, 5}, [](Builder& b, ValueId x) {
    return b.mul(x, b.fill({4, 5}, 2.5));
  }));
  all.push_back(on_plain("reshape", {4, 6}, [](Builder& b, ValueId x) {
    return b.reshape(b.relu(x), {2, 3, 4});
  }));
}

void add_sequences(std::vector<OpCase>& all) {
  all.push_back({"embedding", [](Builder& b) {
                   const auto table = b.parameter("table", {9, 21});
                   const auto ids = b.input("ids", {4, 3}, DType::kI32);
                   return b.add(b.embedding(table, ids), b.scale(b.embedding(table, ids), 2.0));
                 }});
  for (const std::int64_t hidden : {5, 64}) {
    for (const std::int64_t steps : {1, 4}) {
      const std::string name = std::to_string(hidden) + "x" + std::to_string(steps);
      all.push_back({"lstm_" + name, [=](Builder& b) {
                       const auto x = image(b, {steps, 3, 7});
                       const auto r =
                           b.lstm(x, b.parameter("h0", {3, hidden}), b.parameter("c0", {3, hidden}),
                                  b.parameter("w_ih", {4 * hidden, 7}),
                                  b.parameter("w_hh", {4 * hidden, hidden}),
                                  b.parameter("b", {4 * hidden}));
                       const auto end = b.reduce_sum(b.mul(r.h_n, r.c_n));
                       return b.add(b.reduce_sum(b.mul(r.y, r.y)), end);
                     }});
      all.push_back({"gru_" + name, [=](Builder& b) {
                       const auto x = image(b, {steps, 3, 7});
                       const auto r = b.gru(x, b.parameter("h0", {3, hidden}),
                                            b.parameter("w_ih", {3 * hidden, 7}),
                                            b.parameter("w_hh", {3 * hidden, hidden}),
                                            b.parameter("b", {4 * hidden}));
                       return b.add(b.reduce_sum(b.mul(r.y, r.y)), b.reduce_sum(r.h_n));
                     }});
    }
  }
  // Two chunks share the weights: their gradients accumulate.
  all.push_back({"lstm_chunks", [](Builder& b) {
                   const auto w_ih = b.parameter("w_ih", {40, 10});
                   const auto w_hh = b.parameter("w_hh", {40, 10});
                   const auto bias = b.parameter("b", {40});
                   const auto h = b.parameter("h0", {3, 10});
                   const auto one = b.lstm(image(b, {4, 3, 10}), h, h, w_ih, w_hh, bias);
                   const auto two = b.lstm(one.y, one.h_n, one.c_n, w_ih, w_hh, bias);
                   return b.add(two.y, one.y);
                 }});
  all.push_back({"gru_chunks", [](Builder& b) {
                   const auto w_ih = b.parameter("w_ih", {30, 10});
                   const auto w_hh = b.parameter("w_hh", {30, 10});
                   const auto bias = b.parameter("b", {40});
                   const auto h = b.parameter("h0", {3, 10});
                   const auto one = b.gru(image(b, {4, 3, 10}), h, w_ih, w_hh, bias);
                   const auto two = b.gru(one.y, one.h_n, w_ih, w_hh, bias);
                   return b.add(two.y, one.y);
                 }});
}

void add_losses(std::vector<OpCase>& all) {
  for (const auto reduction : {graph::Reduction::kMean, graph::Reduction::kSum}) {
    const std::string name = reduction == graph::Reduction::kMean ? "mean" : "sum";
    for (const std::int64_t classes : {7, 1000}) {
      all.push_back({"cross_entropy_" + name + std::to_string(classes), [=](Builder& b) {
                       const auto logits = image(b, {13, classes});
                       const auto labels = b.input("ids", {13}, DType::kI32);
                       b.add_output(b.correct_count(logits, labels));
                       return b.softmax_cross_entropy(logits, labels,
                                                      {.reduction = reduction, .ignore_index = 2});
                     }});
    }
    all.push_back(on_plain("mse_" + name, {50, 400}, [=](Builder& b, ValueId x) {
      return b.mean_squared_error(x, b.parameter("target", {50, 400}), reduction);
    }));
  }
}

std::vector<OpCase> op_cases() {
  std::vector<OpCase> all;
  add_dense(all);
  add_norms(all);
  add_pointwise(all);
  add_pools(all);
  add_shapes(all);
  add_sequences(all);
  add_losses(all);
  return all;
}

Graph training_graph(const OpCase& c, const graph::Optimizer& optimizer) {
  Builder b(c.name);
  const auto y = c.make(b);
  const auto weighted = b.mul(y, b.input("probe", b.shape(y)), "the_terms");
  b.set_loss(b.reduce_sum(weighted, {}, false, "the_loss"));
  b.add_output(b.graph().loss);
  return graph::make_training_graph(b.finish(), {.optimizer = optimizer}).graph;
}

void fill_both(CpuRunner& a, CpuRunner& b, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  for (const graph::Value& value : b.prepared().graph.values) {
    if (value.producer.valid()) continue;
    const auto count = static_cast<std::size_t>(graph::element_count(value.shape));
    if (value.dtype == DType::kI32) {
      std::vector<std::int32_t> ids(count);
      for (auto& id : ids) id = static_cast<std::int32_t>(random() % 7);
      a.set(value.name, ids);
      b.set(value.name, ids);
      continue;
    }
    std::vector<float> data(count);
    const bool zero = value.role == graph::Role::kOptimizerState;
    const float scale = value.name == "x" || value.name == "probe" ? 1.0f : 0.5f;
    for (float& x : data) x = zero ? 0.0f : scale * normal(random);
    a.set(value.name, data);
    b.set(value.name, data);
  }
}

class CpuAgainstReference : public testing::TestWithParam<OpCase> {};

TEST_P(CpuAgainstReference, EveryValueOfAStepAgrees) {
  const Graph graph = training_graph(GetParam(), graph::SgdAttributes{.rate = {.base = 0.01}});
  CpuRunner truth(make_reference_backend()->prepare(graph));
  CpuRunner cpu(make_cpu_backend({.threads = 2})->prepare(graph));
  fill_both(cpu, truth, 11);
  truth.step({.seed = 3, .step = 0});
  cpu.step({.seed = 3, .step = 0});
  for (const graph::Value& value : graph.values) {
    if (cpu.prepared().value_layouts[cpu.id(value.name)] == "workspace") continue;
    if (value.dtype == DType::kI32) {
      EXPECT_EQ(cpu.get<std::int32_t>(value.name), truth.get<std::int32_t>(value.name));
    } else {
      // The loss is a sum of terms of both signs, exact to 1e-5 of those.
      const double scale = value.name == "the_loss" ? largest_of(truth.get("the_terms")) : 0.0;
      EXPECT_LE(relative_difference(cpu.get(value.name), truth.get(value.name), scale), 1e-5)
          << value.name << " " << graph::shape_text(value.shape);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ops, CpuAgainstReference, testing::ValuesIn(op_cases()),
                         [](const auto& param) { return param.param.name; });

TEST(CpuOptimizers, ThreeStepsAgreeWithTheReference) {
  const graph::LearningRate rate{.base = 0.05};
  const std::vector<graph::Optimizer> optimizers{
      graph::SgdAttributes{.rate = rate},
      graph::SgdAttributes{.rate = rate, .weight_decay = 0.1},
      graph::SgdAttributes{.rate = rate, .momentum = 0.9},
      graph::SgdAttributes{.rate = rate, .momentum = 0.9, .nesterov = true, .weight_decay = 0.1},
      graph::AdamAttributes{.rate = rate},
      graph::AdamAttributes{.rate = rate, .weight_decay = 0.1},
      graph::AdamAttributes{.rate = rate, .weight_decay = 0.1, .decoupled = true}};
  const OpCase c{
      "optimizers", [](Builder& b) {
        const auto h = b.relu(blocked(b, 20));
        return b.linear(b.flatten(h), b.parameter("fc", {3, 720}), b.parameter("b", {3}));
      }};
  for (std::size_t i = 0; i < optimizers.size(); ++i) {
    const Graph graph = training_graph(c, optimizers[i]);
    CpuRunner truth(make_reference_backend()->prepare(graph));
    CpuRunner cpu(make_cpu_backend({.threads = 2})->prepare(graph));
    fill_both(cpu, truth, 12);
    for (std::uint64_t step = 0; step < 3; ++step) {
      truth.step({.seed = 3, .step = step});
      cpu.step({.seed = 3, .step = step});
    }
    for (const graph::Value& value : graph.values) {
      if (value.producer.valid() || !graph::is_persistent(value.role)) continue;
      EXPECT_LE(relative_difference(cpu.get(value.name), truth.get(value.name)), 2e-5)
          << i << " " << value.name;
    }
  }
}

// Addresses, in-place use and repetition change no bit, for every op.
TEST_P(CpuAgainstReference, InPlaceAndRepeatedRunsGiveTheSameBits) {
  const Graph graph = training_graph(GetParam(), graph::SgdAttributes{.rate = {.base = 0.01}});
  const auto bits = [&](bool inplace) {
    CpuRunner cpu(make_cpu_backend({.threads = 2})->prepare(graph), inplace);
    CpuRunner filled(make_cpu_backend({.threads = 2})->prepare(graph));
    fill_both(cpu, filled, 11);
    std::vector<float> all;
    for (std::uint64_t step = 0; step < 2; ++step) {
      cpu.step({.seed = 3, .step = step});
      all.push_back(cpu.get("the_loss")[0]);
    }
    for (const graph::Value& value : graph.values) {
      if (value.producer.valid() || !graph::is_persistent(value.role)) continue;
      const auto data = cpu.get(value.name);
      all.insert(all.end(), data.begin(), data.end());
    }
    return all;
  };
  const auto first = bits(false);
  const auto again = bits(false);
  const auto inplace = bits(true);
  EXPECT_EQ(std::memcmp(first.data(), again.data(), first.size() * sizeof(float)), 0);
  EXPECT_EQ(std::memcmp(first.data(), inplace.data(), first.size() * sizeof(float)), 0);
}

}  // namespace
}  // namespace reprise::kernels
