#include "planner/chain/bound.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace reprise::planner {
namespace {

__extension__ using Wide = __int128;

struct Item {
  std::int64_t saved = 0;  // by having the record when the loss runs
  Bytes bytes = 0;
};

}  // namespace

std::int64_t chain_lower_bound(const ChainProblem& problem, Bytes budget) {
  std::int64_t cost = problem.loss_cost;
  // x_0 is there all the time, y_L appears.
  Bytes room =
      budget - problem.input - problem.loss_workspace -
      (problem.stages.empty() ? problem.input_gradient : problem.stages.back().output_gradient);
  std::vector<Item> items;
  for (const Stage& stage : problem.stages) {
    std::int64_t forward = stage.forward_cost;
    std::int64_t once = std::numeric_limits<std::int64_t>::max();
    Bytes record = std::numeric_limits<Bytes>::max();
    for (const StageOption& o : stage.options) {
      forward = std::min(forward, o.forward_cost);
      once = std::min(once, o.forward_cost + o.backward_cost);
      record = std::min(record, o.record);
    }
    cost += once;
    if (forward > 0) items.push_back({forward, record});
  }
  std::stable_sort(items.begin(), items.end(), [](const Item& x, const Item& y) {
    return Wide{x.saved} * y.bytes > Wide{y.saved} * x.bytes;
  });
  room = std::max<Bytes>(room, 0);
  for (const Item& item : items) {
    if (item.bytes <= room) {
      room -= item.bytes;
      continue;
    }
    const Wide missing = Wide{item.saved} * (item.bytes - room);
    cost += static_cast<std::int64_t>((missing + item.bytes - 1) / item.bytes);
    room = 0;
  }
  return cost;
}

}  // namespace reprise::planner
