#include <gtest/gtest.h>

#include "graph/autodiff.h"
#include "models/model.h"

namespace reprise::models {
namespace {

TEST(TrainingGraphs, OfAllModelsUpdateEveryTrainableParameterOnce) {
  for (const ModelInfo& info : all_models()) {
    const Model model = make_model(info.name, {.batch = 2});
    const graph::TrainingGraph training = graph::make_training_graph(
        model.graph, {.optimizer = graph::SgdAttributes{.momentum = 0.9}});
    EXPECT_TRUE(training.warnings.empty()) << info.name << ": " << training.warnings.front();
    std::size_t parameters = 0;
    std::size_t sgd = 0;
    for (const graph::Value& value : training.graph.values)
      parameters += value.role == graph::Role::kParameter;
    for (const graph::Node& node : training.graph.nodes) sgd += node.op == graph::OpKind::kSgd;
    EXPECT_EQ(sgd, parameters) << info.name;
    EXPECT_NO_THROW(graph::validate(training.graph)) << info.name;
  }
}

TEST(TrainingGraphs, ALongSequenceAddsWeightGradientsInPlace) {
  const Model model =
      make_model("lstm", {.batch = 1, .hidden = 4, .vocabulary = 5, .seq_len = 20'000, .chunk = 1});
  const graph::TrainingGraph training = graph::make_training_graph(model.graph, {});
  std::size_t accumulating = 0;
  for (const graph::Node& node : training.graph.nodes) {
    accumulating += node.op == graph::OpKind::kLstmGrad && node.accumulate;
  }
  EXPECT_EQ(accumulating, 19'999U);  // all but the first
}

}  // namespace
}  // namespace reprise::models
