#pragma once

// What the bytes of a schedule are used for, step by step: the figures behind the memory map and
// describe(). For reading only; the planner's memory model is schedule/simulate.h.

#include <array>
#include <cstdint>
#include <vector>

#include "schedule/schedule.h"

namespace reprise::schedule {

enum class Category : std::uint8_t {
  kParameter,
  kOptimizerState,
  kState,
  kInput,
  kActivation,
  kRecomputed,  // made by a second or later run of its node
  kGradient,
  kWorkspace,
};
inline constexpr std::size_t kCategoryCount = 8;

[[nodiscard]] const char* category_name(Category category);  // "optimizer state"

// Which part of the step an instruction belongs to.
enum class Activity : std::uint8_t { kForward, kRecompute, kBackward, kUpdate };
[[nodiscard]] const char* activity_name(Activity activity);  // "recompute"

struct Usage {
  base::IdVector<SlotId, Category> categories;
  // As slot_lifetimes(), but a slot whose bytes are handed on in place ends where its successor
  // starts, so that at each step every byte has one owner. Empty for slots that are never used.
  base::IdVector<SlotId, Lifetime> lifetimes;
  std::vector<Activity> activities;  // per instruction
  std::int64_t recomputed = 0;       // instructions that repeat a node

  // Per step; there is one step even in a schedule without instructions.
  std::vector<Bytes> live_bytes;
  std::array<std::vector<Bytes>, kCategoryCount> live_by_category;
  std::int64_t peak_step = 0;  // first step with the most live bytes

  [[nodiscard]] Bytes peak() const { return live_bytes[static_cast<std::size_t>(peak_step)]; }
  [[nodiscard]] Bytes peak_of(Category category) const;
  [[nodiscard]] Bytes at_peak(Category category) const;
};

// One past the first run of the node that makes the loss; instructions.size() without a loss.
// Phases are no guide to where the forward pass ends: a planner may move a small backward node
// ahead.
[[nodiscard]] std::int64_t end_of_forward(const graph::Graph& graph, const Schedule& schedule);

// O(slots + reads and writes). The schedule names nodes, values and slots that exist (CHECKed);
// it need not be correct otherwise.
[[nodiscard]] Usage measure_usage(const graph::PreparedGraph& prepared, const Schedule& schedule);

}  // namespace reprise::schedule
