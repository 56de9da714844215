#pragma once

// The order in which blocks, warps and lanes run (ThreadOrder), one after the other.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

#include "host/grid.h"

namespace reprise::test::cuda {

class OrderMaker {
 public:
  OrderMaker(ThreadOrder order, std::uint64_t seed) : order_(order), random_(seed) {}

  // Fills `into` with 0 to into.size() - 1; in random order it is another one each time.
  void arrange(std::vector<std::size_t>& into) {
    std::iota(into.begin(), into.end(), std::size_t{0});
    if (order_ == ThreadOrder::kReverse) std::reverse(into.begin(), into.end());
    if (order_ != ThreadOrder::kRandom) return;
    for (std::size_t n = into.size(); n > 1; --n) std::swap(into[n - 1], into[random_() % n]);
  }
  [[nodiscard]] bool is_random() const { return order_ == ThreadOrder::kRandom; }

 private:
  ThreadOrder order_;
  std::minstd_rand random_;
};

}  // namespace reprise::test::cuda
