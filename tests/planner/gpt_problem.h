#pragma once

// The training step of a decoder-only transformer as a problem, without a graph: layers, matching
// backward ops with what each gradient rule reads, updates in place. Costs are a roofline in
// nanoseconds, ops are out of place, no kernels are fused.

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "schedule/problem.h"

namespace reprise::planner::testing {

struct GptSize {
  std::int64_t layers = 12, batch = 8, tokens = 512, width = 1024, heads = 16, vocabulary = 32768;
};

class GptProblem {
 public:
  explicit GptProblem(const GptSize& size)
      : size_(size), rows_(size.batch * size.tokens), stream_(4 * rows_ * size.width) {}

  schedule::Problem run() {
    problem_.name = "gpt";
    const Id ids = tensor("tokens", 4 * rows_, schedule::TensorKind::kInput);
    const Id table = weight("table", size_.vocabulary * size_.width);
    Id x = tensor("x", stream_);
    op("embed", {ids, table}, {x}, 0);
    std::vector<Layer> layers;
    for (std::int64_t i = 0; i < size_.layers; ++i) {
      name_ = "layer" + std::to_string(i) + ".";
      layers.push_back(forward(x));
      x = layers.back().out;
    }
    name_.clear();
    Id g = head(x);
    backward_ = true;
    for (std::size_t i = layers.size(); i-- > 0;) {
      name_ = "layer" + std::to_string(i) + ".";
      g = backward(layers[i], g);
    }
    name_.clear();
    update(table, op_out("embed_dw", {ids, g}, 4 * size_.vocabulary * size_.width, 0));
    return std::move(problem_);
  }

 private:
  using Id = schedule::TensorId;
  struct Layer {
    Id x, norm1, stats1, qkv, soft, soft_dropped, soft_mask, mixed, mask1, mid;
    Id norm2, stats2, wide, gelu, mask2, out;
    Id gamma1, wqkv, wo, gamma2, w1, w2;
  };

  Id tensor(const std::string& name, base::Bytes bytes,
            schedule::TensorKind kind = schedule::TensorKind::kTemp) {
    return problem_.tensors.push_back({name_ + name, (bytes + 255) / 256 * 256, kind});
  }
  Id weight(const std::string& name, std::int64_t count) {
    return tensor(name, 4 * count, schedule::TensorKind::kInput);
  }
  base::Bytes bytes(Id id) const { return problem_.tensors[id].bytes; }

  // 12 TFLOP/s, 700 GB/s, 2 microseconds to launch.
  schedule::Op& op(const std::string& name, std::vector<Id> inputs, std::vector<Id> outputs,
                   std::int64_t flops) {
    std::int64_t moved = 0;
    for (Id id : inputs) moved += bytes(id);
    for (Id id : outputs) moved += bytes(id);
    schedule::Op made;
    made.name = name_ + name;
    made.inputs = std::move(inputs);
    made.outputs = std::move(outputs);
    made.cost = 2000 + std::max(flops / 12000, moved / 700);
    made.backward = backward_;
    made.recomputable = !backward_;
    return problem_.ops[problem_.ops.push_back(std::move(made))];
  }
  Id op_out(const std::string& name, std::vector<Id> inputs, base::Bytes out, std::int64_t flops) {
    const Id id = tensor(name, out);
    op(name, std::move(inputs), {id}, flops);
    return id;
  }
  void update(Id parameter, Id gradient) {
    const Id after = tensor(problem_.tensors[parameter].name + "'", bytes(parameter),
                            schedule::TensorKind::kOutput);
    schedule::Op& made = op("update", {parameter, gradient}, {after}, 0);
    made.inplace = {{0, 0, true}};
    made.recomputable = false;
  }

  std::int64_t matmul_flops(std::int64_t in, std::int64_t out) const {
    return 2 * rows_ * in * out;
  }
  std::int64_t score_flops() const { return 2 * rows_ * size_.tokens * size_.width; }

  // out = x + dropout(part): the mask takes a byte a value.
  std::pair<Id, Id> residual(const std::string& name, Id x, Id part) {
    const Id dropped = tensor(name + "_dropped", stream_),
             mask = tensor(name + "_mask", stream_ / 4);
    op(name + "_dropout", {part}, {dropped, mask}, 0);
    return {op_out(name, {x, dropped}, stream_, 0), mask};
  }

  Layer forward(Id x) {
    const std::int64_t w = size_.width;
    const base::Bytes scores = 4 * rows_ * size_.tokens * size_.heads;
    Layer l{};
    l.x = x;
    l.gamma1 = weight("gamma1", 2 * w);
    l.wqkv = weight("wqkv", 3 * w * w);
    l.wo = weight("wo", w * w);
    l.gamma2 = weight("gamma2", 2 * w);
    l.w1 = weight("w1", 4 * w * w);
    l.w2 = weight("w2", 4 * w * w);
    l.norm1 = tensor("norm1", stream_);
    l.stats1 = tensor("stats1", 8 * rows_);
    op("norm1", {x, l.gamma1}, {l.norm1, l.stats1}, 0);
    l.qkv = op_out("qkv", {l.norm1, l.wqkv}, 3 * stream_, matmul_flops(w, 3 * w));
    l.soft = op_out("softmax", {op_out("scores", {l.qkv}, scores, score_flops())}, scores, 0);
    l.soft_dropped = tensor("attention", scores);
    l.soft_mask = tensor("attention_mask", scores / 4);
    op("attention_dropout", {l.soft}, {l.soft_dropped, l.soft_mask}, 0);
    l.mixed = op_out("mixed", {l.soft_dropped, l.qkv}, stream_, score_flops());
    const Id joined = op_out("joined", {l.mixed, l.wo}, stream_, matmul_flops(w, w));
    std::tie(l.mid, l.mask1) = residual("skip1", x, joined);
    l.norm2 = tensor("norm2", stream_);
    l.stats2 = tensor("stats2", 8 * rows_);
    op("norm2", {l.mid, l.gamma2}, {l.norm2, l.stats2}, 0);
    l.wide = op_out("wide", {l.norm2, l.w1}, 4 * stream_, matmul_flops(w, 4 * w));
    l.gelu = op_out("gelu", {l.wide}, 4 * stream_, 0);
    const Id narrow = op_out("narrow", {l.gelu, l.w2}, stream_, matmul_flops(4 * w, w));
    std::tie(l.out, l.mask2) = residual("skip2", l.mid, narrow);
    return l;
  }

  Id head(Id x) {
    const base::Bytes bytes_of_logits = 4 * rows_ * size_.vocabulary;
    const Id weights = weight("head", size_.vocabulary * size_.width);
    const std::int64_t flops = matmul_flops(size_.width, size_.vocabulary);
    const Id logits = op_out("logits", {x, weights}, bytes_of_logits, flops);
    backward_ = true;
    const Id gradient = op_out("loss", {logits}, bytes_of_logits, 0);
    const Id g = op_out("logits_dx", {gradient, weights}, stream_, flops);
    update(weights, op_out("logits_dw", {gradient, x}, bytes(weights), flops));
    return g;
  }

  // Of out = in * weights: the gradient of `in`; the weights are updated.
  Id linear_backward(const std::string& name, Id in, Id weights, Id g, std::int64_t flops) {
    const Id dx = op_out(name + "_dx", {g, weights}, bytes(in), flops);
    update(weights, op_out(name + "_dw", {in, g}, bytes(weights), flops));
    return dx;
  }
  Id norm_backward(const std::string& name, Id in, Id stats, Id gamma, Id g) {
    const Id dx = tensor(name + "_dx", stream_), dgamma = tensor(name + "_dgamma", bytes(gamma));
    op(name + "_back", {in, stats, gamma, g}, {dx, dgamma}, 0);
    update(gamma, dgamma);
    return dx;
  }

  Id backward(const Layer& l, Id g) {
    const std::int64_t w = size_.width;
    const base::Bytes scores = bytes(l.soft);
    const Id dnarrow = op_out("skip2_back", {g, l.mask2}, stream_, 0);
    const Id dgelu = linear_backward("narrow", l.gelu, l.w2, dnarrow, matmul_flops(4 * w, w));
    const Id dwide = op_out("gelu_back", {l.wide, dgelu}, 4 * stream_, 0);
    const Id dnorm2 = linear_backward("wide", l.norm2, l.w1, dwide, matmul_flops(w, 4 * w));
    const Id dmid = norm_backward("norm2", l.mid, l.stats2, l.gamma2, dnorm2);
    const Id gmid = op_out("skip1_sum", {g, dmid}, stream_, 0);
    const Id djoined = op_out("skip1_back", {gmid, l.mask1}, stream_, 0);
    const Id dmixed = linear_backward("joined", l.mixed, l.wo, djoined, matmul_flops(w, w));
    const Id dv = op_out("mixed_dv", {l.soft_dropped, dmixed}, stream_, score_flops());
    const Id ddropped = op_out("mixed_dp", {l.qkv, dmixed}, scores, score_flops());
    const Id dsoft = op_out("attention_back", {ddropped, l.soft_mask}, scores, 0);
    const Id dscores = op_out("softmax_back", {l.soft, dsoft}, scores, 0);
    const Id dqkv = op_out("scores_back", {dscores, l.qkv, dv}, 3 * stream_, 2 * score_flops());
    const Id dnorm1 = linear_backward("qkv", l.norm1, l.wqkv, dqkv, matmul_flops(w, 3 * w));
    const Id dx = norm_backward("norm1", l.x, l.stats1, l.gamma1, dnorm1);
    return op_out("sum", {gmid, dx}, stream_, 0);
  }

  const GptSize size_;
  const std::int64_t rows_;   // batch * tokens
  const base::Bytes stream_;  // of a residual stream
  schedule::Problem problem_;
  std::string name_;  // prefix
  bool backward_ = false;
};

inline schedule::Problem gpt_problem(const GptSize& size) {
  return GptProblem(size).run();
}

}  // namespace reprise::planner::testing
