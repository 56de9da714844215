#include "graph/learning_rate.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace reprise::graph {

double LearningRate::at(std::uint64_t step) const {
  const auto warmup = static_cast<std::uint64_t>(std::max<std::int64_t>(warmup_steps, 0));
  if (step < warmup) return base * static_cast<double>(step + 1) / static_cast<double>(warmup);
  if (kind == Kind::kConstant) return base;
  const std::uint64_t since = step - warmup;
  const auto period = static_cast<std::uint64_t>(std::max<std::int64_t>(period_steps, 1));
  if (kind == Kind::kStep) return base * std::pow(factor, static_cast<double>(since / period));
  if (since >= period) return final_rate;
  const double progress = static_cast<double>(since) / static_cast<double>(period);
  return final_rate + 0.5 * (base - final_rate) * (1.0 + std::cos(std::numbers::pi * progress));
}

}  // namespace reprise::graph
