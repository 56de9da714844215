#include "api/divergence.h"

#include <cmath>
#include <cstring>
#include <variant>
#include <vector>

#include "runtime/snapshot.h"

namespace reprise::api {
namespace {

double rate_at(const graph::Optimizer& optimizer, std::int64_t step) {
  return std::visit(
      [&](const auto& attributes) { return attributes.rate.at(static_cast<std::uint64_t>(step)); },
      optimizer);
}

bool all_finite(const std::vector<std::byte>& plain) {
  for (std::size_t at = 0; at + sizeof(float) <= plain.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, plain.data() + at, sizeof(value));
    if (!std::isfinite(value)) return false;
  }
  return true;
}

}  // namespace

Diverged divergence(const TrainOptions& options, const std::string& what, std::int64_t step) {
  std::string text = fmt::format(
      "training diverged: {} (learning rate {}); use a smaller --lr, or --warmup, and look for "
      "odd values in the data",
      what, rate_at(options.optimizer, step - 1));
  if (!options.save_folder.empty()) {
    const auto kept = runtime::snapshots_newest_first(options.save_folder);
    text += "; nothing of this state was saved";
    for (std::size_t i = 0; i < kept.size(); ++i) {
      text +=
          fmt::format("{}{}", i == 0 ? "; earlier snapshots are kept: " : ", ", kept[i].string());
    }
  }
  return Diverged(text);
}

void require_finite_loss(const TrainOptions& options, const Session& session, float loss,
                         std::int64_t total_steps) {
  if (std::isfinite(loss)) return;
  const auto done = static_cast<std::int64_t>(session.steps_done());
  throw divergence(options, fmt::format("the loss of step {} of {} is {}", done, total_steps, loss),
                   done);
}

void require_finite_state(const TrainOptions& options, const Session& session,
                          std::int64_t total_steps) {
  const auto done = static_cast<std::int64_t>(session.steps_done());
  for (const Session::Variable& variable : session.variables()) {
    if (variable.dtype != graph::DType::kF32 || all_finite(session.read(variable.name))) continue;
    throw divergence(options,
                     fmt::format("after step {} of {} '{}' holds values that are not finite", done,
                                 total_steps, variable.name),
                     done);
  }
}

}  // namespace reprise::api
