// Every model in bf16: what stays f32, and how many bytes the forward pass makes.

#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/autodiff.h"
#include "graph/text.h"
#include "models/model.h"

namespace reprise::models {
namespace {

ModelOptions small(const ModelInfo& info, graph::DType precision) {
  ModelOptions options;
  options.batch = 2;
  options.precision = precision;
  if (info.sequence) {
    options.seq_len = 8;
    options.chunk = 4;
    options.hidden = 4;
  }
  return options;
}

bool is_large(std::string_view name) {
  return name == "resnet1202" || name == "resnet1001" || name == "resnet152";
}

template <class F>
void for_each_model(F&& f) {
  for (const ModelInfo& info : all_models())
    if (!is_large(info.name)) f(info);
}

TEST(Precision, WhatUpdatesReadAndWhatPersistsIsF32InEveryModel) {
  for_each_model([](const ModelInfo& info) {
    const Model model = make_model(info.name, small(info, graph::DType::kBF16));
    const graph::Graph training = graph::make_training_graph(model.graph, {}).graph;
    int updates = 0, bf16 = 0;
    for (const graph::Value& value : training.values) {
      bf16 += value.dtype == graph::DType::kBF16 ? 1 : 0;
      if (!graph::is_persistent(value.role)) continue;
      EXPECT_NE(value.dtype, graph::DType::kBF16) << info.name << " " << value.name;
    }
    for (const graph::Node& node : training.nodes) {
      if (node.op != graph::OpKind::kSgd) continue;
      ++updates;
      // Nor was the gradient rounded on its way: no cast from bf16 makes it.
      const graph::Value& gradient = training.values[node.inputs[1]];
      EXPECT_EQ(gradient.dtype, graph::DType::kF32) << info.name << " " << gradient.name;
      const graph::Value& source = training.values[graph::storage_root(training, node.inputs[1])];
      ASSERT_TRUE(source.producer.valid());
      EXPECT_NE(training.nodes[source.producer].op, graph::OpKind::kCast)
          << info.name << " " << gradient.name;
    }
    EXPECT_GT(updates, 0) << info.name;
    EXPECT_GT(bf16, 0) << info.name;
    EXPECT_EQ(training.values[training.loss].dtype, graph::DType::kF32) << info.name;
  });
}

TEST(Precision, EveryModelEvaluatesInBf16AndPrints) {
  for_each_model([](const ModelInfo& info) {
    ModelOptions options = small(info, graph::DType::kBF16);
    options.training = false;
    const Model model = make_model(info.name, options);
    EXPECT_EQ(model.graph.values[model.graph.outputs.back()].name, "correct") << info.name;
    EXPECT_EQ(graph::parse_graph(graph::print_graph(model.graph)), model.graph) << info.name;
  });
}

double activation_bytes(const graph::Graph& graph) {
  double bytes = 0;
  for (const graph::Value& value : graph.values) {
    if (!value.producer.valid()) continue;
    bytes +=
        static_cast<double>(graph::element_count(value.shape) * graph::dtype_bytes(value.dtype));
  }
  return bytes;
}

// All activations but the logits take 2 bytes instead of 4. Beside them are made: the images, cast,
// 1 of 19 * 16 parts, and the weights, cast, 270,000 of 64 * 16 * 784 * 19 numbers.
TEST(Precision, TheForwardPassOfResnet20MakesHalfTheBytes) {
  ModelOptions options{.batch = 64};
  const double f32 = activation_bytes(make_model("resnet20", options).graph);
  options.precision = graph::DType::kBF16;
  const double bf16 = activation_bytes(make_model("resnet20", options).graph);
  EXPECT_GT(bf16, 0.5 * f32);
  EXPECT_LT(bf16, 0.52 * f32);
}

TEST(Precision, OtherDtypesAreRefused) {
  EXPECT_THROW((void)make_model("mlp", {.precision = graph::DType::kI32}), base::Error);
}

}  // namespace
}  // namespace reprise::models
