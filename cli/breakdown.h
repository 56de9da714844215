#pragma once

// Where a schedule's bytes and its recomputation go: by category at the peak, by part of the model
// and by kind of op. For people; the figures of a plan are in api::PlanReport.

#include <cstdint>
#include <string>
#include <vector>

#include "schedule/schedule.h"

namespace reprise::cli {

using base::Bytes;

// The bytes live at the instruction where the live sum is largest.
struct PeakBreakdown {
  std::int64_t instruction = 0;
  std::string node;  // name of the node that runs there; empty in an empty schedule
  struct Item {
    std::string category;  // "parameter", ..., "workspace", "alignment and holes"
    Bytes bytes = 0;
  };
  std::vector<Item> items;  // those above 0; they add up to the arena
};
[[nodiscard]] PeakBreakdown break_down_peak(const schedule::PlannedStep& step);

// What becomes of the forward nodes of one group.
struct GroupFate {
  std::string group;
  std::int64_t nodes = 0;       // forward nodes
  std::int64_t recomputed = 0;  // of them, those that run more than once
  std::int64_t extra_runs = 0;
  std::int64_t extra_ns = 0;  // cost of the extra runs
  Bytes kept_bytes = 0;       // outputs of first runs that lie in the arena when backward begins
};
// In program order of first appearance. Parts are the first component of node names ("layer1" of
// "layer1.0.conv1"); numbered parts are put together ("chunk*") when there are more than `most`.
[[nodiscard]] std::vector<GroupFate> fate_by_part(const schedule::PlannedStep& step,
                                                  std::size_t most = 24);
[[nodiscard]] std::vector<GroupFate> fate_by_op(const schedule::PlannedStep& step);

}  // namespace reprise::cli
