#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <set>
#include <string>

#include "fmt/format.h"

#include "base/error.h"
#include "graph/evaluation.h"
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

// Per unit of n (three basic blocks): 2 (9 c^2 + 2 c) for c = 16, 32, 64, which is 97,216. The
// paper's option A has 269,722 parameters at n = 3 with 3x32x32 images and 10 classes; option B
// adds 16*32 + 2*32 and 32*64 + 2*64, which is 2,752.
TEST(Models, CifarResnetsHaveThePublishedNumberOfParameters) {
  const std::map<std::string, std::int64_t> blocks{{"resnet20", 3},   {"resnet32", 5},
                                                   {"resnet44", 7},   {"resnet56", 9},
                                                   {"resnet110", 18}, {"resnet1202", 200}};
  for (const auto& [name, n] : blocks) {
    const auto graph = make_model(name, {.channels = 3, .height = 32, .width = 32}).graph;
    EXPECT_EQ(graph::parameter_count(graph), 269'722 + 2'752 + (n - 3) * 97'216) << name;
  }
}

// A block that keeps its shape: 17 c^2 + 12 c; c = 16, 32, 64: 92,736 over the three stages. First
// blocks: 18 * 16^2 + 6 * 16, then 23 c^2 + 8 c: 4,704 + 23,808 + 94,720. Stem 3*16*9, final norm
// 2*256, linear 2,570.
TEST(Models, PreactivationResnetsCountTheirParametersByHand) {
  const std::map<std::string, std::int64_t> blocks{{"resnet164", 18}, {"resnet1001", 111}};
  for (const auto& [name, n] : blocks) {
    const auto graph = make_model(name, {.channels = 3, .height = 32, .width = 32}).graph;
    EXPECT_EQ(graph::parameter_count(graph),
              (n - 1) * 92'736 + 4'704 + 23'808 + 94'720 + 432 + 512 + 2'570)
        << name;
  }
}

// The number in a ResNet's name counts its convolutions (without the shortcuts') and the linear
// layer.
TEST(Models, AResnetIsAsDeepAsItsNameSays) {
  for (const ModelInfo& info : all_models()) {
    if (!info.name.starts_with("resnet")) continue;
    std::int64_t depth = 0;
    for (const graph::Node& node : make_model(info.name, {.batch = 2}).graph.nodes) {
      const bool shortcut = node.name.find("shortcut") != std::string::npos ||
                            node.name.find("downsample") != std::string::npos;
      depth +=
          (node.op == graph::OpKind::kConv2d || node.op == graph::OpKind::kMatmul) && !shortcut;
    }
    EXPECT_EQ(fmt::format("resnet{}", depth), info.name);
  }
}

// double(i, o) = 9 i o + 9 o^2 + 4 o. Down: double(1, 16), double(16, 32); bottom double(32, 64);
// up: 9*64*32 + double(64, 32), 9*32*16 + double(32, 16); linear 16*10 + 10.
TEST(Models, UnetCountsItsParametersByHand) {
  const auto twice = [](std::int64_t i, std::int64_t o) { return 9 * i * o + 9 * o * o + 4 * o; };
  EXPECT_EQ(graph::parameter_count(make_model("unet", {}).graph),
            twice(1, 16) + twice(16, 32) + twice(32, 64) + 9 * 64 * 32 + twice(64, 32) +
                9 * 32 * 16 + twice(32, 16) + 170);
}

TEST(Models, UnetOfDepthFourHasFourSkips) {
  const graph::Graph graph =
      make_model("unet", {.batch = 1, .height = 64, .width = 64, .layers = 4}).graph;
  EXPECT_EQ(shape_of(graph, "bottom.relu2"), (graph::Shape{1, 256, 4, 4}));
  EXPECT_EQ(shape_of(graph, "up4.concat"), (graph::Shape{1, 256, 8, 8}));
  EXPECT_EQ(shape_of(graph, "up1.concat"), (graph::Shape{1, 32, 64, 64}));
}

// Channels within the three blocks: 24 36 48 60, 36 48 60 72, 42 54 66 78. A layer of c channels: 2
// c + 12*9 c; transitions 2*72 + 72*36 and 2*84 + 84*42; stem 24*9; final norm 180, linear 910.
TEST(Models, DensenetCountsItsParametersByHand) {
  const std::int64_t channels = (24 + 36 + 48 + 60) + (36 + 48 + 60 + 72) + (42 + 54 + 66 + 78);
  EXPECT_EQ(graph::parameter_count(make_model("densenet", {}).graph),
            110 * channels + 144 + 72 * 36 + 168 + 84 * 42 + 24 * 9 + 180 + 910);
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

std::set<std::string> variable_names(const graph::Graph& graph) {
  std::set<std::string> names;
  for (const graph::Value& value : graph.values) {
    if (graph::is_persistent(value.role)) names.insert(value.name);
  }
  return names;
}

TEST(Models, SayHowEveryVariableStarts) {
  for (const ModelInfo& info : all_models()) {
    for (const bool training : {true, false}) {
      const Model model = make_model(info.name, {.batch = 2, .training = training});
      EXPECT_NO_THROW(graph::validate(model.graph)) << info.name;
      std::set<std::string> started;
      for (const auto& [name, initializer] : model.initializers) {
        EXPECT_TRUE(started.insert(name).second) << info.name << " " << name;
      }
      EXPECT_EQ(started, variable_names(model.graph)) << info.name;
    }
  }
}

TEST(Models, EvaluationReadsTheVariablesOfTrainingAndCounts) {
  for (const ModelInfo& info : all_models()) {
    const graph::Graph training = make_model(info.name, {.batch = 2}).graph;
    const graph::Graph evaluation = make_model(info.name, {.batch = 2, .training = false}).graph;
    EXPECT_NO_THROW((void)graph::share_persistent_values(evaluation, training)) << info.name;
    EXPECT_EQ(training.outputs.size(), 1U) << info.name;
    ASSERT_EQ(evaluation.outputs.size(), 2U) << info.name;
    const graph::Value& correct = evaluation.values[evaluation.outputs[1]];
    EXPECT_EQ(correct.name, "correct") << info.name;
    EXPECT_EQ(correct.dtype, graph::DType::kI32) << info.name;
    EXPECT_EQ(correct.shape, graph::Shape{}) << info.name;
    for (const graph::Node& node : evaluation.nodes) {
      EXPECT_NE(node.op, graph::OpKind::kBatchNormUpdate) << info.name;
    }
  }
}

TEST(Models, DropoutStandsInTrainingOnly) {
  for (const char* name : {"mlp", "vgg16", "lstm", "gru"}) {
    const auto dropouts = [&](bool training) {
      const Model model = make_model(name, {.batch = 2, .dropout = 0.5, .training = training});
      return std::count_if(model.graph.nodes.begin(), model.graph.nodes.end(),
                           [](const auto& node) { return node.op == graph::OpKind::kDropout; });
    };
    EXPECT_GT(dropouts(true), 0) << name;
    EXPECT_EQ(dropouts(false), 0) << name;
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
  EXPECT_THAT(message("lstm", {.height = 8}), testing::HasSubstr("--image (height) 8"));
  EXPECT_THAT(message("lstm", {.chunk = -1}), testing::HasSubstr("--chunk -1"));
  EXPECT_THAT(message("mlp", {.stateful = false}), testing::HasSubstr("--stateless"));
  EXPECT_THAT(message("unet", {.layers = 3}), testing::HasSubstr("28x28 is no multiple of 8"));
  EXPECT_THAT(message("unet", {.layers = 70}), testing::HasSubstr("at most 8 times"));
  EXPECT_THAT(message("vgg16", {.height = 16, .width = 16}), testing::HasSubstr("stage5.pool"));
}

}  // namespace
}  // namespace reprise::models
