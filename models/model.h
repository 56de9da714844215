#pragma once

// Named models: from a name and a few numbers to a forward graph with loss.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace reprise::models {

// What a user may say of a model; 0 (or empty) means the model's own default. Fields that a model
// does not know are an Error(kInput) when they are set.
struct ModelOptions {
  std::int64_t batch = 0;
  std::int64_t channels = 0, height = 0, width = 0;  // --image CxHxW
  std::int64_t classes = 0;
  std::int64_t hidden = 0;      // mlp, lstm, gru; unet: channels at the top
  std::int64_t layers = 0;      // mlp: hidden layers; lstm, gru; unet: times the image halves
  std::int64_t embedding = 0;   // lstm, gru; default hidden
  std::int64_t vocabulary = 0;  // lstm, gru
  std::int64_t seq_len = 0;     // lstm, gru: time steps of one training step (the BPTT window)
  std::int64_t chunk = 0;       // lstm, gru: time steps of one node; need not divide seq_len
  bool stateful = true;         // lstm, gru: carry (h, c) from one window to the next
  double dropout = 0.0;         // where the model has a place for it
  // bf16: the ops compute with bf16 numbers where they can, beside f32 parameters
  // (graph/mixed_precision.h).
  graph::DType precision = graph::DType::kF32;
  bool training = true;  // false: inference form of batch norm, no dropout, outputs for accuracy
};

// A forward graph. Inputs are named "images" (f32 [N,C,H,W]) and "labels" (i32 [N]), or "tokens"
// and "targets" (i32 [T,B]). graph.loss is the mean loss. Outputs: "loss", and "correct" (i32:
// right predictions; labels equal to -100 are not counted) when !training.
struct Model {
  graph::Graph graph;
  // Initial values, drawn by the host from the seed; by name of the parameter or state.
  struct Initializer {
    enum class Kind : std::uint8_t { kZeros, kOnes, kNormal, kUniform } kind = Kind::kZeros;
    double scale = 0;  // normal: standard deviation; uniform: half width around 0
  };
  std::vector<std::pair<std::string, Initializer>> initializers;  // every parameter and state, once
};

struct ModelInfo {
  std::string_view name;     // "resnet50"
  std::string_view summary;  // one line for --help
  bool sequence = false;     // takes tokens rather than images
};

[[nodiscard]] const std::vector<ModelInfo>& all_models();

// Throws Error(kInput): unknown name (lists the names), an option the model does not take or that
// does not fit (names option, value and rule).
[[nodiscard]] Model make_model(std::string_view name, const ModelOptions& options);

// The options as make_model() would complete them: every default filled in.
[[nodiscard]] ModelOptions complete_options(std::string_view name, const ModelOptions& options);

}  // namespace reprise::models
