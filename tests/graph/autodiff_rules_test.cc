// Every op with a gradient: the gradient of each input has the input's shape, and the backward ops
// read what graph/op.h says. Whether the numbers are right is for the reference backend to show.

#include <functional>
#include <gtest/gtest.h>
#include <map>

#include "fmt/format.h"

#include "graph/autodiff.h"
#include "graph/builder.h"
#include "tests/graph/graph_query.h"

namespace reprise::graph {
namespace {

using enum OpKind;

// Appends the op and returns y; lists the values to differentiate by.
using Make = std::function<ValueId(Builder&, std::vector<ValueId>&)>;

ValueId leaf(Builder& b, std::vector<ValueId>& leaves, const Shape& shape) {
  leaves.push_back(b.input(fmt::format("leaf{}", leaves.size()), shape));
  return leaves.back();
}

Make unary(const Shape& shape, std::function<ValueId(Builder&, ValueId)> op) {
  return [=](Builder& b, std::vector<ValueId>& leaves) { return op(b, leaf(b, leaves, shape)); };
}

Make norm(OpKind op, const Shape& x, const Shape& features) {
  return [=](Builder& b, std::vector<ValueId>& leaves) {
    const ValueId in = leaf(b, leaves, x);
    const ValueId gamma = leaf(b, leaves, features);
    return b.append(op, {in, gamma, leaf(b, leaves, features)}, NormAttributes{}, "y")[0];
  };
}

Make recurrent(bool lstm) {
  return [=](Builder& b, std::vector<ValueId>& leaves) {
    const std::int64_t gates = lstm ? 4 : 3;
    const ValueId x = leaf(b, leaves, {5, 2, 3});
    const ValueId h = leaf(b, leaves, {2, 4});
    const ValueId c = lstm ? leaf(b, leaves, {2, 4}) : ValueId{};
    const ValueId w_ih = leaf(b, leaves, {gates * 4, 3});
    const ValueId w_hh = leaf(b, leaves, {gates * 4, 4});
    const ValueId bias = leaf(b, leaves, {16});
    return lstm ? b.lstm(x, h, c, w_ih, w_hh, bias).y : b.gru(x, h, w_ih, w_hh, bias).y;
  };
}

Make binary(const Shape& left, const Shape& right,
            std::function<ValueId(Builder&, ValueId, ValueId)> op) {
  return [=](Builder& b, std::vector<ValueId>& leaves) {
    const ValueId a = leaf(b, leaves, left);
    return op(b, a, leaf(b, leaves, right));
  };
}

using Cases = std::multimap<OpKind, Make>;

void add_dense(Cases& cases) {
  cases.emplace(kConv2d, [](Builder& b, std::vector<ValueId>& leaves) {
    const ValueId x = leaf(b, leaves, {2, 4, 9, 7});
    const ValueId w = leaf(b, leaves, {6, 2, 3, 2});
    return b.conv2d(x, w, leaf(b, leaves, {6}),
                    {.stride = {2, 1}, .padding = {1, 0}, .dilation = {1, 2}, .groups = 2});
  });
  // y [M,P] = A [M,K] B [K,P], each factor stored either way; then with a leading axis and a bias.
  for (const bool ta : {false, true}) {
    for (const bool tb : {false, true}) {
      for (const Shape& lead : {Shape{}, Shape{5}}) {
        Shape a = lead;
        Shape c = lead;
        for (Dim d : ta ? Shape{3, 2} : Shape{2, 3}) a.push_back(d);
        for (Dim d : tb ? Shape{4, 3} : Shape{3, 4}) c.push_back(d);
        cases.emplace(kMatmul, [=](Builder& b, std::vector<ValueId>& leaves) {
          const ValueId left = leaf(b, leaves, a);
          const ValueId right = leaf(b, leaves, c);
          return b.append(kMatmul, {left, right, leaf(b, leaves, {4})}, MatmulAttributes{ta, tb},
                          "y")[0];
        });
      }
    }
  }
  cases.emplace(kEmbedding, [](Builder& b, std::vector<ValueId>& leaves) {
    return b.embedding(leaf(b, leaves, {7, 3}), b.input("ids", {2, 5}, DType::kI32));
  });
  cases.emplace(kLstm, recurrent(true));
  cases.emplace(kGru, recurrent(false));
}

void add_images(Cases& cases) {
  const Shape image{2, 3, 9, 7};
  const Pool2dAttributes pool{.kernel = {3, 2}, .stride = {2, 2}, .padding = {1, 0}};
  cases.emplace(kBatchNorm, norm(kBatchNorm, image, {3}));
  cases.emplace(kBatchNormApply, [=](Builder& b, std::vector<ValueId>& leaves) {
    const ValueId x = leaf(b, leaves, image);
    const ValueId gamma = leaf(b, leaves, {3});
    return b.append(kBatchNormApply,
                    {x, gamma, leaf(b, leaves, {3}), b.input("mean", {3}), b.input("var", {3}),
                     b.input("parts", {3}, DType::kI32)},
                    NormAttributes{}, "y")[0];
  });
  cases.emplace(kLayerNorm, norm(kLayerNorm, {2, 5, 6}, {6}));
  cases.emplace(kMaxPool, unary(image, [=](Builder& b, ValueId x) { return b.max_pool(x, pool); }));
  cases.emplace(kAvgPool, unary(image, [=](Builder& b, ValueId x) { return b.avg_pool(x, pool); }));
  cases.emplace(kGlobalAvgPool,
                unary(image, [](Builder& b, ValueId x) { return b.global_avg_pool(x); }));
  cases.emplace(kUpsample, unary(image, [](Builder& b, ValueId x) { return b.upsample(x, 3); }));
}

void add_pointwise(Cases& cases) {
  const Shape s{3, 4};
  cases.emplace(kRelu, unary(s, [](Builder& b, ValueId x) { return b.relu(x); }));
  cases.emplace(kSigmoid, unary(s, [](Builder& b, ValueId x) { return b.sigmoid(x); }));
  cases.emplace(kTanh, unary(s, [](Builder& b, ValueId x) { return b.tanh(x); }));
  cases.emplace(kGelu, unary(s, [](Builder& b, ValueId x) { return b.gelu(x); }));
  cases.emplace(kScale, unary(s, [](Builder& b, ValueId x) { return b.scale(x, 0.5); }));
  cases.emplace(kCast, unary(s, [](Builder& b, ValueId x) {
                  return b.cast(b.cast(x, DType::kBF16), DType::kF32);
                }));
  cases.emplace(kDropout, unary(s, [](Builder& b, ValueId x) { return b.dropout(x, 0.5); }));
  cases.emplace(kMul, unary(s, [](Builder& b, ValueId x) { return b.mul(x, x); }));
  cases.emplace(kAdd, unary(s, [](Builder& b, ValueId x) { return b.add(x, x); }));
  cases.emplace(kAdd, binary(s, s, [](Builder& b, ValueId x, ValueId y) { return b.add(x, y); }));
  cases.emplace(kMul, binary(s, s, [](Builder& b, ValueId x, ValueId y) { return b.mul(x, y); }));
  cases.emplace(kMeanSquaredError, binary(s, s, [](Builder& b, ValueId x, ValueId y) {
                  return b.mean_squared_error(x, y);
                }));
  cases.emplace(kSoftmaxCrossEntropy, unary(s, [](Builder& b, ValueId x) {
                  return b.softmax_cross_entropy(x, b.input("labels", {3}, DType::kI32));
                }));
}

void add_shapes(Cases& cases) {
  cases.emplace(kReshape, unary({3, 4}, [](Builder& b, ValueId x) {
                  return b.reshape(x, {2, 6});
                }));
  cases.emplace(kSlice, unary({3, 4}, [](Builder& b, ValueId x) { return b.slice(x, 1, 1, 3); }));
  cases.emplace(kConcat, binary({3, 4}, {3, 2}, [](Builder& b, ValueId x, ValueId y) {
                  return b.concat({x, y, x}, 1);
                }));
  for (const Shape& from : {Shape{}, Shape{4}, Shape{3, 1}, Shape{1, 1}, Shape{3, 4}}) {
    cases.emplace(kBroadcast, unary(from, [](Builder& b, ValueId x) {
                    return b.broadcast(x, {2, 3, 4});
                  }));
    cases.emplace(kBroadcast, unary({2, 3, 4}, [](Builder& b, ValueId x) {
                    return b.broadcast(x, {2, 3, 4});
                  }));
  }
  for (const Ints& axes : {Ints{}, Ints{1}, Ints{0, 2}, Ints{0, 1, 2}}) {
    for (const bool keep : {false, true}) {
      cases.emplace(kReduceSum, unary({2, 3, 4}, [=](Builder& b, ValueId x) {
                      return b.reduce_sum(x, axes, keep);
                    }));
      cases.emplace(kReduceMean, unary({2, 3, 4}, [=](Builder& b, ValueId x) {
                      return b.reduce_mean(x, axes, keep);
                    }));
    }
  }
}

Cases all_cases() {
  Cases cases;
  add_dense(cases);
  add_images(cases);
  add_pointwise(cases);
  add_shapes(cases);
  return cases;
}

TEST(GradientRules, GiveEveryInputAGradientOfItsShape) {
  const Cases cases = all_cases();
  for (std::size_t i = 0; i < kOpKindCount; ++i) {
    const OpInfo& op = op_info(static_cast<OpKind>(i));
    EXPECT_EQ(op.gradient != nullptr, cases.contains(op.kind)) << op.name;
    const auto [first, last] = cases.equal_range(op.kind);
    for (auto it = first; it != last; ++it) {
      Builder b("case");
      std::vector<ValueId> leaves;
      const ValueId y = it->second(b, leaves);
      b.set_loss(b.shape(y).empty() ? y : b.reduce_sum(y));
      const Graph graph =
          make_training_graph(b.finish(), {.fetch_gradients = leaves, .update = false}).graph;
      EXPECT_NO_THROW(validate(graph)) << op.name;
      for (ValueId input : leaves) {
        const Value& value = graph.values[input];
        const ValueId gradient = find_value(graph, "grad/" + value.name);
        ASSERT_TRUE(gradient.valid()) << op.name << " " << value.name;
        EXPECT_EQ(graph.values[gradient].shape, value.shape) << op.name << " " << value.name;
        EXPECT_NE(graph.nodes[graph.values[gradient].producer].op, kFill) << op.name;
      }
    }
  }
}

// The rule of one op, and the one backward node it makes.
const Node& backward_node(const Graph& graph, OpKind op) {
  const auto found = nodes_of(graph, op);
  EXPECT_EQ(found.size(), 1U);
  return *found.at(0);
}

TEST(GradientRules, ReadTheOutputWhereThatIsEnough) {
  Builder b("chain");
  const ValueId x = b.parameter("x", {2, 3, 4, 4});
  const ValueId relu = b.relu(x, "relu");
  const ValueId sigmoid = b.sigmoid(relu, "sigmoid");
  const ValueId tanh = b.tanh(sigmoid, "tanh");
  const ValueId pool = b.max_pool(tanh, {.kernel = {2, 2}, .stride = {2, 2}}, "pool");
  b.set_loss(b.reduce_sum(b.upsample(pool, 2)));
  const Graph graph = make_training_graph(b.finish(), {}).graph;
  EXPECT_EQ(backward_node(graph, kReluGrad).inputs[0], relu);
  EXPECT_EQ(backward_node(graph, kSigmoidGrad).inputs[0], sigmoid);
  EXPECT_EQ(backward_node(graph, kTanhGrad).inputs[0], tanh);
  EXPECT_EQ(backward_node(graph, kMaxPoolGrad).inputs[1], find_value(graph, "pool.indices"));
  EXPECT_EQ(backward_node(graph, kUpsampleGrad).inputs.size(), 1U);
}

TEST(GradientRules, DropoutSharesItsStreamWithItsGradient) {
  Builder b("two_dropouts");
  const ValueId x = b.parameter("x", {64});
  b.set_loss(b.reduce_sum(b.dropout(b.dropout(x, 0.5, "first"), 0.25, "second")));
  const Graph graph = make_training_graph(b.finish(), {}).graph;
  const auto forward = nodes_of(graph, kDropout);
  const auto backward = nodes_of(graph, kDropoutGrad);
  ASSERT_EQ(forward.size(), 2U);
  ASSERT_EQ(backward.size(), 2U);
  EXPECT_NE(forward[0]->attributes, forward[1]->attributes);
  EXPECT_EQ(forward[0]->attributes, backward[1]->attributes);
  EXPECT_EQ(forward[1]->attributes, backward[0]->attributes);
}

}  // namespace
}  // namespace reprise::graph
