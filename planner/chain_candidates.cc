#include "planner/chain_candidates.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "fmt/format.h"

#include "planner/candidates.h"
#include "planner/chain_view.h"
#include "planner/period.h"

namespace reprise::planner {
namespace {

constexpr Index kMostStages = 64;                     // of a chain whose stages differ
constexpr Index kLeastPeriods = 8, kLeastStages = 3;  // of a uniform one
constexpr std::size_t kMostRecords = 5;               // choices of what a uniform stage records
// Levels of memory.
constexpr int kLevels = 24, kLevelsOfSmall = 48;
constexpr Index kSmallProblem = 3'000;
constexpr double kNever = std::numeric_limits<double>::infinity();

using Views = std::vector<std::unique_ptr<ChainView>>;

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

// What a forward op makes for the backward part, and may make again.
Bytes recorded_bytes(const Structure& s, Index op) {
  Bytes bytes = 0;
  for (TensorId t : s.op(op).outputs) {
    const auto index = static_cast<Index>(t.index());
    if (s.droppable(index) && s.read_after_turn(index)) bytes += s.tensor(index).bytes;
  }
  return bytes;
}

// Cost for each byte of it; never for ops that make nothing of it.
double price(const Structure& s, Index op) {
  const Bytes bytes = recorded_bytes(s, op);
  return bytes == 0 ? kNever : static_cast<double>(s.op(op).cost) / static_cast<double>(bytes);
}

// What ops up to this price make is not recorded.
std::vector<bool> cheaper_than(const Structure& s, double limit) {
  std::vector<bool> dropped(at(s.tensors()), false);
  for (Index i = 0; i < s.turn(); ++i) {
    if (price(s, i) > limit) continue;
    for (TensorId t : s.op(i).outputs) dropped[t.index()] = true;
  }
  return dropped;
}

// Prices of ops [first, last), rising, with the share of bytes that ops up to each price make.
std::vector<std::pair<double, double>> price_list(const Structure& s, Index first, Index last) {
  std::vector<std::pair<double, double>> list;
  double total = 0;
  for (Index i = first; i < last; ++i) {
    const Bytes bytes = recorded_bytes(s, i);
    if (bytes == 0) continue;
    list.emplace_back(price(s, i), static_cast<double>(bytes));
    total += static_cast<double>(bytes);
  }
  std::sort(list.begin(), list.end());
  double sum = 0;
  for (auto& [value, share] : list) share = (sum += share) / total;
  return list;
}

// Plans of the view that promises most, level by level; closer together towards the floor.
void offer_views(const Views& views, const Structure& structure, const std::function<bool()>& stop,
                 Frontier& frontier) {
  if (views.empty()) return;
  Bytes low = std::numeric_limits<Bytes>::max(), high = 0;
  for (const auto& view : views) {
    low = std::min(low, view->floor());
    high = std::max(high, view->all());
  }
  const std::int64_t most_steps = std::int64_t{20} * structure.ops() + 1000;
  std::pair<const ChainView*, std::int64_t> last{nullptr, 0};
  const int levels = structure.ops() <= kSmallProblem ? kLevelsOfSmall : kLevels;
  for (int k = 0; k <= levels; ++k) {
    const double share = std::pow(static_cast<double>(k) / levels, 2);
    const Bytes memory = low + static_cast<Bytes>(share * static_cast<double>(high - low));
    const ChainView* best = nullptr;
    std::int64_t least = 0;
    for (const auto& view : views) {
      const auto cost = view->predict(memory);
      if (!cost || (best != nullptr && *cost >= least)) continue;
      best = view.get();
      least = *cost;
    }
    if (best == nullptr || last == std::pair(best, least)) continue;
    last = {best, least};
    if (stop && stop()) return;
    const auto program = best->plan(memory);
    if (!program) continue;
    schedule::Order order = best->graph().order(*program, most_steps);
    if (!order.empty()) frontier.offer(std::move(order), best->label());
  }
}

// Where periods start, from the longest run of equal blocks to both ends of the forward part;
// nothing unless the run is most of it.
std::vector<Index> find_periods(const Structure& s) {
  const std::vector<Block> blocks = find_blocks(s);
  std::size_t best = 0, most = 0;
  for (std::size_t k = 0, first = 0; k < blocks.size(); ++k) {
    if (blocks[k].run != blocks[first].run) first = k;
    if (!blocks[k].repeated || k + 1 - first <= most) continue;
    best = first;
    most = k + 1 - first;
  }
  if (most < 2) return {};
  const Index period = blocks[best + 1].first - blocks[best].first;
  if (static_cast<Index>(most) * period * 4 < s.turn() * 3) return {};
  std::vector<Index> starts = {0};
  Index i = blocks[best].first;
  while (i - period >= period / 2) i -= period;
  for (; i + period / 2 < s.turn(); i += period) {
    if (i > 0) starts.push_back(i);
  }
  return starts;
}

std::vector<std::vector<bool>> uniform_records(const Structure& s, Index first, Index last) {
  std::vector<double> limits = {-1};
  for (const auto& [value, share] : price_list(s, first, last)) {
    if (value > limits.back() && share < 1) limits.push_back(value);
  }
  if (limits.size() > kMostRecords) limits.resize(kMostRecords);
  std::vector<std::vector<bool>> records;
  for (const double limit : limits) records.push_back(cheaper_than(s, limit));
  return records;
}

}  // namespace

void offer_chains(const Structure& structure, const std::function<bool()>& stop,
                  Frontier& frontier) {
  const auto prices = price_list(structure, 0, structure.turn());
  std::vector<std::vector<bool>> dropped = {cheaper_than(structure, -1)};
  for (const double wanted : {0.4, 0.7, 1.0}) {
    for (const auto& [value, share] : prices) {
      if (share < wanted) continue;
      dropped.push_back(cheaper_than(structure, value));
      break;
    }
  }
  Views views;
  std::size_t before = 0;
  for (Index k = 2; k <= std::min(kMostStages, most_segments(structure)); k *= 2) {
    std::vector<Index> cuts = cut_evenly(structure, k);
    if (cuts.size() <= before) break;
    before = cuts.size();
    auto graph = std::make_shared<const StagedGraph>(structure, std::move(cuts), dropped);
    auto view = view_as_chain(std::move(graph), stop);
    if (!view) break;
    views.push_back(std::move(view));
  }
  offer_views(views, structure, stop, frontier);
}

void offer_periods(const Structure& structure, const std::function<bool()>& stop,
                   Frontier& frontier) {
  const std::vector<Index> starts = find_periods(structure);
  const auto periods = static_cast<Index>(starts.size());
  if (periods < kLeastPeriods) return;
  const Index middle = periods / 2;
  const auto records = uniform_records(structure, starts[at(middle)], starts[at(middle) + 1]);
  // Longer stages lose little and have fewer cuts.
  const Index step = structure.ops() <= kSmallProblem ? 2 : 4;
  Views views;
  for (Index length = 1; periods / length >= kLeastStages; length *= step) {
    std::vector<Index> cuts = {0};
    for (Index p = length; p < periods; p += length) cuts.push_back(starts[at(p)]);
    const auto graph = std::make_shared<const StagedGraph>(structure, std::move(cuts), records);
    for (Index k = 0; k < graph->options(); ++k) {
      if (stop && stop()) return;
      auto view = view_as_uniform(graph, k, std::max<Index>(k - 1, 0),
                                  fmt::format("rnn({} stages)", graph->stages()));
      if (view) views.push_back(std::move(view));
    }
  }
  offer_views(views, structure, stop, frontier);
}

}  // namespace reprise::planner
