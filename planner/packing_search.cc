#include "planner/packing_search.h"

#include <algorithm>

// Any packing can be pushed down until each item rests on the ground or on an item below it; read
// from the bottom to the top it then places each item at the lowest offset that the ones before
// leave it. So it is enough to try such sequences, in which offsets never fall (the idea of
// MiniMalloc, Moffitt 2023). A branch is cut when
//   - a section cannot hold what is left to place in it above the highest item placed there, or
//     above the offset reached;
//   - an item would start where some other one could lie wholly below it: then a packing exists
//     in which that other one comes first.

namespace reprise::planner {
namespace {

class Search {
 public:
  Search(const PackItems& problem, const Conflicts& conflicts,
         const std::vector<std::int32_t>& order, Bytes capacity)
      : problem_(problem),
        conflicts_(conflicts),
        order_(order),
        capacity_(capacity),
        lowest_(problem.items.size(), 0),
        placed_(problem.items.size(), false),
        floor_(static_cast<std::size_t>(problem.sections), 0),
        left_(problem.load) {}

  PackingSearch run(std::int64_t node_limit) {
    PackingSearch result;
    if (problem_.lower_bound > capacity_) {
      result.exhausted = true;
      return result;
    }
    push_frame(0);
    while (true) {
      if (frames_.size() == problem_.items.size() + 1) {
        result.offsets = lowest_;
        break;
      }
      Frame& frame = frames_.back();
      if (frame.next == frame.last) {
        candidates_.resize(frame.first);
        frames_.pop_back();
        if (frames_.empty()) {
          result.exhausted = true;
          break;
        }
        undo(frames_.back());
        continue;
      }
      if (result.nodes == node_limit) break;
      ++result.nodes;
      const std::int32_t item = candidates_[frame.next++];
      place(frame, item);
      if (sections_fit(lowest_[index(item)])) {
        push_frame(lowest_[index(item)]);
      } else {
        undo(frame);
      }
    }
    return result;
  }

 private:
  struct Frame {
    std::size_t first = 0, next = 0, last = 0;      // its candidates
    std::int32_t item = -1;                         // placed now
    std::size_t lowest_trail = 0, floor_trail = 0;  // what to restore when it is lifted again
  };
  template <class T>
  struct Change {
    std::int32_t where;
    T before;
  };

  static std::size_t index(std::int32_t i) { return static_cast<std::size_t>(i); }

  void push_frame(Bytes reached) {
    Bytes other_top = capacity_ + problem_.slack + 1;
    for (std::int32_t item : order_) {
      if (placed_[index(item)]) continue;
      const Bytes offset = std::max(lowest_[index(item)], reached);
      other_top = std::min(other_top, offset + problem_.items[index(item)].aligned);
    }
    Frame frame;
    frame.first = frame.next = candidates_.size();
    for (std::int32_t item : order_) {
      const Bytes offset = lowest_[index(item)];
      if (placed_[index(item)] || offset < reached || offset >= other_top) continue;
      if (offset + problem_.items[index(item)].bytes > capacity_) continue;
      candidates_.push_back(item);
    }
    frame.last = candidates_.size();
    frames_.push_back(frame);
  }

  void place(Frame& frame, std::int32_t item) {
    frame.item = item;
    frame.lowest_trail = lowest_trail_.size();
    frame.floor_trail = floor_trail_.size();
    placed_[index(item)] = true;
    const PackItem& it = problem_.items[index(item)];
    const Bytes top = lowest_[index(item)] + it.aligned;
    for (std::int32_t s = it.begin; s < it.end; ++s) {
      floor_trail_.push_back({s, floor_[index(s)]});
      floor_[index(s)] = top;
      left_[index(s)] -= it.aligned;
    }
    for (std::int32_t other : conflicts_.of(index(item))) {
      if (placed_[index(other)] || lowest_[index(other)] >= top) continue;
      lowest_trail_.push_back({other, lowest_[index(other)]});
      lowest_[index(other)] = top;
    }
  }

  void undo(Frame& frame) {
    for (; lowest_trail_.size() > frame.lowest_trail; lowest_trail_.pop_back()) {
      lowest_[index(lowest_trail_.back().where)] = lowest_trail_.back().before;
    }
    for (; floor_trail_.size() > frame.floor_trail; floor_trail_.pop_back()) {
      floor_[index(floor_trail_.back().where)] = floor_trail_.back().before;
    }
    const PackItem& it = problem_.items[index(frame.item)];
    for (std::int32_t s = it.begin; s < it.end; ++s) left_[index(s)] += it.aligned;
    placed_[index(frame.item)] = false;
  }

  bool sections_fit(Bytes reached) const {
    const Bytes limit = capacity_ + problem_.slack;
    for (std::size_t s = 0; s < left_.size(); ++s) {
      if (left_[s] > 0 && std::max(floor_[s], reached) + left_[s] > limit) return false;
    }
    return true;
  }

  const PackItems& problem_;
  const Conflicts& conflicts_;
  const std::vector<std::int32_t>& order_;
  const Bytes capacity_;
  std::vector<Bytes>
      lowest_;  // per item: above all placed ones that it meets; its offset once placed
  std::vector<bool> placed_;
  std::vector<Bytes> floor_;  // per section: top of what is placed there
  std::vector<Bytes> left_;   // per section: bytes still to place
  std::vector<Frame> frames_;
  std::vector<std::int32_t> candidates_;
  std::vector<Change<Bytes>> lowest_trail_, floor_trail_;
};

}  // namespace

PackingSearch search_packing(const PackItems& problem, const Conflicts& conflicts,
                             const std::vector<std::int32_t>& order, Bytes capacity,
                             std::int64_t node_limit) {
  return Search(problem, conflicts, order, capacity).run(node_limit);
}

}  // namespace reprise::planner
