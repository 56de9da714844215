// Shapes of embeddings, recurrent layers, losses and updates, and what they refuse.

#include "tests/graph/inference_fixture.h"

namespace reprise::graph {
namespace {

using testing::AllOf;
using testing::HasSubstr;

TEST_F(Inference, EmbeddingAddsTheWidthOfItsTable) {
  const ValueId ids = i32({5, 2});
  EXPECT_EQ(shape(b.embedding(f32({10, 3}), ids)), (Shape{5, 2, 3}));
  const ValueId dy = f32({5, 2, 3});
  EXPECT_EQ(shape(append(OpKind::kEmbeddingGrad, {ids, dy}, EmbeddingAttributes{.rows = 10})[0]),
            (Shape{10, 3}));
  EXPECT_THAT(refusal([&] {
                b.embedding(f32({10, 3}), f32({5}));
              }),
              HasSubstr("ids must be i32, got f32"));
  EXPECT_THAT(refusal([&] {
                append(OpKind::kEmbeddingGrad, {ids, dy}, EmbeddingAttributes{});
              }),
              HasSubstr("rows must be at least 1, got 0"));
}

// T = 7 steps, B = 2, I = 3, R = 5; four gates of lstm are 20 rows, three of gru 15.
TEST_F(Inference, RecurrentLayersReturnTheSequenceAndTheLastState) {
  const ValueId x = f32({7, 2, 3});
  const ValueId h0 = f32({2, 5});
  const auto lstm = append(OpKind::kLstm, {x, h0, h0, f32({20, 3}), f32({20, 5}), f32({20})});
  EXPECT_EQ(shape(lstm[0]), (Shape{7, 2, 5}));
  EXPECT_EQ(shape(lstm[2]), (Shape{2, 5}));
  EXPECT_EQ(shape(lstm[3]), (Shape{7, 2, 25}));  // four gates and c
  const auto gru = append(OpKind::kGru, {x, h0, f32({15, 3}), f32({15, 5}), f32({20})});
  EXPECT_EQ(shape(gru[0]), (Shape{7, 2, 5}));
  EXPECT_EQ(shape(gru[2]), (Shape{7, 2, 20}));
  EXPECT_THAT(refusal([&] {
                b.lstm(x, h0, h0, f32({15, 3}), f32({20, 5}), f32({20}), "l");
              }),
              AllOf(HasSubstr("lstm 'l'"), HasSubstr("w_ih must have shape [20,3], got [15,3]")));
  EXPECT_THAT(refusal([&] {
                b.lstm(x, h0, f32({3, 5}), f32({20, 3}), f32({20, 5}), f32({20}));
              }),
              HasSubstr("c0 must have shape [2,5], got [3,5]"));
}

TEST_F(Inference, RecurrentGradientsAccumulateIntoThreeSums) {
  const ValueId x = f32({7, 2, 3});
  const ValueId h = f32({2, 5});
  const ValueId y = f32({7, 2, 5});
  const ValueId w_ih = f32({20, 3}), w_hh = f32({20, 5}), bias = f32({20}), saved = f32({7, 2, 25});
  std::vector<ValueId> inputs{x, h, h, w_ih, w_hh, bias, y, h, h, saved, y, h, h};
  const auto first = append(OpKind::kLstmGrad, inputs);
  ASSERT_EQ(first.size(), 6u);
  EXPECT_EQ(shape(first[0]), (Shape{7, 2, 3}));
  EXPECT_EQ(shape(first[5]), (Shape{20}));
  inputs.insert(inputs.end(), {first[3], first[4], first[5]});
  EXPECT_EQ(append(OpKind::kLstmGrad, inputs, NoAttributes{}, true).size(), 6u);
  inputs.pop_back();
  EXPECT_THAT(refusal([&] { append(OpKind::kLstmGrad, inputs, NoAttributes{}, true); }),
              AllOf(HasSubstr("13 inputs and 3 running sums"), HasSubstr("got 15")));
}

TEST_F(Inference, LossesAreScalars) {
  const ValueId logits = f32({4, 3});
  const ValueId labels = i32({4});
  EXPECT_EQ(shape(b.softmax_cross_entropy(logits, labels)), Shape{});
  EXPECT_EQ(dtype(b.correct_count(logits, labels)), DType::kI32);
  EXPECT_EQ(shape(b.mean_squared_error(logits, logits)), Shape{});
  EXPECT_THAT(refusal([&] { b.softmax_cross_entropy(logits, i32({5})); }),
              HasSubstr("labels must have shape [4], got [5]"));
  EXPECT_THAT(refusal([&] { b.softmax_cross_entropy(logits, f32({4})); }),
              HasSubstr("labels must be i32, got f32"));
  EXPECT_THAT(refusal([&] { b.mean_squared_error(logits, f32({3, 4})); }), HasSubstr("[3,4]"));
}

TEST_F(Inference, OptimizersCheckTheirNumbers) {
  const ValueId w = b.parameter("w", {2});
  const ValueId g = f32({2});
  const ValueId m = b.source("m", {2}, DType::kF32, Role::kOptimizerState);
  const auto sgd = [&](SgdAttributes a, std::vector<ValueId> inputs) {
    return refusal([&] { append(OpKind::kSgd, inputs, a); });
  };
  EXPECT_EQ(append(OpKind::kSgd, {w, g}, SgdAttributes{}).size(), 1u);
  EXPECT_EQ(append(OpKind::kSgd, {w, g, m}, SgdAttributes{.momentum = 0.9}).size(), 2u);
  EXPECT_THAT(sgd({.momentum = 0.9}, {w, g}), HasSubstr("momentum 0.9 needs a third input"));
  EXPECT_THAT(sgd({.momentum = 1.0}, {w, g, m}), HasSubstr("momentum must lie in [0, 1), got 1"));
  EXPECT_THAT(sgd({.nesterov = true}, {w, g}), HasSubstr("nesterov needs a momentum"));
  EXPECT_THAT(sgd({.weight_decay = -1}, {w, g}),
              HasSubstr("weight_decay must be at least 0, got -1"));
  EXPECT_THAT(sgd({.rate = {.base = -0.1}}, {w, g}),
              HasSubstr("rate must be at least 0, got -0.1"));
  EXPECT_THAT(sgd({.rate = {.kind = LearningRate::Kind::kCosine}}, {w, g}),
              HasSubstr("cosine schedule needs period_steps of at least 1, got 0"));
  EXPECT_THAT(sgd({}, {w, f32({3})}), HasSubstr("gradient must have shape [2], got [3]"));
  EXPECT_EQ(append(OpKind::kAdam, {w, g, m, m}, AdamAttributes{}).size(), 3u);
  EXPECT_THAT(refusal([&] {
                append(OpKind::kAdam, {w, g, m, m}, AdamAttributes{.beta2 = 1.0});
              }),
              HasSubstr("beta2 must lie in [0, 1), got 1"));
}

}  // namespace
}  // namespace reprise::graph
