#include "planner/longest_path.h"

#include <algorithm>
#include <numeric>

namespace reprise::planner {

std::vector<Index> longest_path(const Structure& structure, Index first, Index last) {
  const auto count = static_cast<std::size_t>(last - first);
  if (structure.freedom() == OrderFreedom::kFixed) {
    std::vector<Index> all(count);
    std::iota(all.begin(), all.end(), first);
    return all;
  }
  const auto at = [&](Index k) { return static_cast<std::size_t>(k - first); };
  std::vector<Index> length(count, 0), from(count, -1);
  Index end = -1;
  for (Index k = first; k < last; ++k) {
    if (!structure.required(k)) continue;
    length[at(k)] = 1;
    for (const TensorId id : structure.op(k).inputs) {
      const Index producer = structure.producer(static_cast<Index>(id.index()));
      if (producer < first || length[at(producer)] < length[at(k)]) continue;
      length[at(k)] = length[at(producer)] + 1;
      from[at(k)] = producer;
    }
    if (end < 0 || length[at(k)] > length[at(end)]) end = k;
  }
  std::vector<Index> path;
  for (Index k = end; k >= 0; k = from[at(k)]) path.push_back(k);
  std::reverse(path.begin(), path.end());
  return path;
}

}  // namespace reprise::planner
