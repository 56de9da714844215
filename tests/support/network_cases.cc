// Small whole networks, and steps of the optimizers.

#include "fmt/format.h"

#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

ValueId linear(CaseBuilder& k, ValueId x, const std::string& name, std::int64_t outputs) {
  const std::int64_t inputs = k->shape(x).back();
  return k->linear(x, k.w(name + ".w", {outputs, inputs}, between(-0.5, 0.5)),
                   k.w(name + ".b", {outputs}));
}

ValueId conv3x3(CaseBuilder& k, ValueId x, const std::string& name, std::int64_t channels,
                std::int64_t stride = 1) {
  const std::int64_t inputs = k->shape(x)[1];
  const ValueId w = k.w(name + ".w", {channels, inputs, 3, 3}, between(-0.3, 0.3));
  return k->conv2d(x, w, {.stride = {stride, stride}, .padding = {1, 1}}, name);
}

ValueId batch_norm(CaseBuilder& k, ValueId x, const std::string& name) {
  const Shape channels{k->shape(x)[1]};
  return k->batch_norm(x, k.w(name + ".gamma", channels, between(0.5, 1.5)),
                       k.w(name + ".beta", channels),
                       k.state(name + ".running_mean", channels, given({0})),
                       k.state(name + ".running_var", channels, given({1})), 0.1, {}, name);
}

void mlp(CaseBuilder& k) {
  ValueId h = k.x("x", {5, 6});
  h = k->tanh(linear(k, h, "fc1", 7));
  h = k->sigmoid(linear(k, h, "fc2", 4));
  k.out(k->softmax_cross_entropy(linear(k, h, "fc3", 3), k.ids("labels", {5}, 0, 3)));
}

// Two residual blocks, the second with stride 2 and a projection. Sigmoids stand for relu: central
// differences need a smooth network, and the kinks of relu are tested on their own.
void residual_net(CaseBuilder& k) {
  ValueId h = k->sigmoid(batch_norm(k, conv3x3(k, k.x("images", {3, 2, 6, 6}), "stem", 4), "bn0"));
  for (const std::int64_t stride : {1, 2}) {
    const std::string block = fmt::format("block{}", stride);
    const std::int64_t channels = 4 * stride;
    ValueId inner =
        batch_norm(k, conv3x3(k, h, block + ".conv1", channels, stride), block + ".bn1");
    inner =
        batch_norm(k, conv3x3(k, k->sigmoid(inner), block + ".conv2", channels), block + ".bn2");
    if (stride == 2) {
      h = k->conv2d(h, k.w("shortcut.w", {8, 4, 1, 1}), {.stride = {2, 2}}, "shortcut");
      h = batch_norm(k, h, "shortcut.bn");
    }
    h = k->sigmoid(k->add(h, inner));
  }
  const ValueId logits = linear(k, k->global_avg_pool(h), "fc", 5);
  k.out(k->softmax_cross_entropy(logits, k.ids("labels", {3}, 0, 5)));
}

void conv_net(CaseBuilder& k) {
  ValueId h = k->tanh(conv3x3(k, k.x("images", {2, 3, 8, 8}), "conv1", 5));
  h = k->max_pool(h, {.kernel = {2, 2}, .stride = {2, 2}});
  h = k->dropout(k->gelu(conv3x3(k, h, "conv2", 6)), 0.25);
  h = k->avg_pool(h, {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}});
  const ValueId logits = linear(k, k->dropout(k->flatten(h), 0.5), "fc", 4);
  k.out(k->softmax_cross_entropy(logits, k.ids("labels", {2}, 0, 4)));
}

// Encoder, bottom, decoder with a skip.
void unet(CaseBuilder& k) {
  const ValueId skip = k->tanh(conv3x3(k, k.x("images", {1, 2, 6, 4}), "down", 3));
  ValueId h = k->avg_pool(skip, {.kernel = {2, 2}, .stride = {2, 2}});
  h = k->upsample(k->tanh(conv3x3(k, h, "bottom", 5)), 2);
  h = conv3x3(k, k->concat({skip, h}, 1), "up", 2);
  k.out(k->mean_squared_error(h, k.constant("target", {1, 2, 6, 4})));
}

// Attention-free transformer block: layer norm, gelu, residual.
void layer_norm_net(CaseBuilder& k) {
  ValueId h = k.x("x", {2, 3, 8});
  for (const std::string block : {"a", "b"}) {
    const ValueId normal =
        k->layer_norm(h, k.w(block + ".gamma", {8}, between(0.5, 1.5)), k.w(block + ".beta", {8}));
    h = k->add(h, linear(k, k->gelu(linear(k, normal, block + ".fc1", 10)), block + ".fc2", 8));
  }
  k.out(h);
}

// Two chunks over embedded tokens, (h, c) carried from step to step.
void language_model(CaseBuilder& k, bool gru) {
  constexpr std::int64_t kSteps = 2, kBatch = 3, kVocabulary = 7, kHidden = 5;
  const std::int64_t gates = (gru ? 3 : 4) * kHidden;
  const Fill small = between(-0.5, 0.5);
  const ValueId table = k.w("table", {kVocabulary, 4});
  const ValueId w_ih = k.w("w_ih", {gates, 4}, small);
  const ValueId w_hh = k.w("w_hh", {gates, kHidden}, small);
  const ValueId bias = k.w("bias", {4 * kHidden}, small);
  const ValueId out = k.w("out", {kVocabulary, kHidden}, small);
  const ValueId h0 = k.state("h", {kBatch, kHidden});
  const ValueId c0 = gru ? ValueId{} : k.state("c", {kBatch, kHidden});
  graph::Builder::Recurrent r{{}, h0, c0};
  for (const std::string chunk : {"0", "1"}) {
    const ValueId tokens = k.ids("tokens" + chunk, {kSteps, kBatch}, 0, kVocabulary);
    const ValueId targets = k.ids("targets" + chunk, {kSteps * kBatch}, 0, kVocabulary);
    const ValueId x = k->embedding(table, tokens);
    r = gru ? k->gru(x, r.h_n, w_ih, w_hh, bias) : k->lstm(x, r.h_n, r.c_n, w_ih, w_hh, bias);
    const ValueId logits = k->linear(k->reshape(r.y, {kSteps * kBatch, kHidden}), out);
    k.out(k->softmax_cross_entropy(logits, targets, {.reduction = graph::Reduction::kSum}));
  }
  k->assign(h0, r.h_n);
  if (!gru) k->assign(c0, r.c_n);
}

void small_step(CaseBuilder& k) {
  const ValueId h = k->tanh(linear(k, k.constant("x", {4, 19}), "fc1", 17));
  k.out(k->mean_squared_error(linear(k, h, "fc2", 3), k.constant("y", {4, 3})));
}

void image_step(CaseBuilder& k) {
  ValueId h = batch_norm(k, conv3x3(k, k.constant("x", {2, 3, 6, 5}), "conv1", 20), "bn1");
  h = k->relu(batch_norm(k, conv3x3(k, k->relu(h), "conv2", 16, 2), "bn2"));
  h = k->dropout(k->global_avg_pool(h), 0.3);
  k.out(k->softmax_cross_entropy(linear(k, h, "fc", 5), k.ids("labels", {2}, {3, 0})));
}

}  // namespace

const std::vector<OpCase>& network_cases() {
  static const std::vector<OpCase> cases{
      {"network/mlp", mlp},
      {"network/residual", residual_net},
      {"network/conv_pool_dropout", conv_net},
      {"network/unet", unet},
      {"network/layer_norm_gelu", layer_norm_net},
      {"network/lstm", [](CaseBuilder& k) { language_model(k, false); }},
      {"network/gru", [](CaseBuilder& k) { language_model(k, true); }},
  };
  return cases;
}

const std::vector<OpCase>& update_cases() {
  using graph::AdamAttributes;
  using graph::LearningRate;
  using graph::SgdAttributes;
  const LearningRate warm{.base = 0.05, .warmup_steps = 2};
  const LearningRate cosine{.kind = LearningRate::Kind::kCosine, .base = 0.1, .period_steps = 3};
  static const std::vector<OpCase> cases{
      {"update/sgd", small_step, SgdAttributes{.rate = warm}},
      {"update/sgd_decay", small_step, SgdAttributes{.weight_decay = 0.1}},
      {"update/momentum", small_step, SgdAttributes{.rate = cosine, .momentum = 0.9}},
      {"update/nesterov_decay", small_step,
       SgdAttributes{.momentum = 0.8, .nesterov = true, .weight_decay = 0.01}},
      {"update/adam", small_step, AdamAttributes{.rate = {.base = 0.01}}},
      {"update/adam_decay", small_step,
       AdamAttributes{.rate = warm, .beta1 = 0.8, .weight_decay = 0.1}},
      {"update/adamw", small_step,
       AdamAttributes{.rate = {.base = 0.01}, .weight_decay = 0.1, .decoupled = true}},
      {"update/image_momentum", image_step, SgdAttributes{.momentum = 0.9}},
      {"update/image_adam", image_step, AdamAttributes{.rate = {.base = 0.01}}},
      {"update/lstm_assign", [](CaseBuilder& k) { language_model(k, false); },
       SgdAttributes{.momentum = 0.9}},
      {"update/gru_assign", [](CaseBuilder& k) { language_model(k, true); },
       AdamAttributes{.rate = {.base = 0.01}}},
  };
  return cases;
}

}  // namespace reprise::test
