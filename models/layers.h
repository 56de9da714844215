#pragma once

// What the models are made of: layers that create their parameters, say how these start, and choose
// the training or inference form.

#include <cstdint>
#include <string>
#include <string_view>

#include "graph/builder.h"
#include "models/model.h"

namespace reprise::models {

using graph::Builder;
using graph::ValueId;

// A model under construction.
class ModelBuilder {
 public:
  ModelBuilder(std::string name, const ModelOptions& options)
      : options_(options), builder_(std::move(name)) {}

  [[nodiscard]] Builder& builder() { return builder_; }
  [[nodiscard]] const ModelOptions& options() const { return options_; }

  ValueId parameter(std::string_view name, graph::Shape shape, Model::Initializer initializer);
  ValueId state(std::string_view name, graph::Shape shape, Model::Initializer initializer = {});

  // x[N,C,H,W] -> [N,channels,H',W'], no bias, He initialisation over the fan out (He et al. 2015).
  ValueId conv(ValueId x, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
               std::string_view name);
  // The same with padding kernel / 2 and a bias.
  ValueId conv_bias(ValueId x, std::int64_t channels, std::int64_t kernel, std::int64_t stride,
                    std::string_view name);
  // Batch norm over axis 1: parameters name.weight and name.bias, states name.running_mean and
  // name.running_var.
  ValueId batch_norm(ValueId x, std::string_view name);
  // x[..,I] -> [..,outputs]: name.weight uniform in 1 / sqrt(I), name.bias alike.
  ValueId linear(ValueId x, std::int64_t outputs, std::string_view name);
  // Dropout in training, nothing in inference or at probability 0.
  ValueId dropout(ValueId x, std::string_view name);

  // logits[N,K]: the mean loss against "labels", and the count of right predictions in inference.
  void classify(ValueId logits);
  ValueId images();  // the input "images"

  Model finish();

 private:
  ModelOptions options_;
  Builder builder_;
  std::vector<std::pair<std::string, Model::Initializer>> initializers_;
};

}  // namespace reprise::models
