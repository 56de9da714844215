#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/bytes.h"

namespace reprise::planner {

// A row of numbers, all 0 at first: add to a range, ask for the largest. O(log size).
class MaxTree {
 public:
  explicit MaxTree(std::size_t size) {
    while (leaves_ < size) leaves_ *= 2;
    largest_.assign(2 * leaves_, 0);
    added_.assign(2 * leaves_, 0);
  }

  [[nodiscard]] base::Bytes largest() const { return largest_[1]; }

  // A place that has the largest number.
  [[nodiscard]] std::size_t where_largest() const {
    std::size_t node = 1;
    while (node < leaves_) {
      node *= 2;
      if (largest_[node] < largest_[node + 1]) ++node;
    }
    return node - leaves_;
  }

  void add(std::size_t first, std::size_t last, base::Bytes value) {  // both ends belong to it
    std::size_t left = first + leaves_, right = last + leaves_ + 1;
    for (std::size_t l = left, r = right; l < r; l /= 2, r /= 2) {
      if (l % 2 == 1) raise(l++, value);
      if (r % 2 == 1) raise(--r, value);
    }
    pull_up(left);
    pull_up(right - 1);
  }

 private:
  // largest_ of a node counts what was added to the node itself, not to the nodes above it.
  void raise(std::size_t node, base::Bytes value) {
    largest_[node] += value;
    added_[node] += value;
  }
  void pull_up(std::size_t node) {
    for (node /= 2; node >= 1; node /= 2) {
      largest_[node] = std::max(largest_[2 * node], largest_[2 * node + 1]) + added_[node];
    }
  }

  std::size_t leaves_ = 1;
  std::vector<base::Bytes> largest_, added_;
};

}  // namespace reprise::planner
