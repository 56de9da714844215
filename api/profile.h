#pragma once

// The measurement behind `reprise profile`: a few real training steps, with every kernel timed.

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/trainer.h"
#include "runtime/profiler.h"

namespace reprise::api {

struct ProfileOptions {
  std::int64_t repeats = 10;  // steps that are timed at most, after one that is not
  double seconds = 10;        // no further step once they are over; two steps always run
};

struct ProfileReport {
  runtime::CostTable table;
  struct Node {
    std::string key;
    std::string op;
    std::int64_t nodes = 0;  // of the step, with this key
    std::int64_t ns = 0;     // of one of them
    std::int64_t runs = 0;
    double flops = 0, bytes = 0;  // of one of them
  };
  std::vector<Node> nodes;    // those that take most of a step first
  std::int64_t total_ns = 0;  // of a step: the sum of ns times nodes
  double ms_per_step = 0;     // measured from outside, with all nodes timed
  std::int64_t steps = 0;     // timed
  // Of the runs, by what they take: those left out because another program took the core.
  double disturbed_part = 0;
  double seconds = 0;  // in all
  Bytes arena_bytes = 0;
  std::string planner;
};

// Trains a few steps of the model on its data and throws the result away. Nothing is recomputed
// where the machine's memory allows. Throws Error(kDevice) naming the bytes when even the smallest
// step does not fit. `progress(done, total)` after each step; the run ends early, after two steps,
// once `stop` is set.
[[nodiscard]] ProfileReport profile(
    const TrainOptions& options, const ProfileOptions& profile_options,
    const std::function<void(std::int64_t, std::int64_t)>& progress = {},
    const std::atomic<bool>* stop = nullptr);

}  // namespace reprise::api
