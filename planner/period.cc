#include "planner/period.h"

#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "planner/blocks_hash.h"
#include "planner/candidates.h"

namespace reprise::planner {
namespace {

constexpr std::size_t kMostPeriods = 24;
constexpr std::size_t kMostRuns = 400;
constexpr Index kNear = 64;  // operands made further back count as far, whatever the distance
// A part that repeats nowhere is cut into pieces of about so many ops.
constexpr Index kLeastPiece = 12, kMostPiece = 36;

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

struct Run {
  Index first = 0, last = 0, period = 0;
  [[nodiscard]] Index length() const { return last - first; }
};

std::uint64_t op_hash(const Structure& s, Index i) {
  const schedule::Op& op = s.op(i);
  SequenceHash hash;
  const auto add_tensor = [&](TensorId t) {
    hash.add(s.problem().tensors[t].bytes);
    hash.add(static_cast<std::int64_t>(s.problem().tensors[t].kind));
    hash.add(s.read_after_turn(static_cast<Index>(t.index())) ? 1 : 0);
  };
  hash.add(op.cost);
  hash.add(op.workspace);
  for (const schedule::Algorithm& other : op.leaner) {
    hash.add(other.cost);
    hash.add(other.workspace);
  }
  hash.add(op.recomputable ? 1 : 0);
  hash.add(static_cast<std::int64_t>(op.inputs.size()));
  for (TensorId t : op.inputs) {
    add_tensor(t);
    const Index producer = s.producer(static_cast<Index>(t.index()));
    hash.add(producer < 0 ? -1 : std::min(i - producer, kNear));
  }
  for (TensorId t : op.outputs) add_tensor(t);
  for (const graph::InplacePair& pair : op.inplace) {
    hash.add(pair.input);
    hash.add(pair.output);
    hash.add(pair.forced ? 1 : 0);
  }
  return hash.value();
}

// Distances at which short sequences of ops come back most often.
std::vector<Index> likely_periods(const std::vector<std::uint64_t>& hashes) {
  const auto n = static_cast<Index>(hashes.size());
  std::unordered_map<Index, Index> count;
  for (const Index length : {1, 4, 16}) {
    std::unordered_map<std::uint64_t, Index> last_seen;
    for (Index i = 0; i + length <= n; ++i) {
      SequenceHash hash;
      for (Index k = 0; k < length; ++k) hash.add(static_cast<std::int64_t>(hashes[at(i + k)]));
      const auto [place, fresh] = last_seen.try_emplace(hash.value(), i);
      if (fresh) continue;
      ++count[i - place->second];
      place->second = i;
    }
  }
  std::vector<std::pair<Index, Index>> by_count;  // negative count, period
  by_count.reserve(count.size());
  for (const auto& [period, times] : count) by_count.emplace_back(-times, period);
  std::sort(by_count.begin(), by_count.end());
  if (by_count.size() > kMostPeriods) by_count.resize(kMostPeriods);
  std::vector<Index> periods;
  periods.reserve(by_count.size());
  for (const auto& [times, period] : by_count) periods.push_back(period);
  return periods;
}

// Where the sequence equals itself a period earlier, for a period at least.
void find_runs(const std::vector<std::uint64_t>& hashes, Index period, std::vector<Run>& runs) {
  const auto n = static_cast<Index>(hashes.size());
  Index begin = period;
  for (Index i = period; i <= n; ++i) {
    if (i < n && hashes[at(i)] == hashes[at(i - period)]) continue;
    if (i - begin >= period) runs.push_back({begin - period, i, period});
    begin = i + 1;
  }
}

// Cuts what other runs have taken off a run: the longest part that is left.
Run outside(const Run& run, const std::vector<Run>& taken) {
  Run best{run.first, run.first, run.period};
  Index from = run.first;
  const auto consider = [&](Index to) {
    if (to - from > best.length()) best = {from, to, run.period};
  };
  for (const Run& other : taken) {  // ascending
    if (other.last <= from || other.first >= run.last) continue;
    consider(other.first);
    from = other.last;
  }
  consider(run.last);
  return best;
}

// The longest first; of those nearly as long the one of the smallest period.
std::vector<Run> choose_runs(std::vector<Run> runs) {
  std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) {
    return std::pair(-a.length(), a.period) < std::pair(-b.length(), b.period);
  });
  if (runs.size() > kMostRuns) runs.resize(kMostRuns);
  std::vector<Run> taken;
  while (true) {
    Index longest = 0;
    std::vector<Run> left;
    for (const Run& run : runs) {
      const Run part = outside(run, taken);
      if (part.length() < 2 * part.period) continue;
      left.push_back(part);
      longest = std::max(longest, part.length());
    }
    if (left.empty()) return taken;
    const Run* best = nullptr;
    for (const Run& run : left) {
      if (run.length() < longest - longest / 10) continue;
      if (best == nullptr || run.period < best->period) best = &run;
    }
    taken.insert(std::upper_bound(taken.begin(), taken.end(), *best,
                                  [](const Run& a, const Run& b) { return a.first < b.first; }),
                 *best);
    runs = std::move(left);
  }
}

// Where in the period the borders between blocks lie: where the fewest bytes cross.
Index narrowest_phase(const Run& run, const std::vector<Bytes>& across) {
  Index best = 0;
  double fewest = -1;
  for (Index phase = 0; phase < run.period; ++phase) {
    double sum = 0;
    Index borders = 0;
    for (Index i = run.first + phase; i <= run.last; i += run.period, ++borders) {
      sum += static_cast<double>(across[at(i)]);
    }
    sum /= std::max<Index>(borders, 1);
    if (fewest < 0 || sum < fewest) {
      fewest = sum;
      best = phase;
    }
  }
  return best;
}

void cut_other(Index first, Index last, const std::vector<Bytes>& across, Index run,
               std::vector<Block>& blocks) {
  while (first < last) {
    Index cut = last;
    if (last - first > kMostPiece) {
      cut = first + kLeastPiece;
      for (Index i = cut; i <= first + kMostPiece; ++i) {
        if (across[at(i)] <= across[at(cut)]) cut = i;
      }
    }
    blocks.push_back({first, cut, run, false});
    first = cut;
  }
}

}  // namespace

std::vector<Block> find_blocks(const Structure& structure) {
  const Index forward = structure.turn();
  std::vector<std::uint64_t> hashes;
  hashes.reserve(static_cast<std::size_t>(forward));
  for (Index i = 0; i < forward; ++i) hashes.push_back(op_hash(structure, i));
  std::vector<Run> runs;
  for (const Index period : likely_periods(hashes)) find_runs(hashes, period, runs);
  const std::vector<Bytes> across = crossing_bytes(structure);
  std::vector<Block> blocks;
  Index done = 0, number = 0;
  for (const Run& run : choose_runs(std::move(runs))) {
    const Index first = run.first + narrowest_phase(run, across);
    cut_other(done, first, across, number++, blocks);
    done = first;
    for (; done + run.period <= run.last; done += run.period) {
      blocks.push_back({done, done + run.period, number, true});
    }
    ++number;
  }
  cut_other(done, forward, across, number, blocks);
  return blocks;
}

}  // namespace reprise::planner
