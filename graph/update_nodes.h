#pragma once

// Appends the nodes that make the next versions of persistent values.
//
// An optimizer that clips or skips (takes_norm) lets them wait for the norm of all gradients:
//
//    grad a ──┬─▶ global_norm ─▶ grad_norm ──┬─▶ update a, update b
//    grad b ──┘                              └─▶ statistics, assigned states (where it skips)

#include <utility>
#include <vector>

#include "graph/autodiff.h"
#include "graph/builder.h"
#include "graph/forward_updates.h"

namespace reprise::graph {

[[nodiscard]] bool skips_nonfinite(const Optimizer& optimizer);

class UpdateNodes {
 public:
  UpdateNodes(Builder& builder, const Optimizer& optimizer)
      : builder_(builder), optimizer_(optimizer) {}

  // The gradient of the parameter is final: updates it, or lets it wait for the norm.
  void append(ValueId parameter, ValueId gradient);
  // All gradients are there: appends the norm, an output, and the updates that wait for it.
  void settle();
  // After settle().
  void append(const StatisticsUpdate& update);
  void append(const Assignment& assignment);

 private:
  [[nodiscard]] bool skips() const { return norm_.valid() && skips_nonfinite(optimizer_); }
  void append_now(ValueId parameter, ValueId gradient);

  Builder& builder_;
  const Optimizer& optimizer_;
  std::vector<std::pair<ValueId, ValueId>> waiting_;  // parameters and their gradients
  ValueId norm_;                                      // valid once it is there
};

}  // namespace reprise::graph
