// ImageNet ResNets, v1.5: stem 7x7/2, max pool 3x3/2, four stages of 64, 128, 256, 512 channels
// (times 4 with bottlenecks), global average pool, linear.

#include "fmt/format.h"

#include "models/families.h"
#include "models/layers.h"

namespace reprise::models {
namespace {

ValueId conv_bn(ModelBuilder& model, ValueId x, std::int64_t channels, std::int64_t kernel,
                std::int64_t stride, const std::string& number) {
  return model.batch_norm(model.conv(x, channels, kernel, stride, "conv" + number), "bn" + number);
}

ValueId residual_block(ModelBuilder& model, ValueId x, std::int64_t channels, std::int64_t stride,
                       bool bottleneck) {
  Builder& b = model.builder();
  const std::int64_t wide = bottleneck ? 4 * channels : channels;
  ValueId y;
  if (bottleneck) {
    y = b.relu(conv_bn(model, x, channels, 1, 1, "1"), "relu1");
    y = b.relu(conv_bn(model, y, channels, 3, stride, "2"), "relu2");
    y = conv_bn(model, y, wide, 1, 1, "3");
  } else {
    y = b.relu(conv_bn(model, x, channels, 3, stride, "1"), "relu1");
    y = conv_bn(model, y, wide, 3, 1, "2");
  }
  ValueId shortcut = x;
  if (stride != 1 || b.shape(x)[1] != wide) {
    shortcut = model.batch_norm(model.conv(x, wide, 1, stride, "downsample"), "downsample_bn");
  }
  return b.relu(b.add(y, shortcut, "add"), "relu");
}

}  // namespace

Model make_resnet(std::string_view name, const ModelOptions& options, const ResnetSize& size) {
  ModelBuilder model(std::string(name), options);
  Builder& b = model.builder();
  ValueId x = b.relu(model.batch_norm(model.conv(model.images(), 64, 7, 2, "stem"), "stem_bn"),
                     "stem_relu");
  x = b.max_pool(x, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}, "stem_pool");
  for (std::int64_t stage = 0; stage < 4; ++stage) {
    for (std::int64_t block = 0; block < size.blocks[stage]; ++block) {
      const Builder::Scope scope(b, fmt::format("layer{}.{}.", stage + 1, block));
      const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      x = residual_block(model, x, std::int64_t{64} << stage, stride, size.bottleneck);
    }
  }
  model.classify(model.linear(b.global_avg_pool(x, "pool"), options.classes, "fc"));
  return model.finish();
}

}  // namespace reprise::models
