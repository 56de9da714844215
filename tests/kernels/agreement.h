#pragma once

// How far two backends may differ: by norm, since an element near zero is the sum of larger terms.

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace reprise::kernels {

[[nodiscard]] inline double largest_of(const std::vector<float>& values) {
  double largest = 1e-30;
  for (const float x : values) largest = std::max(largest, std::abs(static_cast<double>(x)));
  return largest;
}

// The largest difference over the largest element (or over `scale`, where that is larger).
[[nodiscard]] inline double relative_difference(const std::vector<float>& got,
                                                const std::vector<float>& truth, double scale = 0) {
  double difference = 0;
  for (std::size_t i = 0; i < truth.size(); ++i) {
    const double d = std::abs(static_cast<double>(got[i]) - truth[i]);
    difference = std::isnan(d) ? std::numeric_limits<double>::infinity() : std::max(difference, d);
  }
  return difference / std::max(largest_of(truth), scale);
}

}  // namespace reprise::kernels
