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
  std::vector<Interval> sums;             // of the buckets, on the communication thread
};

}  // namespace reprise::runtime
