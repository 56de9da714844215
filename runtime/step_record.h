#pragma once

// When the parts of one step ran. What they were is in the schedule.

#include <chrono>
#include <cstdint>
#include <vector>

#include "schedule/buckets.h"

namespace reprise::runtime {

// Nanoseconds since the step began.
struct Interval {
  std::int64_t begin_ns = 0, end_ns = 0;
  friend bool operator==(const Interval&, const Interval&) = default;
};

struct StepRecord {
  std::vector<Interval> instructions;     // by index in the schedule
  std::vector<schedule::Bucket> buckets;  // empty without other ranks
  // Of the buckets, on the communication thread; empty where a device adds up. Instructions of a
  // device's step are then the host's times of queuing them.
  std::vector<Interval> sums;
};

}  // namespace reprise::runtime
