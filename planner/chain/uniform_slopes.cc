#include <algorithm>
#include <numeric>

#include "planner/chain/uniform.h"

namespace reprise::planner {
namespace {

// Steps of memory to a checkpoint when sizes have no larger common divisor.
constexpr Bytes kFineness = 64;
// Columns are cut here; they grow evenly from then on.
constexpr std::size_t kMostRuns = 2'000;
constexpr std::size_t kMostColumns = 4'000'000;

}  // namespace

UniformSlopes::UniformSlopes(const UniformChain& chain, Bytes cap) : chain_(chain) {
  base_p_ = chain.b + std::max(chain.g + chain.of, 2 * chain.g + chain.ob);
  base_q_ = chain.b + std::max({chain.of, 2 * chain.g + chain.ob, chain.g + chain.ol});
  const Bytes common = std::max<Bytes>(std::gcd(chain.a, chain.b), 1);
  unit_ = std::max(common, chain.a / kFineness);
  const Bytes columns = std::max<Bytes>((cap - std::min(base_p_, base_q_)) / unit_ + 1, 0);
  const auto most = static_cast<std::size_t>(std::min<Bytes>(columns, kMostColumns));
  for (const bool outer : {false, true}) {
    Columns& table = outer ? q_ : p_;
    while (chain_.a > 0 && table.size() < most) {
      fill(outer);
      const Column last = table.at(table.size() - 1);
      if (last.last() <= 2 && last.reach.back() >= chain_.steps) break;
    }
  }
}

// A_r at `steps` above the base, less what is held. Rounded so that it is never too small.
std::int64_t UniformSlopes::reach_from(bool outer, std::int64_t r, Bytes steps, Bytes held) const {
  const Columns& table = outer ? q_ : p_;
  const Bytes index = steps - held / unit_;
  if (index >= 0) return reach_in(table.at(static_cast<std::size_t>(index)), r);
  return outer ? reach(true, r, (steps + 1) * unit_ - 1 + base_q_ - held) : 0;
}

// One more column.
void UniformSlopes::fill(bool outer) {
  Columns& table = outer ? q_ : p_;
  const auto k = static_cast<Bytes>(table.size());
  std::vector<std::int64_t> reaches{0}, sums{0};
  for (std::int64_t r = 1; reaches.size() <= kMostRuns; ++r) {
    const std::int64_t fewer =
        outer ? reach(false, r - 1, (k + 1) * unit_ - 1 + base_q_) : reaches.back();
    const std::int64_t most =
        std::max(1 + reach_from(outer, r, k, chain_.b), reach_from(outer, r, k, chain_.a) + fewer);
    reaches.push_back(std::min(most, chain_.steps));
    sums.push_back(sums.back() + reaches.back());
    if (reaches.back() >= chain_.steps) break;
    // With room for no checkpoint, more runs do not help.
    if (!outer && k < chain_.a / unit_ && r > 1) break;
  }
  table.reach.insert(table.reach.end(), reaches.begin(), reaches.end());
  table.sum.insert(table.sum.end(), sums.begin(), sums.end());
  table.begin.push_back(table.reach.size());
}

std::optional<UniformSlopes::Column> UniformSlopes::column(bool outer, Bytes memory) const {
  const Columns& table = outer ? q_ : p_;
  if (memory < base(outer)) return std::nullopt;
  const auto k = static_cast<std::size_t>((memory - base(outer)) / unit_);
  if (k >= table.size()) return std::nullopt;
  return table.at(k);
}

std::int64_t UniformSlopes::reach_in(const Column& c, std::int64_t r) const {
  if (r <= c.last()) return c.reach[static_cast<std::size_t>(r)];
  return std::min(c.reach.back() + (r - c.last()) * c.growth(), chain_.steps);
}

std::int64_t UniformSlopes::recorded(bool outer, Bytes memory) const {
  if (memory < base(outer)) return 0;
  if (chain_.b == 0) return chain_.steps;
  return std::min((memory - base(outer)) / chain_.b + 1, chain_.steps);
}

std::int64_t UniformSlopes::reach(bool outer, std::int64_t r, Bytes memory) const {
  if (r <= 0) return 0;
  // Where no record fits next to the loss, Q is P but for the first run, which records nothing.
  if (memory < base(outer)) return outer && r > 1 ? reach(false, r, memory) : 0;
  if (r == 1) return recorded(outer, memory);
  if (const auto c = column(outer, memory)) return reach_in(*c, r);
  return chain_.steps;  // beyond the table two runs span the chain, or checkpoints take no bytes
}

std::int64_t UniformSlopes::runs_needed(bool outer, std::int64_t n, Bytes memory) const {
  if (recorded(outer, memory) >= n) return 1;
  const auto c = column(outer, memory);
  if (!c && outer && memory < base_q_) {
    return std::max<std::int64_t>(runs_needed(false, n, memory), 2);
  }
  if (!c) return 2;
  const auto found = std::lower_bound(c->reach.begin(), c->reach.end(), n);
  if (found != c->reach.end()) return std::max<std::int64_t>(found - c->reach.begin(), 2);
  const std::int64_t growth = std::max<std::int64_t>(c->growth(), 1);
  return c->last() + (n - c->reach.back() + growth - 1) / growth;
}

Bytes UniformSlopes::floor(bool outer, std::int64_t n) const {
  const UniformChain& c = chain_;
  const Bytes loss = c.g + c.ol;
  if (!outer) return n == 1 ? base_p_ : c.a + base_p_;
  if (n == 0) return loss;
  const Bytes one = std::min(base_q_, std::max(c.a + loss, base_p_));
  if (n == 1) return one;
  const Bytes all = c.a + std::max(loss, base_p_);
  return n == 2 ? std::min(all, std::max(c.a + one, base_p_))
                : c.a + std::max(base_p_, std::min(loss, one));
}

std::optional<std::int64_t> UniformSlopes::bound(bool outer, std::int64_t n, Bytes memory,
                                                 bool guess) const {
  if (memory < floor(outer, n)) return std::nullopt;
  if (n == 0) return chain_.ul;
  std::int64_t again = n - std::min(n, recorded(outer, memory));  // sum of n - A_r where positive
  if (const auto c = column(outer, memory)) {
    const std::int64_t runs = runs_needed(outer, n, memory);
    const std::int64_t within = std::min(runs - 1, c->last());
    if (within > 0) again = within * n - c->sum[static_cast<std::size_t>(within)];
    if (within >= 1) again += c->reach[1] - std::min(n, recorded(outer, memory));
    const std::int64_t left = runs - 1 - within;
    if (guess && left > 0) {
      again += left * (n - c->reach.back()) - c->growth() * (left * (left + 1) / 2);
    }
  } else if (outer && memory < base_q_) {
    const auto inner = bound(false, n, memory, guess);
    if (inner && chain_.uf > 0) {
      again = std::max(again, (*inner - chain_.ub * n) / chain_.uf - n);
    }
  }
  return chain_.uf * (n + again) + chain_.ub * n + (outer ? chain_.ul : 0);
}

}  // namespace reprise::planner
