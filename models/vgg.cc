// VGG-16 (configuration D), without batch norm: 13 convolutions, 5 max pools, 3 linear layers.

#include "fmt/format.h"

#include "models/families.h"
#include "models/layers.h"

namespace reprise::models {

Model make_vgg16(std::string_view name, const ModelOptions& options) {
  constexpr std::int64_t kStages[5][2] = {
      {64, 2}, {128, 2}, {256, 3}, {512, 3}, {512, 3}};  // channels, convolutions
  ModelBuilder model(std::string(name), options);
  Builder& b = model.builder();
  ValueId x = model.images();
  for (std::int64_t stage = 0; stage < 5; ++stage) {
    const Builder::Scope scope(b, fmt::format("stage{}.", stage + 1));
    for (std::int64_t i = 0; i < kStages[stage][1]; ++i) {
      const std::string conv = fmt::format("conv{}", i + 1);
      x = b.relu(model.conv_bias(x, kStages[stage][0], 3, 1, conv), conv + ".relu");
    }
    x = b.max_pool(x, {.kernel = {2, 2}, .stride = {2, 2}}, "pool");
  }
  x = b.flatten(x, "flat");
  for (const char* layer : {"fc1", "fc2"}) {
    x = b.relu(model.linear(x, 4096, layer), fmt::format("{}.relu", layer));
    x = model.dropout(x, fmt::format("{}.dropout", layer));
  }
  model.classify(model.linear(x, options.classes, "fc3"));
  return model.finish();
}

}  // namespace reprise::models
