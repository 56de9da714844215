#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "base/bytes.h"

namespace reprise::planner {

// A row of numbers, all 0 at first: add to a range, ask for the largest. O(log size).
class MaxTree {
 public:
  explicit MaxTree(std::size_t size) {
    while (leaves_ < size + 2) leaves_ *= 2;  // a leaf on either side stays outside every range
    nodes_.assign(2 * leaves_, {});
    for (std::size_t leaf = leaves_ + size + 1; leaf < 2 * leaves_; ++leaf) shut(leaf);
    shut(leaves_);
    for (std::size_t node = leaves_ - 1; node >= 1; --node) pull_up(node);
  }

  [[nodiscard]] base::Bytes largest() const { return nodes_[1].largest; }

  // A place that has the largest number.
  [[nodiscard]] std::size_t where_largest() const {
    std::size_t node = 1;
    while (node < leaves_) {
      node *= 2;
      if (nodes_[node].largest < nodes_[node + 1].largest) ++node;
    }
    return node - leaves_ - 1;
  }

  void add(std::size_t first, std::size_t last, base::Bytes value) {  // both ends belong to it
    // The leaves next to the range; what lies between their paths up is raised.
    std::size_t left = first + leaves_, right = last + leaves_ + 2;
    while ((left ^ right) != 1) {
      if (left % 2 == 0) raise(left + 1, value);
      if (right % 2 == 1) raise(right - 1, value);
      left /= 2;
      right /= 2;
      pull_up(left);
      pull_up(right);
    }
    // One path from here on, and where a node stays as it was so do all above.
    for (left /= 2; left >= 1 && pull_up(left); left /= 2) {
    }
  }

 private:
  // `largest` of a node counts what was added to the node itself, not to the nodes above it.
  struct Node {
    base::Bytes largest = 0, added = 0;
  };

  void shut(std::size_t leaf) {
    nodes_[leaf].largest = std::numeric_limits<base::Bytes>::min() / 2;
  }
  void raise(std::size_t node, base::Bytes value) {
    nodes_[node].largest += value;
    nodes_[node].added += value;
  }
  bool pull_up(std::size_t node) {  // did it change?
    const base::Bytes before = nodes_[node].largest;
    nodes_[node].largest =
        std::max(nodes_[2 * node].largest, nodes_[2 * node + 1].largest) + nodes_[node].added;
    return nodes_[node].largest != before;
  }

  std::size_t leaves_ = 1;
  std::vector<Node> nodes_;
};

}  // namespace reprise::planner
