#pragma once

// Random problems with the shape of a training step: forward ops with skips, backward ops that read
// some of what the forward ones read and made, parameters updated in place.

#include <random>

#include "fmt/format.h"

#include "tests/schedule/random_problem.h"

namespace reprise::planner::testing {

using schedule::Op;
using schedule::Problem;
using schedule::TensorId;
using schedule::TensorKind;
using schedule::testing::draw;

class TrainingDrawer {
 public:
  explicit TrainingDrawer(std::uint64_t seed) : random_(seed) {}

  Problem run(std::int64_t layers) {
    activations_ = {add("batch", TensorKind::kInput)};
    for (std::int64_t i = 0; i < layers; ++i) add_layer(i);
    TensorId gradient = add("dloss", TensorKind::kTemp);
    Op loss = op("loss", {activations_.back()}, {gradient});
    loss.recomputable = false;
    problem_.ops.push_back(loss);
    for (std::int64_t i = layers - 1; i >= 0; --i) gradient = add_backward(i, gradient);
    return std::move(problem_);
  }

 private:
  struct Layer {
    TensorId weight{}, input{}, output{}, saved{};
  };

  TensorId add(const std::string& name, TensorKind kind) {
    return problem_.tensors.push_back({name, 64 * draw(random_, 0, 12), kind});
  }

  Op op(const std::string& name, std::vector<TensorId> inputs, std::vector<TensorId> outputs) {
    Op op;
    op.name = name;
    op.inputs = std::move(inputs);
    op.outputs = std::move(outputs);
    op.cost = draw(random_, 1, 20);
    op.workspace = draw(random_, 0, 3) == 0 ? 64 * draw(random_, 1, 10) : 0;
    return op;
  }

  void add_layer(std::int64_t i) {
    Layer layer;
    layer.input = activations_.back();
    std::vector<TensorId> inputs = {layer.input};
    if (activations_.size() > 2 && draw(random_, 0, 2) == 0) {  // a skip
      inputs.push_back(activations_[static_cast<std::size_t>(
          draw(random_, 0, static_cast<std::int64_t>(activations_.size()) - 2))]);
    }
    if (draw(random_, 0, 1) == 0) {
      layer.weight = add(fmt::format("w{}", i), TensorKind::kInput);
      inputs.push_back(layer.weight);
    }
    layer.output = add(fmt::format("x{}", i),
                       draw(random_, 0, 15) == 0 ? TensorKind::kOutput : TensorKind::kTemp);
    std::vector<TensorId> outputs = {layer.output};
    if (draw(random_, 0, 2) == 0) {
      layer.saved = add(fmt::format("saved{}", i), TensorKind::kTemp);
      outputs.push_back(layer.saved);
    }
    Op forward = op(fmt::format("f{}", i), inputs, outputs);
    forward.recomputable = draw(random_, 0, 9) > 0;
    if (!layer.weight.valid() && draw(random_, 0, 1) == 0) {
      problem_.tensors[layer.output].bytes = problem_.tensors[layer.input].bytes;
      forward.inplace = {{0, 0, false}};
    }
    problem_.ops.push_back(forward);
    activations_.push_back(layer.output);
    layers_.push_back(layer);
  }

  TensorId add_backward(std::int64_t i, TensorId gradient) {
    const Layer& layer = layers_[static_cast<std::size_t>(i)];
    std::vector<TensorId> inputs = {gradient};
    if (draw(random_, 0, 2) > 0) inputs.push_back(layer.input);
    if (draw(random_, 0, 2) == 0) inputs.push_back(layer.output);
    if (layer.weight.valid()) inputs.push_back(layer.weight);
    if (layer.saved.valid()) inputs.push_back(layer.saved);
    const TensorId dx = add(fmt::format("dx{}", i), TensorKind::kTemp);
    std::vector<TensorId> outputs = {dx};
    TensorId dw{};
    if (layer.weight.valid())
      outputs.push_back(dw = add(fmt::format("dw{}", i), TensorKind::kTemp));
    Op backward = op(fmt::format("b{}", i), inputs, outputs);
    backward.backward = true;
    backward.recomputable = draw(random_, 0, 1) == 0;
    problem_.ops.push_back(backward);
    if (dw.valid()) {
      const TensorId after = add(fmt::format("w{}'", i), TensorKind::kOutput);
      problem_.tensors[after].bytes = problem_.tensors[layer.weight].bytes;
      Op update = op(fmt::format("u{}", i), {layer.weight, dw}, {after});
      update.inplace = {{0, 0, true}};
      update.recomputable = false;
      update.backward = true;
      problem_.ops.push_back(update);
    }
    return dx;
  }

  std::mt19937_64 random_;
  Problem problem_;
  std::vector<TensorId> activations_;
  std::vector<Layer> layers_;
};

}  // namespace reprise::planner::testing
