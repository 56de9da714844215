#include "planner/offsets.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "planner/conflicts.h"
#include "planner/portfolio.h"

namespace reprise::planner {
namespace {

// What a node of PackingOptions::search_nodes stands for, in steps of the search.
constexpr std::int64_t kStepsPerNode = 1'000;

void check(const std::vector<schedule::Buffer>& buffers, const PackingOptions& options) {
  if (options.alignment < 1 || (options.alignment & (options.alignment - 1)) != 0) {
    throw base::input_error("packing: alignment {}; a power of two is needed", options.alignment);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const schedule::Buffer& buffer = buffers[i];
    if (buffer.bytes < 0) {
      throw base::input_error("packing: buffer {} has {} bytes; a size is at least 0", i,
                              buffer.bytes);
    }
    if (buffer.bytes > 0 && buffer.end <= buffer.start) {
      throw base::input_error("packing: buffer {} of {} bytes is live on [{}, {}), which is empty",
                              i, buffer.bytes, buffer.start, buffer.end);
    }
  }
}

Bytes largest_live_sum(const std::vector<schedule::Buffer>& buffers) {
  std::vector<std::pair<std::int64_t, Bytes>> changes;
  changes.reserve(buffers.size() * 2);
  for (const schedule::Buffer& buffer : buffers) {
    if (buffer.bytes == 0) continue;
    changes.emplace_back(buffer.start, buffer.bytes);
    changes.emplace_back(buffer.end, -buffer.bytes);
  }
  std::sort(changes.begin(), changes.end());  // at equal times what ends comes first
  Bytes live = 0, largest = 0;
  for (const auto& [time, change] : changes) {
    live += change;
    largest = std::max(largest, live);
  }
  return largest;
}

}  // namespace

double Packing::fragmentation() const {
  if (lower_bound == 0) return 0;
  return static_cast<double>(arena) / static_cast<double>(lower_bound) - 1.0;
}

Packing pack(const std::vector<schedule::Buffer>& buffers, const PackingOptions& options,
             const std::function<bool()>& stop) {
  check(buffers, options);
  Packing packing;
  packing.offsets.assign(buffers.size(), 0);
  packing.lower_bound = largest_live_sum(buffers);
  std::int64_t horizon = 0;
  for (const schedule::Buffer& buffer : buffers) horizon = std::max(horizon, buffer.end);

  Bytes bottom = 0;
  std::vector<std::size_t> others;
  std::vector<TimeRange> times;
  std::vector<Bytes> bytes;
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const schedule::Buffer& buffer = buffers[i];
    if (buffer.bytes == 0) continue;
    const Bytes aligned = base::align_up(buffer.bytes, options.alignment);
    if (buffer.start == 0 && buffer.end == horizon) {
      packing.offsets[i] = bottom;
      packing.arena = bottom + buffer.bytes;
      bottom += aligned;
      continue;
    }
    others.push_back(i);
    times.push_back({buffer.start, buffer.end});
    bytes.push_back(buffer.bytes);
  }
  if (others.empty()) return packing;
  const PackItems problem = make_pack_items(times, bytes, options.alignment);
  const Placement placement =
      pack_items(problem, {std::max(problem.lower_bound, options.enough - bottom),
                           options.search_nodes * kStepsPerNode, stop});
  packing.too_large_to_search = placement.too_large_to_search;
  for (std::size_t k = 0; k < others.size(); ++k) {
    const std::size_t i = others[k];
    packing.offsets[i] = bottom + placement.offsets[k];
    packing.arena = std::max(packing.arena, packing.offsets[i] + buffers[i].bytes);
  }
  return packing;
}

}  // namespace reprise::planner
