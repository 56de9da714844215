#pragma once

// Which algorithm each op runs, where the problem offers several. A workspace lives only while its
// op runs, so the picks of two ops never disturb each other. For a known order the best ones within
// a level of live bytes are therefore exact and need no search: each op takes the cheapest
// algorithm that fits beside what is live at all of its runs.

#include <cstdint>
#include <vector>

#include "schedule/problem.h"

namespace reprise::planner {

using base::Bytes;
using schedule::Choices;

// Does any op have more than one?
[[nodiscard]] bool offers_algorithms(const schedule::Problem& problem);
// The problem with the leanest algorithm of each op only.
[[nodiscard]] schedule::Problem leanest_problem(const schedule::Problem& problem);

class OrderAlgorithms {
 public:
  // The order must be an execution of the problem (CHECKed).
  OrderAlgorithms(const schedule::Problem& problem, const schedule::Order& order);

  // The live peak with the leanest algorithms.
  [[nodiscard]] Bytes least() const { return least_; }
  // The cheapest choices whose live peak is within `bytes`, or within least() where that is more.
  [[nodiscard]] Choices within(Bytes bytes) const;
  // The same for one op.
  [[nodiscard]] std::int32_t choice_within(schedule::OpId op, Bytes bytes) const;

  struct Level {
    Bytes live_peak = 0;
    std::int64_t cost = 0;  // of the order with within(live_peak)
  };
  // What more memory buys: live peaks rising, costs falling, from the leanest to the fastest. Where
  // there are more than `most`, those are left out that save little.
  [[nodiscard]] std::vector<Level> levels(std::size_t most) const;

 private:
  const schedule::Problem& problem_;
  std::vector<Bytes> beside_;       // per op: largest live sum at its runs, its workspace left out
  std::vector<std::int64_t> runs_;  // per op
  Bytes least_ = 0;
  std::int64_t leanest_cost_ = 0;
};

}  // namespace reprise::planner
