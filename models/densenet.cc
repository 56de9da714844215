// A small DenseNet: three dense blocks of four layers with growth rate 12 and transitions that
// halve channels and image. Every layer reads all earlier ones of its block, so no single tensor
// cuts a block.

#include "fmt/format.h"

#include "models/families.h"
#include "models/layers.h"

namespace reprise::models {
namespace {

constexpr std::int64_t kGrowth = 12;
constexpr std::int64_t kBlocks = 3;
constexpr std::int64_t kLayers = 4;

ValueId dense_block(ModelBuilder& model, ValueId x) {
  Builder& b = model.builder();
  for (std::int64_t layer = 0; layer < kLayers; ++layer) {
    const std::string n = fmt::format("{}", layer + 1);
    const ValueId fresh =
        model.conv(b.relu(model.batch_norm(x, "bn" + n), "relu" + n), kGrowth, 3, 1, "conv" + n);
    x = b.concat({x, fresh}, 1, "concat" + n);
  }
  return x;
}

}  // namespace

Model make_densenet(std::string_view name, const ModelOptions& options) {
  ModelBuilder model(std::string(name), options);
  Builder& b = model.builder();
  ValueId x = model.conv(model.images(), 2 * kGrowth, 3, 1, "stem");
  for (std::int64_t block = 0; block < kBlocks; ++block) {
    const Builder::Scope scope(b, fmt::format("block{}.", block + 1));
    x = dense_block(model, x);
    if (block + 1 == kBlocks) break;
    x = model.conv(b.relu(model.batch_norm(x, "transition_bn"), "transition_relu"),
                   b.shape(x)[1] / 2, 1, 1, "transition");
    x = b.avg_pool(x, {.kernel = {2, 2}, .stride = {2, 2}}, "transition_pool");
  }
  x = b.relu(model.batch_norm(x, "final_bn"), "final_relu");
  model.classify(model.linear(b.global_avg_pool(x, "pool"), options.classes, "head"));
  return model.finish();
}

}  // namespace reprise::models
