#include "models/layers.h"

#include <cmath>
#include <utility>

namespace reprise::models {
namespace {

using Initializer = Model::Initializer;

Initializer he_normal(std::int64_t fan_out) {
  return {Initializer::Kind::kNormal, std::sqrt(2.0 / static_cast<double>(fan_out))};
}

std::string joined(std::string_view name, std::string_view suffix) {
  return std::string(name) + "." + std::string(suffix);
}

}  // namespace

ValueId ModelBuilder::parameter(std::string_view name, graph::Shape shape,
                                Initializer initializer) {
  const ValueId id = builder_.parameter(name, std::move(shape));
  initializers_.emplace_back(builder_.graph().values[id].name, initializer);
  return id;
}

ValueId ModelBuilder::state(std::string_view name, graph::Shape shape, Initializer initializer) {
  const ValueId id = builder_.state(name, std::move(shape));
  initializers_.emplace_back(builder_.graph().values[id].name, initializer);
  return id;
}

ValueId ModelBuilder::conv(ValueId x, std::int64_t channels, std::int64_t kernel,
                           std::int64_t stride, std::string_view name) {
  const std::int64_t inputs = builder_.shape(x)[1];
  const ValueId weight = parameter(joined(name, "weight"), {channels, inputs, kernel, kernel},
                                   he_normal(channels * kernel * kernel));
  return builder_.conv2d(x, weight,
                         {.stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}}, name);
}

ValueId ModelBuilder::conv_bias(ValueId x, std::int64_t channels, std::int64_t kernel,
                                std::int64_t stride, std::string_view name) {
  const std::int64_t inputs = builder_.shape(x)[1];
  const ValueId weight = parameter(joined(name, "weight"), {channels, inputs, kernel, kernel},
                                   he_normal(channels * kernel * kernel));
  const ValueId bias = parameter(joined(name, "bias"), {channels}, {});
  return builder_.conv2d(x, weight, bias,
                         {.stride = {stride, stride}, .padding = {kernel / 2, kernel / 2}}, name);
}

ValueId ModelBuilder::batch_norm(ValueId x, std::string_view name) {
  const graph::Shape channels{builder_.shape(x)[1]};
  const Initializer ones{Initializer::Kind::kOnes};
  const ValueId gamma = parameter(joined(name, "weight"), channels, ones);
  const ValueId beta = parameter(joined(name, "bias"), channels, {});
  const ValueId mean = state(joined(name, "running_mean"), channels);
  const ValueId var = state(joined(name, "running_var"), channels, ones);
  if (options_.training) return builder_.batch_norm(x, gamma, beta, mean, var, 0.1, {}, name);
  return builder_.batch_norm_inference(x, gamma, beta, mean, var, {}, name);
}

ValueId ModelBuilder::linear(ValueId x, std::int64_t outputs, std::string_view name) {
  const std::int64_t inputs = builder_.shape(x).back();
  const Initializer uniform{Initializer::Kind::kUniform,
                            1.0 / std::sqrt(static_cast<double>(inputs))};
  const ValueId weight = parameter(joined(name, "weight"), {outputs, inputs}, uniform);
  const ValueId bias = parameter(joined(name, "bias"), {outputs}, uniform);
  return builder_.linear(x, weight, bias, name);
}

ValueId ModelBuilder::dropout(ValueId x, std::string_view name) {
  if (!options_.training || options_.dropout == 0) return x;
  return builder_.dropout(x, options_.dropout, name);
}

ValueId ModelBuilder::images() {
  return builder_.input("images",
                        {options_.batch, options_.channels, options_.height, options_.width});
}

void ModelBuilder::classify(ValueId logits) {
  const ValueId labels = builder_.input("labels", {builder_.shape(logits)[0]}, graph::DType::kI32);
  builder_.set_loss(builder_.softmax_cross_entropy(logits, labels, {}, "loss"));
  if (!options_.training) builder_.add_output(builder_.correct_count(logits, labels, "correct"));
}

Model ModelBuilder::finish() {
  return {builder_.finish(), std::move(initializers_)};
}

}  // namespace reprise::models
