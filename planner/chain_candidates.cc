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
constexpr Index kLeastPeriods = 4, kLeastStages = 3;  // of a uniform one
// Choices of what a stage records.
constexpr std::size_t kRecordsOfChain = 6, kRecordsOfPeriod = 5;
// Levels of memory: an order of a large problem takes long.
constexpr int kLevels = 24, kLevelsOfSmall = 48, kLevelsOfLarge = 12;
constexpr Index kSmallProblem = 3'000, kLargeProblem = 30'000;
constexpr double kSteepCosts[] = {4,    3,    2.5, 2.2,  2,    1.9,  1.8, 1.7,  1.6,  1.55, 1.5,
                                  1.46, 1.43, 1.4, 1.37, 1.34, 1.32, 1.3, 1.28, 1.26, 1.24, 1.22};
constexpr std::int64_t kWorstMultiple = 10;  // of what program order costs
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

// What the views promise. Costs fall with memory.
class Outlook {
 public:
  struct Best {
    const ChainView* view = nullptr;
    std::int64_t cost = std::numeric_limits<std::int64_t>::max();
  };

  explicit Outlook(const Views& views) : views_(views) {
    for (const auto& view : views) {
      low_ = std::min(low_, view->floor());
      high_ = std::max(high_, view->all());
    }
  }

  [[nodiscard]] Best best_within(Bytes memory) const {
    Best best;
    for (const auto& view : views_) {
      const auto cost = view->predict(memory);
      if (cost && *cost < best.cost) best = {view.get(), *cost};
    }
    return best;
  }
  // A share of the way from the least memory of any plan to what keeps everything.
  [[nodiscard]] Bytes between(double share) const {
    return low_ + static_cast<Bytes>(share * static_cast<double>(high_ - low_));
  }
  // The least memory that promises at most this cost; what keeps everything when none does.
  [[nodiscard]] Bytes memory_for(std::int64_t cost) const {
    Bytes low = low_, high = high_;
    while (low < high) {
      const Bytes middle = low + (high - low) / 2;
      if (best_within(middle).cost <= cost) {
        high = middle;
      } else {
        low = middle + 1;
      }
    }
    return low;
  }

 private:
  const Views& views_;
  Bytes low_ = std::numeric_limits<Bytes>::max(), high_ = 0;
};

// Costs to be planned for: those that levels of memory allow, closer together towards the floor,
// and, where costs rise steeply, multiples of what program order costs.
std::vector<std::int64_t> costs_to_plan(const Outlook& outlook, const Structure& s) {
  const int levels = s.ops() <= kSmallProblem   ? kLevelsOfSmall
                     : s.ops() <= kLargeProblem ? kLevels
                                                : kLevelsOfLarge;
  std::int64_t once = 0;
  for (Index i = 0; i < s.ops(); ++i) once += s.required(i) ? s.op(i).cost : 0;
  std::vector<std::int64_t> costs;
  for (const double multiple : kSteepCosts) {
    const Bytes memory =
        outlook.memory_for(static_cast<std::int64_t>(multiple * static_cast<double>(once)));
    costs.push_back(outlook.best_within(memory).cost);
  }
  for (int k = 1; k <= levels; ++k) {
    const double share = std::pow(static_cast<double>(k) / levels, 2);
    costs.push_back(outlook.best_within(outlook.between(share)).cost);
  }
  std::sort(costs.rbegin(), costs.rend());
  costs.erase(std::unique(costs.begin(), costs.end()), costs.end());
  std::erase_if(costs, [&](std::int64_t c) { return c / kWorstMultiple > once; });
  return costs;
}

// For each of these costs the smallest plan that promises it.
void offer_views(const Views& views, const Structure& structure, const std::function<bool()>& stop,
                 Frontier& frontier) {
  if (views.empty()) return;
  const Outlook outlook(views);
  const std::int64_t most_steps = std::int64_t{20} * structure.ops() + 1000;
  for (const std::int64_t cost : costs_to_plan(outlook, structure)) {
    if (stop && stop()) return;
    const Bytes memory = outlook.memory_for(cost);
    const ChainView* view = outlook.best_within(memory).view;
    const auto program = view == nullptr ? std::nullopt : view->plan(memory);
    if (!program) continue;
    schedule::Order order = view->graph().order(*program, most_steps);
    if (!order.empty()) frontier.offer(std::move(order), view->label());
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
  if (limits.size() > kRecordsOfPeriod) limits.resize(kRecordsOfPeriod);
  std::vector<std::vector<bool>> records;
  records.reserve(limits.size());
  for (const double limit : limits) records.push_back(cheaper_than(s, limit));
  return records;
}

}  // namespace

void offer_chains(const Structure& structure, const Request& request, Frontier& frontier) {
  const auto prices = price_list(structure, 0, structure.turn());
  std::vector<double> limits = {-1};
  for (const auto& [value, share] : prices) {
    const double wanted = static_cast<double>(limits.size()) / (kRecordsOfChain - 1);
    if (share >= wanted && value > limits.back()) limits.push_back(value);
  }
  std::vector<std::vector<bool>> dropped;
  dropped.reserve(limits.size());
  for (const double limit : limits) dropped.push_back(cheaper_than(structure, limit));
  Views views;
  std::size_t before = 0;
  for (Index k = 2; k <= std::min(kMostStages, most_segments(structure));
       k += std::max<Index>(1, k * 2 / 5)) {
    std::vector<Index> cuts = cut_evenly(structure, k);
    if (cuts.size() <= before) break;
    before = cuts.size();
    auto graph = std::make_shared<const StagedGraph>(structure, std::move(cuts), dropped);
    auto view = view_as_chain(std::move(graph), request);
    if (!view) break;
    views.push_back(std::move(view));
  }
  offer_views(views, structure, request.stop, frontier);
}

void offer_periods(const Structure& structure, const Request& request, Frontier& frontier) {
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
      if (request.stop && request.stop()) return;
      auto view = view_as_uniform(graph, k, std::max<Index>(k - 1, 0),
                                  fmt::format("rnn({} stages)", graph->stages()));
      if (view) views.push_back(std::move(view));
    }
  }
  offer_views(views, structure, request.stop, frontier);
}

}  // namespace reprise::planner
