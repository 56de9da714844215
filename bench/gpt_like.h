#pragma once

// A decoder-only transformer as far as the graph's ops go: the softmax of the scores is a sigmoid,
// which has the same bytes and reads the same values in its backward part.

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "graph/builder.h"

namespace reprise::bench {

struct GptLike {
  std::int64_t layers = 12, batch = 4, tokens = 512, width = 768, heads = 4, vocabulary = 8192;
};

// x[B,T,W] => x[B,T,W]. A head is a slice of the width, scored on its own.
inline graph::ValueId gpt_layer(graph::Builder& b, graph::ValueId x, const GptLike& size) {
  const std::int64_t w = size.width, head = w / size.heads;
  const auto weight = [&](const char* name, std::int64_t out, std::int64_t in) {
    return b.parameter(name, {out, in});
  };
  graph::ValueId normed =
      b.layer_norm(x, b.parameter("gamma1", {w}), b.parameter("beta1", {w}), {}, "norm1");
  const graph::ValueId q = b.linear(normed, weight("wq", w, w), "q");
  const graph::ValueId k = b.linear(normed, weight("wk", w, w), "k");
  const graph::ValueId v = b.linear(normed, weight("wv", w, w), "v");
  std::vector<graph::ValueId> mixed;
  for (std::int64_t h = 0; h < size.heads; ++h) {
    const graph::Builder::Scope scope(b, "head" + std::to_string(h) + ".");
    const auto part = [&](graph::ValueId of) { return b.slice(of, 2, h * head, (h + 1) * head); };
    const graph::ValueId scores = b.matmul(part(q), part(k), {.transpose_b = true}, "scores");
    const graph::ValueId scaled = b.scale(scores, 1 / std::sqrt(static_cast<double>(head)));
    mixed.push_back(b.matmul(b.sigmoid(scaled), part(v), {}, "mixed"));
  }
  const graph::ValueId joined = b.linear(b.concat(mixed, 2), weight("wo", w, w), "joined");
  x = b.add(x, joined, "skip1");
  normed = b.layer_norm(x, b.parameter("gamma2", {w}), b.parameter("beta2", {w}), {}, "norm2");
  const graph::ValueId wide = b.gelu(b.linear(normed, weight("w1", 4 * w, w), "wide"));
  return b.add(x, b.linear(wide, weight("w2", w, 4 * w), "narrow"), "skip2");
}

inline graph::Graph make_gpt_like(const GptLike& size) {
  graph::Builder b("gpt_like");
  const graph::ValueId ids = b.input("tokens", {size.batch, size.tokens}, graph::DType::kI32);
  const graph::ValueId next = b.input("targets", {size.batch * size.tokens}, graph::DType::kI32);
  graph::ValueId x = b.embedding(b.parameter("table", {size.vocabulary, size.width}), ids);
  for (std::int64_t layer = 0; layer < size.layers; ++layer) {
    const graph::Builder::Scope scope(b, "layer" + std::to_string(layer) + ".");
    x = gpt_layer(b, x, size);
  }
  const graph::ValueId flat = b.reshape(x, {size.batch * size.tokens, size.width});
  const graph::ValueId head = b.parameter("head", {size.vocabulary, size.width});
  b.set_loss(b.softmax_cross_entropy(b.linear(flat, head, "logits"), next));
  return std::move(b).finish();
}

}  // namespace reprise::bench
