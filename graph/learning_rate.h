#pragma once

// Learning-rate schedules: the rate as a pure function of the step, so that a resumed run needs no
// state beyond the step counter.

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::graph {

struct LearningRate {
  enum class Kind : std::uint8_t { kConstant, kStep, kCosine };

  Kind kind = Kind::kConstant;
  double base = 0.1;
  std::int64_t warmup_steps = 0;  // linear from base / warmup_steps to base over the first steps
  std::int64_t period_steps =
      0;                // kStep: multiply by `factor` every period; kCosine: length of the decay
  double factor = 0.1;  // kStep only
  double final_rate = 0.0;  // kCosine: rate from period_steps on

  // Rate of the step with this number (the first step is 0). Warm-up steps come first; step and
  // cosine schedules count from the end of the warm-up. Cosine: Loshchilov and Hutter 2017, without
  // restarts.
  [[nodiscard]] double at(std::uint64_t step) const;

  friend bool operator==(const LearningRate&, const LearningRate&) = default;
};

[[nodiscard]] const char* learning_rate_kind_name(
    LearningRate::Kind kind);  // "constant", "step", "cosine"
[[nodiscard]] LearningRate::Kind parse_learning_rate_kind(
    std::string_view name);  // throws Error(kInput)

}  // namespace reprise::graph
