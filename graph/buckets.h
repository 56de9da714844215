#pragma once

// Gradients of several ranks are summed bucket by bucket: many in one operation, so that a small
// one costs no round trip of its own.

#include <algorithm>
#include <cstdint>

namespace reprise::graph {

inline constexpr std::int64_t kDefaultBucketBytes = std::int64_t{25} << 20;

// How many bytes one bucket takes, given the most that the user allows and all bytes there are to
// sum. A backward pass ends with its last bucket, which nothing hides any more, and the first has
// to fill before anything travels: an eighth of all leaves little of both. Below 128 KiB an
// operation is mostly round trips.
[[nodiscard]] constexpr std::int64_t bucket_target(std::int64_t most_bytes,
                                                   std::int64_t all_bytes) {
  return std::min(most_bytes, std::max(all_bytes / 8, std::int64_t{128} << 10));
}

}  // namespace reprise::graph
