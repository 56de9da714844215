// A U-Net: `layers` times down by max pools, as often up by nearest upsampling, long skips by
// concatenation; `hidden` channels at the top, doubling with each level. Its image of features is
// pooled and classified, so that it trains on the same data as the others.

#include <vector>

#include "fmt/format.h"

#include "base/error.h"
#include "models/families.h"
#include "models/layers.h"

namespace reprise::models {
namespace {

constexpr std::int64_t kDeepest = 8;  // 256 pixels become one

void check_depth(std::string_view name, const ModelOptions& options) {
  if (options.layers > kDeepest) {
    throw base::input_error("--layers {}: model '{}' goes down at most {} times", options.layers,
                            name, kDeepest);
  }
  const std::int64_t step = std::int64_t{1} << options.layers;
  if (options.height % step != 0 || options.width % step != 0) {
    throw base::input_error(
        "--layers {}: model '{}' halves the image that often, and {}x{} is no multiple of {}",
        options.layers, name, options.height, options.width, step);
  }
}

ValueId double_conv(ModelBuilder& model, ValueId x, std::int64_t channels,
                    const std::string& name) {
  Builder& b = model.builder();
  const Builder::Scope scope(b, name + ".");
  x = b.relu(model.batch_norm(model.conv(x, channels, 3, 1, "conv1"), "bn1"), "relu1");
  return b.relu(model.batch_norm(model.conv(x, channels, 3, 1, "conv2"), "bn2"), "relu2");
}

}  // namespace

Model make_unet(std::string_view name, const ModelOptions& options) {
  check_depth(name, options);
  const std::int64_t depth = options.layers;
  const std::int64_t top = options.hidden;
  ModelBuilder model(std::string(name), options);
  Builder& b = model.builder();
  ValueId x = model.images();
  std::vector<ValueId> skips;
  for (std::int64_t level = 0; level < depth; ++level) {
    x = double_conv(model, x, top << level, fmt::format("down{}", level + 1));
    skips.push_back(x);
    x = b.max_pool(x, {.kernel = {2, 2}, .stride = {2, 2}}, fmt::format("pool{}", level + 1));
  }
  x = double_conv(model, x, top << depth, "bottom");
  for (std::int64_t level = depth - 1; level >= 0; --level) {
    const std::string up = fmt::format("up{}", level + 1);
    x = model.conv(b.upsample(x, 2, up + ".upsample"), top << level, 3, 1, up + ".conv");
    x = b.concat({skips[static_cast<std::size_t>(level)], x}, 1, up + ".concat");
    x = double_conv(model, x, top << level, up);
  }
  model.classify(model.linear(b.global_avg_pool(x, "pool"), options.classes, "head"));
  return model.finish();
}

}  // namespace reprise::models
