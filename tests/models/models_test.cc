#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "base/error.h"
#include "models/model.h"

namespace reprise::models {
namespace {

graph::Shape shape_of(const graph::Graph& graph, const std::string& name) {
  for (const graph::Value& value : graph.values) {
    if (value.name == name) return value.shape;
  }
  ADD_FAILURE() << "no value named " << name;
  return {};
}

// Published figures: torchvision's model pages for the ImageNet models with 1000 classes.
TEST(Models, HaveThePublishedNumberOfParameters) {
  const std::map<std::string, std::int64_t> published{
      {"resnet18", 11'689'512},  {"resnet34", 21'797'672},  {"resnet50", 25'557'032},
      {"resnet101", 44'549'160}, {"resnet152", 60'192'808}, {"vgg16", 138'357'544}};
  for (const auto& [name, count] : published) {
    EXPECT_EQ(graph::parameter_count(make_model(name, {.batch = 1}).graph), count) << name;
  }
}

TEST(Models, Resnet50HasThePublishedStageShapes) {
  const graph::Graph graph = make_model("resnet50", {.batch = 2}).graph;
  EXPECT_EQ(shape_of(graph, "stem_pool"), (graph::Shape{2, 64, 56, 56}));
  EXPECT_EQ(shape_of(graph, "layer1.2.relu"), (graph::Shape{2, 256, 56, 56}));
  EXPECT_EQ(shape_of(graph, "layer2.3.relu"), (graph::Shape{2, 512, 28, 28}));
  EXPECT_EQ(shape_of(graph, "layer3.5.relu"), (graph::Shape{2, 1024, 14, 14}));
  EXPECT_EQ(shape_of(graph, "layer4.2.relu"), (graph::Shape{2, 2048, 7, 7}));
  // v1.5: the stride sits on the 3x3 convolution, so the 1x1 before it keeps the image.
  EXPECT_EQ(shape_of(graph, "layer2.0.relu1"), (graph::Shape{2, 128, 56, 56}));
  EXPECT_EQ(shape_of(graph, "layer2.0.relu2"), (graph::Shape{2, 128, 28, 28}));
}

TEST(Models, Resnet20CountsItsParametersByHand) {
  // stem 16*1*9; 7 3x3 convolutions of 16 channels less the stem: 6 * 16*16*9; then 16->32, 5 *
  // 32*32*9; 32->64, 5 * 64*64*9; 1x1 shortcuts 16*32 + 32*64; batch norms 2 * (7*16 + 7*32 +
  // 7*64); linear 64*10 + 10.
  const std::int64_t convs =
      16 * 9 + 6 * 16 * 16 * 9 + 16 * 32 * 9 + 5 * 32 * 32 * 9 + 32 * 64 * 9 + 5 * 64 * 64 * 9;
  const std::int64_t rest = 16 * 32 + 32 * 64 + 2 * (7 * 16 + 7 * 32 + 7 * 64) + 64 * 10 + 10;
  EXPECT_EQ(graph::parameter_count(make_model("resnet20", {}).graph), convs + rest);
}

TEST(Models, LstmCountsItsParametersByHand) {
  // embedding 50*8; layers (4*16)*(8+16) + 64 and 64*(16+16) + 64; head 50*16 + 50
  const auto model = make_model("lstm", {.batch = 3,
                                         .hidden = 16,
                                         .layers = 2,
                                         .embedding = 8,
                                         .vocabulary = 50,
                                         .seq_len = 7,
                                         .chunk = 3});
  EXPECT_EQ(graph::parameter_count(model.graph),
            50 * 8 + 64 * 24 + 64 + 64 * 32 + 64 + 50 * 16 + 50);
  // 7 steps in chunks of 3: 3, 3, 1
  EXPECT_EQ(shape_of(model.graph, "chunk0.layer1"), (graph::Shape{3, 3, 16}));
  EXPECT_EQ(shape_of(model.graph, "chunk2.layer2"), (graph::Shape{1, 3, 16}));
}

TEST(Models, BuildForTrainingAndInferenceAndSayHowEveryVariableStarts) {
  for (const ModelInfo& info : all_models()) {
    if (info.name == "resnet1202" || info.name == "resnet1001")
      continue;  // the same code as resnet20 and 164
    for (const bool training : {true, false}) {
      const Model model = make_model(info.name, {.batch = 2, .training = training});
      EXPECT_TRUE(model.graph.loss.valid()) << info.name;
      std::size_t variables = 0;
      for (const graph::Value& value : model.graph.values) {
        variables += graph::is_persistent(value.role) && !value.producer.valid();
      }
      EXPECT_EQ(model.initializers.size(), variables) << info.name;
    }
  }
}

TEST(Models, RefuseWrongOptionsByName) {
  const auto message = [](std::string_view name, const ModelOptions& options) -> std::string {
    try {
      (void)make_model(name, options);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_THAT(message("resnet21", {}),
              testing::HasSubstr("unknown model 'resnet21'; known: mlp, resnet20"));
  EXPECT_THAT(message("resnet20", {.hidden = 3}),
              testing::HasSubstr("--hidden 3: model 'resnet20' has no such option"));
  EXPECT_THAT(message("mlp", {.batch = -1}), testing::HasSubstr("--batch -1"));
  EXPECT_THAT(message("resnet20", {.dropout = 0.5}), testing::HasSubstr("no place for dropout"));
  EXPECT_THAT(message("mlp", {.dropout = 1}), testing::HasSubstr("--dropout 1"));
}

}  // namespace
}  // namespace reprise::models
