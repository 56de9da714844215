#include "graph/update_nodes.h"

#include <string>
#include <variant>

namespace reprise::graph {

bool skips_nonfinite(const Optimizer& optimizer) {
  return std::visit([](const auto& a) { return a.skip_nonfinite; }, optimizer);
}

void UpdateNodes::append(ValueId parameter, ValueId gradient) {
  if (std::visit([](const auto& a) { return takes_norm(a); }, optimizer_)) {
    waiting_.emplace_back(parameter, gradient);
  } else {
    append_now(parameter, gradient);
  }
}

void UpdateNodes::settle() {
  if (waiting_.empty()) return;
  std::vector<ValueId> gradients;
  for (const auto& [parameter, gradient] : waiting_) gradients.push_back(gradient);
  norm_ = builder_.append(OpKind::kGlobalNorm, std::move(gradients), NoAttributes{}, kGradientNorm,
                          Phase::kUpdate)[0];
  builder_.add_output(norm_);
  for (const auto& [parameter, gradient] : std::exchange(waiting_, {}))
    append_now(parameter, gradient);
}

void UpdateNodes::append_now(ValueId parameter, ValueId gradient) {
  const std::string name = builder_.graph().values[parameter].name;
  const Shape shape = builder_.shape(parameter);
  std::vector<ValueId> inputs{parameter, gradient};
  const auto add_state = [&](const char* suffix) {
    inputs.push_back(builder_.source(name + suffix, shape, DType::kF32, Role::kOptimizerState));
  };
  OpKind op = OpKind::kSgd;
  Attributes attributes;
  if (const auto* sgd = std::get_if<SgdAttributes>(&optimizer_)) {
    attributes = *sgd;
    if (sgd->momentum != 0) add_state(".momentum");
  } else {
    op = OpKind::kAdam;
    attributes = std::get<AdamAttributes>(optimizer_);
    add_state(".m");
    add_state(".v");
  }
  const std::size_t before_norm = inputs.size();
  if (norm_.valid()) inputs.push_back(norm_);
  const auto outputs = builder_.append(op, inputs, attributes, "update/" + name, Phase::kUpdate);
  builder_.add_update(parameter, outputs[0]);
  for (std::size_t i = 2; i < before_norm; ++i) builder_.add_update(inputs[i], outputs[i - 1]);
}

void UpdateNodes::append(const StatisticsUpdate& update) {
  std::vector<ValueId> inputs{update.running_mean, update.running_var};
  inputs.insert(inputs.end(), update.batches.begin(), update.batches.end());
  RunningUpdateAttributes attributes = update.attributes;
  attributes.skip_nonfinite = skips();
  if (attributes.skip_nonfinite) inputs.push_back(norm_);
  const auto next = builder_.append(OpKind::kBatchNormUpdate, std::move(inputs), attributes,
                                    update.name, Phase::kUpdate);
  builder_.add_update(update.running_mean, next[0]);
  builder_.add_update(update.running_var, next[1]);
}

void UpdateNodes::append(const Assignment& assignment) {
  std::vector<ValueId> inputs{assignment.state, assignment.x};
  if (skips()) inputs.push_back(norm_);
  builder_.add_update(assignment.state,
                      builder_.append(OpKind::kAssign, std::move(inputs), NoAttributes{},
                                      assignment.name, Phase::kUpdate)[0]);
}

}  // namespace reprise::graph
