// ResNets for small images: three stages of 16, 32 and 64 channels (times 4 with bottlenecks).

#include "fmt/format.h"

#include "models/families.h"
#include "models/layers.h"

namespace reprise::models {
namespace {

// conv3 bn relu conv3 bn (+ shortcut) relu
ValueId basic_block(ModelBuilder& model, ValueId x, std::int64_t channels, std::int64_t stride) {
  Builder& b = model.builder();
  ValueId y = b.relu(model.batch_norm(model.conv(x, channels, 3, stride, "conv1"), "bn1"), "relu1");
  y = model.batch_norm(model.conv(y, channels, 3, 1, "conv2"), "bn2");
  ValueId shortcut = x;
  if (stride != 1 || b.shape(x)[1] != channels) {
    shortcut = model.batch_norm(model.conv(x, channels, 1, stride, "shortcut"), "shortcut_bn");
  }
  return b.relu(b.add(y, shortcut, "add"), "relu2");
}

// bn relu conv1 bn relu conv3 bn relu conv1 (+ shortcut); the shortcut of a block that changes
// shape starts after the first relu.
ValueId preactivation_block(ModelBuilder& model, ValueId x, std::int64_t channels,
                            std::int64_t stride) {
  Builder& b = model.builder();
  const std::int64_t wide = 4 * channels;
  const ValueId first = b.relu(model.batch_norm(x, "bn1"), "relu1");
  ValueId y = model.conv(first, channels, 1, 1, "conv1");
  y = model.conv(b.relu(model.batch_norm(y, "bn2"), "relu2"), channels, 3, stride, "conv2");
  y = model.conv(b.relu(model.batch_norm(y, "bn3"), "relu3"), wide, 1, 1, "conv3");
  const bool same = stride == 1 && b.shape(x)[1] == wide;
  return b.add(y, same ? x : model.conv(first, wide, 1, stride, "shortcut"), "add");
}

}  // namespace

Model make_resnet_cifar(std::string_view name, const ModelOptions& options,
                        std::int64_t blocks_per_stage, bool preactivation) {
  ModelBuilder model(std::string(name), options);
  Builder& b = model.builder();
  ValueId x = model.conv(model.images(), 16, 3, 1, "stem");
  if (!preactivation) x = b.relu(model.batch_norm(x, "stem_bn"), "stem_relu");
  for (std::int64_t stage = 0; stage < 3; ++stage) {
    for (std::int64_t block = 0; block < blocks_per_stage; ++block) {
      const Builder::Scope scope(b, fmt::format("stage{}.{}.", stage + 1, block));
      const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
      const std::int64_t channels = std::int64_t{16} << stage;
      x = preactivation ? preactivation_block(model, x, channels, stride)
                        : basic_block(model, x, channels, stride);
    }
  }
  if (preactivation) x = b.relu(model.batch_norm(x, "final_bn"), "final_relu");
  model.classify(model.linear(b.global_avg_pool(x, "pool"), options.classes, "head"));
  return model.finish();
}

}  // namespace reprise::models
