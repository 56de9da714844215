// Trains a small network within 60 % of the memory that keeping every activation would take.
#include <cmath>
#include <cstdio>
#include <string>

#include "api/session.h"
#include "graph/builder.h"

using namespace reprise;

int main() {
  constexpr int kBatch = 512, kWidth = 64, kClasses = 4;
  models::Model model;
  graph::Builder net("mlp");
  auto x = net.input("x", {kBatch, kWidth});
  for (int i = 0; i < 12; ++i) {
    const std::string name = "layer" + std::to_string(i) + ".weight";
    const std::int64_t out = i < 11 ? kWidth : kClasses;
    model.initializers.push_back({name, {models::Model::Initializer::Kind::kNormal, 0.18}});
    x = net.linear(x, net.parameter(name, {out, kWidth}));
    if (i < 11) x = net.relu(x);
  }
  net.set_loss(net.softmax_cross_entropy(x, net.input("y", {kBatch}, graph::DType::kI32)));
  model.graph = net.finish();

  api::SessionOptions options;
  options.plan.budget = api::parse_budget("60%");
  const graph::SgdAttributes sgd{.rate = {.base = 0.05}, .momentum = 0.9};
  auto made = api::Session::create(model, {}, {.optimizer = sgd}, options);
  if (const auto* no = std::get_if<planner::Infeasible>(&made)) {
    std::printf("needs at least %lld bytes\n", static_cast<long long>(no->floor));
    return 3;
  }
  api::Session& session = *std::get<0>(made);
  std::vector<float> images(kBatch * kWidth);
  std::vector<std::int32_t> labels(kBatch);
  for (int i = 0; i < kBatch * kWidth; ++i) {  // a sine per item; its frequency is the class
    labels[i / kWidth] = i / kWidth % kClasses;
    images[i] = std::sin(0.1F * static_cast<float>(i * (1 + labels[i / kWidth])));
  }
  float first = 0, loss = 0;
  for (int step = 0; step < 50; ++step) {
    session.set_input("x", std::as_bytes(std::span(images)));
    session.set_input("y", std::as_bytes(std::span(labels)));
    loss = session.step();
    if (step == 0) first = loss;
  }
  std::printf("loss %.3f -> %.3f in %lld bytes, %lld runs repeated\n", first, loss,
              static_cast<long long>(session.peak_bytes_measured()),
              static_cast<long long>(session.report().recomputed_nodes));
  return loss < 0.5F * first ? 0 : 1;
}
