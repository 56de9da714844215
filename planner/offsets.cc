#include "planner/offsets.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "planner/conflicts.h"
#include "planner/packing_search.h"
#include "planner/placement.h"

namespace reprise::planner {
namespace {

// Above this many meeting pairs only the placements by time run: they need no table of conflicts.
constexpr std::int64_t kPairLimit = 4'000'000;
// Above this many items an exact search gets nowhere within its nodes.
constexpr std::size_t kSearchItems = 2'000;
// search_nodes is meant for problems of this many items; of larger ones fewer nodes are visited, so
// that the effort stays the same.
constexpr std::int64_t kNodeItems = 128;
constexpr std::int64_t kMostRounds = 50;  // of place_with_feedback

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

class Packer {
 public:
  Packer(const PackItems& problem, const PackingOptions& options)
      : problem_(problem), options_(options) {}

  Placement run() {
    best_ = place_by_time(problem_, false);
    if (!done()) offer(place_by_time(problem_, true));
    if (done()) return best_;
    const std::optional<Conflicts> conflicts = Conflicts::find(problem_.items, kPairLimit);
    if (!conflicts) return best_;
    orders_ = greedy_orders(problem_);
    for (const auto& order : orders_) {
      if (!done()) offer(place_in_order(problem_, *conflicts, order));
    }
    // A round looks at each pair twice and sorts: about as much as a node does eight times over.
    const std::int64_t rounds =
        std::min(kMostRounds, effort() / 8 / std::max<std::int64_t>(conflicts->pairs(), 1));
    if (!done() && rounds > 0) {
      offer(place_with_feedback(problem_, *conflicts, orders_[0], static_cast<int>(rounds)));
    }
    if (problem_.items.size() <= kSearchItems) search(*conflicts);
    return best_;
  }

 private:
  bool done() const { return best_.arena == problem_.lower_bound; }

  std::int64_t effort() const { return options_.search_nodes * kNodeItems; }

  void offer(Placement placement) {
    if (placement.arena < best_.arena) best_ = std::move(placement);
  }

  // Half of what is left of the nodes for the smallest capacity that may still be possible, spread
  // over the orders; then the same half way up to what is known.
  void search(const Conflicts& conflicts) {
    Bytes impossible = problem_.lower_bound - problem_.step;
    std::int64_t nodes = std::min(options_.search_nodes,
                                  effort() / static_cast<std::int64_t>(problem_.items.size()));
    while (!done() && nodes > 0) {
      const Bytes low = impossible + problem_.step;
      const Bytes high = best_.arena - problem_.step;
      if (low > high) break;
      const Bytes middle = low + (high - low) / problem_.step / 2 * problem_.step;
      const Bytes capacity = impossible < problem_.lower_bound ? low : middle;
      const Outcome outcome = search_within(conflicts, capacity, (nodes + 1) / 2);
      nodes -= std::max<std::int64_t>(outcome.nodes, 1);
      if (!outcome.found) impossible = capacity;
    }
  }

  struct Outcome {
    bool found = false;
    std::int64_t nodes = 0;
  };

  Outcome search_within(const Conflicts& conflicts, Bytes capacity, std::int64_t limit) {
    Outcome outcome;
    for (std::int64_t share = std::max<std::int64_t>(limit / 16, 1); outcome.nodes < limit;
         share *= 2) {
      for (const auto& order : orders_) {
        const std::int64_t nodes = std::min(share, limit - outcome.nodes);
        if (nodes <= 0) break;
        PackingSearch found = search_packing(problem_, conflicts, order, capacity, nodes);
        outcome.nodes += found.nodes;
        if (found.offsets) {
          offer(as_placement(*std::move(found.offsets)));
          outcome.found = true;
          return outcome;
        }
        if (found.exhausted) return outcome;
      }
    }
    return outcome;
  }

  Placement as_placement(std::vector<Bytes> offsets) const {
    Placement placement;
    for (std::size_t i = 0; i < offsets.size(); ++i) {
      placement.arena = std::max(placement.arena, offsets[i] + problem_.items[i].bytes);
    }
    placement.offsets = std::move(offsets);
    return placement;
  }

  const PackItems& problem_;
  const PackingOptions& options_;
  std::vector<std::vector<std::int32_t>> orders_;
  Placement best_;
};

}  // namespace

double Packing::fragmentation() const {
  if (lower_bound == 0) return 0;
  return static_cast<double>(arena) / static_cast<double>(lower_bound) - 1.0;
}

Packing pack(const std::vector<schedule::Buffer>& buffers, const PackingOptions& options) {
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
  const Placement placement = Packer(problem, options).run();
  for (std::size_t k = 0; k < others.size(); ++k) {
    const std::size_t i = others[k];
    packing.offsets[i] = bottom + placement.offsets[k];
    packing.arena = std::max(packing.arena, packing.offsets[i] + buffers[i].bytes);
  }
  return packing;
}

}  // namespace reprise::planner
