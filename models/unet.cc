// A small U-Net of depth 2 with 16 channels at the top: down by max pools, up by nearest
// upsampling, long skips by concatenation. Its image of features is pooled and classified, so that
// it trains on the same data as the others.

#include <vector>

#include "fmt/format.h"

#include "models/families.h"
#include "models/layers.h"

namespace reprise::models {
namespace {

constexpr std::int64_t kDepth = 2;  // 28 pixels halve twice
constexpr std::int64_t kChannels = 16;

ValueId double_conv(ModelBuilder& model, ValueId x, std::int64_t channels,
                    const std::string& name) {
  Builder& b = model.builder();
  const Builder::Scope scope(b, name + ".");
  x = b.relu(model.batch_norm(model.conv(x, channels, 3, 1, "conv1"), "bn1"), "relu1");
  return b.relu(model.batch_norm(model.conv(x, channels, 3, 1, "conv2"), "bn2"), "relu2");
}

}  // namespace

Model make_unet(std::string_view name, const ModelOptions& options) {
  ModelBuilder model(std::string(name), options);
  Builder& b = model.builder();
  ValueId x = model.images();
  std::vector<ValueId> skips;
  for (std::int64_t level = 0; level < kDepth; ++level) {
    x = double_conv(model, x, kChannels << level, fmt::format("down{}", level + 1));
    skips.push_back(x);
    x = b.max_pool(x, {.kernel = {2, 2}, .stride = {2, 2}}, fmt::format("pool{}", level + 1));
  }
  x = double_conv(model, x, kChannels << kDepth, "bottom");
  for (std::int64_t level = kDepth - 1; level >= 0; --level) {
    const std::string up = fmt::format("up{}", level + 1);
    x = model.conv(b.upsample(x, 2, up + ".upsample"), kChannels << level, 3, 1, up + ".conv");
    x = b.concat({skips[static_cast<std::size_t>(level)], x}, 1, up + ".concat");
    x = double_conv(model, x, kChannels << level, up);
  }
  model.classify(model.linear(b.global_avg_pool(x, "pool"), options.classes, "head"));
  return model.finish();
}

}  // namespace reprise::models
