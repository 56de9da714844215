#include "planner/delay.h"

#include <algorithm>

namespace reprise::planner {
namespace {

// The number of steps after which each tensor has been made first and read last.
struct Times {
  std::vector<std::size_t> made, read;

  Times(const Structure& structure, const schedule::Order& order)
      : made(static_cast<std::size_t>(structure.tensors()), 0),
        read(static_cast<std::size_t>(structure.tensors()), 0) {
    for (std::size_t step = 0; step < order.size(); ++step) {
      const schedule::Op& op = structure.problem().ops[order[step]];
      for (TensorId t : op.inputs) read[t.index()] = step + 1;
      for (TensorId t : op.outputs) {
        if (made[t.index()] == 0) made[t.index()] = step + 1;
      }
    }
  }
};

}  // namespace

schedule::Order insert_delayed(const Structure& structure, const schedule::Order& order) {
  const Times times(structure, order);
  std::vector<std::pair<std::size_t, Index>> delayed;  // steps before it, op
  for (Index i = 0; i < structure.ops(); ++i) {
    if (!structure.delayable(i) || !structure.required(i)) continue;
    std::size_t after = 0;
    for (TensorId t : structure.op(i).inputs) {
      after = std::max(after, times.made[t.index()]);
      if (structure.destroyer(static_cast<Index>(t.index())) == i) {
        after = std::max(after, times.read[t.index()]);
      }
    }
    delayed.emplace_back(after, i);
  }
  std::sort(delayed.begin(), delayed.end());
  schedule::Order result;
  result.reserve(order.size() + delayed.size());
  std::size_t next = 0;
  for (std::size_t step = 0; step <= order.size(); ++step) {
    for (; next < delayed.size() && delayed[next].first == step; ++next) {
      result.emplace_back(static_cast<std::size_t>(delayed[next].second));
    }
    if (step < order.size()) result.push_back(order[step]);
  }
  return result;
}

}  // namespace reprise::planner
