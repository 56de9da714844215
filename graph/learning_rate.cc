#include "graph/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace reprise::graph {

double LearningRate::at(std::uint64_t step) const {
  const auto now = static_cast<std::int64_t>(step);
  if (now < warmup_steps)
    return base * static_cast<double>(now + 1) / static_cast<double>(warmup_steps);
  const std::int64_t since = now - warmup_steps;
  if (kind == Kind::kConstant || period_steps <= 0) return base;
  if (kind == Kind::kStep)
    return base * std::pow(factor, static_cast<double>(since / period_steps));
  const double progress =
      std::min(1.0, static_cast<double>(since) / static_cast<double>(period_steps));
  return final_rate + 0.5 * (base - final_rate) * (1.0 + std::cos(std::numbers::pi * progress));
}

}  // namespace reprise::graph
