#include "planner/min_cut.h"

#include <algorithm>

namespace reprise::planner {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

void MinCut::add_edge(std::int32_t from, std::int32_t to, std::int64_t capacity) {
  const auto index = static_cast<std::int32_t>(edges_.size());
  edges_.push_back({to, first_[at(from)], capacity});
  edges_.push_back({from, first_[at(to)], 0});
  first_[at(from)] = index;
  first_[at(to)] = index + 1;
}

bool MinCut::find_levels(std::int32_t source, std::int32_t sink) {
  level_.assign(first_.size(), -1);
  std::vector<std::int32_t> queue = {source};
  level_[at(source)] = 0;
  for (std::size_t head = 0; head < queue.size(); ++head) {
    for (std::int32_t e = first_[at(queue[head])]; e >= 0; e = edges_[at(e)].next) {
      --effort_;
      const Edge& edge = edges_[at(e)];
      if (edge.left == 0 || level_[at(edge.to)] >= 0) continue;
      level_[at(edge.to)] = level_[at(queue[head])] + 1;
      queue.push_back(edge.to);
    }
  }
  return level_[at(sink)] >= 0;
}

// Depth first with a path of our own: advance along an edge to the next level, retreat at a dead
// end, push what the narrowest edge lets through at the sink.
void MinCut::push_along_levels(std::int32_t source, std::int32_t sink) {
  current_ = first_;
  std::vector<std::int32_t> path;
  std::int32_t node = source;
  while (true) {
    if (node == sink) {
      std::int64_t flow = kUncuttable;
      for (std::int32_t e : path) flow = std::min(flow, edges_[at(e)].left);
      std::size_t keep = path.size();
      for (std::size_t k = path.size(); k-- > 0;) {
        edges_[at(path[k])].left -= flow;
        edges_[at(path[k] ^ 1)].left += flow;
        if (edges_[at(path[k])].left == 0) keep = k;
      }
      flow_ += flow;
      effort_ -= static_cast<std::int64_t>(path.size());
      if (effort_ < 0) return;
      path.resize(keep);
      node = path.empty() ? source : edges_[at(path.back())].to;
      continue;
    }
    std::int32_t& e = current_[at(node)];
    while (e >= 0 &&
           (edges_[at(e)].left == 0 || level_[at(edges_[at(e)].to)] != level_[at(node)] + 1)) {
      e = edges_[at(e)].next;
      --effort_;
    }
    if (e >= 0) {
      path.push_back(e);
      node = edges_[at(e)].to;
    } else if (path.empty()) {
      return;
    } else {
      level_[at(node)] = -1;  // nothing gets through here any more
      path.pop_back();
      node = path.empty() ? source : edges_[at(path.back())].to;
    }
  }
}

std::vector<bool> MinCut::source_side(std::int32_t source, std::int32_t sink) {
  return source_side(source, sink, std::numeric_limits<std::int64_t>::max());
}

std::vector<bool> MinCut::source_side(std::int32_t source, std::int32_t sink, std::int64_t effort) {
  effort_ = effort;
  while (find_levels(source, sink) && effort_ >= 0) push_along_levels(source, sink);
  std::vector<bool> side(first_.size());
  for (std::size_t i = 0; i < side.size(); ++i) side[i] = level_[i] >= 0;
  return side;
}

}  // namespace reprise::planner
