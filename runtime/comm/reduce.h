#pragma once

// The sum (or maximum, or minimum) of one piece of a tensor over the ranks, in the order of the
// ranks.

#include <cstddef>
#include <span>

#include "runtime/comm/communicator.h"

namespace reprise::runtime::comm {

// into[i] = into[i] (+) with[i] for `count` elements. Integer sums wrap. A NaN wins maxima and
// minima, so that no rank misses it.
void combine(std::byte* into, const std::byte* with, std::size_t count, ElementType type,
             Reduction reduction);

// A contiguous range of elements, [begin, end).
struct Part {
  std::size_t begin = 0, end = 0;
  [[nodiscard]] std::size_t size() const { return end - begin; }
};
// Part `index` of `count` elements cut into `parts` whose sizes differ by at most one.
[[nodiscard]] Part part_of(std::size_t count, int parts, int index);

}  // namespace reprise::runtime::comm
