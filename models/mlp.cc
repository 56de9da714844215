// images -> flatten -> layers x (linear, relu, dropout) -> linear -> classes

#include "fmt/format.h"

#include "models/families.h"
#include "models/layers.h"

namespace reprise::models {

Model make_mlp(std::string_view name, const ModelOptions& options) {
  ModelBuilder model(std::string(name), options);
  Builder& b = model.builder();
  ValueId x = b.flatten(model.images(), "flat");
  for (std::int64_t i = 0; i < options.layers; ++i) {
    const std::string layer = fmt::format("layer{}", i + 1);
    x = b.relu(model.linear(x, options.hidden, layer), layer + ".relu");
    x = model.dropout(x, layer + ".dropout");
  }
  model.classify(model.linear(x, options.classes, "head"));
  return model.finish();
}

}  // namespace reprise::models
