// Language models: embedding -> layers of lstm or gru -> linear -> softmax cross-entropy, cut along
// time into chunks.
//
//   chunk 0                chunk 1                       tokens, targets [T,B]
//   slice embed            slice embed
//   lstm ──(h,c)────────▶  lstm ──(h,c)────────▶ ...     nothing else crosses from chunk to chunk
//   linear loss            linear loss
//        └────── + ──────────── + ──── ... ──▶ loss, the mean over all T B tokens
//
// So what grows with the sequence length is the carried state alone, and a plan may forget
// everything else.

#include <algorithm>
#include <cmath>
#include <vector>

#include "fmt/format.h"

#include "models/families.h"
#include "models/layers.h"

namespace reprise::models {
namespace {

struct Layer {
  ValueId w_ih, w_hh, bias;
  ValueId h, c;              // carried from chunk to chunk
  ValueId h_state, c_state;  // carried from window to window; invalid when stateless
};

class LanguageModel {
 public:
  LanguageModel(std::string_view name, const ModelOptions& options, Cell cell)
      : model_(std::string(name), options), options_(options), cell_(cell) {}

  Model make() {
    Builder& b = model_.builder();
    tokens_ = b.input("tokens", {options_.seq_len, options_.batch}, graph::DType::kI32);
    targets_ = b.input("targets", {options_.seq_len, options_.batch}, graph::DType::kI32);
    make_parameters();
    for (std::int64_t begin = 0, i = 0; begin < options_.seq_len; begin += options_.chunk, ++i) {
      const Builder::Scope scope(b, fmt::format("chunk{}.", i));
      append_chunk(begin, std::min(begin + options_.chunk, options_.seq_len));
    }
    for (const Layer& layer : layers_) {
      if (layer.h_state.valid()) b.assign(layer.h_state, layer.h);
      if (layer.c_state.valid()) b.assign(layer.c_state, layer.c);
    }
    add_losses();
    b.set_loss(
        b.scale(loss_, 1.0 / static_cast<double>(options_.seq_len * options_.batch), "loss"));
    // Counts have no scale; a reshape gives the sum over the chunks its name.
    if (!options_.training) b.add_output(b.reshape(correct_, {}, "correct"));
    return model_.finish();
  }

 private:
  void make_parameters() {
    using Kind = Model::Initializer::Kind;
    const Model::Initializer uniform{Kind::kUniform,
                                     1.0 / std::sqrt(static_cast<double>(options_.hidden))};
    const std::int64_t gates = cell_ == Cell::kLstm ? 4 : 3;
    embedding_ = model_.parameter("embedding.weight", {options_.vocabulary, options_.embedding},
                                  {Kind::kNormal, 0.1});
    for (std::int64_t i = 0; i < options_.layers; ++i) {
      const std::string name = fmt::format("layer{}.", i + 1);
      const std::int64_t inputs = i == 0 ? options_.embedding : options_.hidden;
      Layer layer;
      layer.w_ih = model_.parameter(name + "w_ih", {gates * options_.hidden, inputs}, uniform);
      layer.w_hh =
          model_.parameter(name + "w_hh", {gates * options_.hidden, options_.hidden}, uniform);
      layer.bias = model_.parameter(name + "bias", {4 * options_.hidden}, uniform);
      start(layer.h, layer.h_state, name + "h");
      if (cell_ == Cell::kLstm) start(layer.c, layer.c_state, name + "c");
      layers_.push_back(layer);
    }
    head_weight_ = model_.parameter("head.weight", {options_.vocabulary, options_.hidden}, uniform);
    head_bias_ = model_.parameter("head.bias", {options_.vocabulary}, uniform);
  }

  void start(ValueId& carried, ValueId& state, const std::string& name) {
    const graph::Shape shape{options_.batch, options_.hidden};
    if (options_.stateful) state = model_.state(name, shape);
    carried = options_.stateful ? state : model_.builder().fill(shape, 0.0, name);
  }

  void append_chunk(std::int64_t begin, std::int64_t end) {
    Builder& b = model_.builder();
    const std::int64_t rows = (end - begin) * options_.batch;
    const ValueId tokens = b.slice(tokens_, 0, begin, end, "tokens");
    const ValueId labels = b.reshape(b.slice(targets_, 0, begin, end, "targets"), {rows}, "labels");
    ValueId x = b.embedding(embedding_, tokens, "embedding");
    for (std::size_t i = 0; i < layers_.size(); ++i) {
      Layer& layer = layers_[i];
      const std::string name = fmt::format("layer{}", i + 1);
      const Builder::Recurrent out =
          cell_ == Cell::kLstm
              ? b.lstm(x, layer.h, layer.c, layer.w_ih, layer.w_hh, layer.bias, name)
              : b.gru(x, layer.h, layer.w_ih, layer.w_hh, layer.bias, name);
      layer.h = out.h_n;
      layer.c = out.c_n;
      x = model_.dropout(out.y, name + ".dropout");
    }
    const ValueId logits =
        b.linear(b.reshape(x, {rows, options_.hidden}, "rows"), head_weight_, head_bias_, "logits");
    const ValueId loss =
        b.softmax_cross_entropy(logits, labels, {.reduction = graph::Reduction::kSum}, "loss");
    losses_.push_back(loss);
    if (options_.training) return;
    const ValueId correct = b.correct_count(logits, labels, "correct");
    correct_ = correct_.valid() ? b.add(correct_, correct, "correct_sum") : correct;
  }

  // From the last chunk to the first, as the backward part goes, which may make logits and losses
  // itself (planner/node_order.h): then no loss waits for another.
  void add_losses() {
    Builder& b = model_.builder();
    loss_ = losses_.back();
    for (std::size_t i = losses_.size() - 1; i-- > 0;) {
      const Builder::Scope scope(b, fmt::format("chunk{}.", i));
      loss_ = b.add(loss_, losses_[i], "loss_sum");
    }
  }

  ModelBuilder model_;
  ModelOptions options_;
  Cell cell_;
  ValueId tokens_, targets_, embedding_, head_weight_, head_bias_;
  std::vector<Layer> layers_;
  std::vector<ValueId> losses_;  // per chunk
  ValueId loss_, correct_;
};

}  // namespace

Model make_language_model(std::string_view name, const ModelOptions& options, Cell cell) {
  return LanguageModel(name, options, cell).make();
}

}  // namespace reprise::models
