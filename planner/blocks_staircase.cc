#include "planner/blocks_staircase.h"

#include <algorithm>

namespace reprise::planner {
namespace {

constexpr std::size_t kMostOptions = 24;
constexpr Index kSamples = 32;  // of the staircase, to find where it is lowest

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

Staircase::Staircase(const Structure& structure, const std::vector<Block>& blocks, Index group)
    : structure_(structure) {
  for (std::size_t k = 0; k < blocks.size();) {
    std::size_t end = k;
    while (end < blocks.size() && blocks[end].run == blocks[k].run) ++end;
    // The group that is not full comes first.
    std::size_t size = (end - k) % at(group);
    if (size == 0) size = at(group);
    for (; k < end; k += size, size = at(group)) {
      add_part(blocks[k].first, blocks[k + size - 1].last);
    }
  }
  order_steps();
  find_smallest();
}

void Staircase::add_part(Index first, Index last) {
  const BlockModel model = make_block_model(structure_, first, last);
  const auto known = std::find(hashes_.begin(), hashes_.end(), model.hash);
  const auto kind = static_cast<std::size_t>(known - hashes_.begin());
  if (known == hashes_.end()) {
    hashes_.push_back(model.hash);
    kinds_.push_back(hull_of_options(model, kMostOptions));
  }
  parts_.push_back({first, last, kind});
}

const BlockOption& Staircase::option(Index part, Index index) const {
  return kinds_[parts_[at(part)].kind][at(index)];
}

void Staircase::order_steps() {
  for (Index part = 0; part < blocks(); ++part) {
    const std::vector<BlockOption>& options = kinds_[parts_[at(part)].kind];
    double dearest = 0;  // rounding must not change the order within a block
    for (std::size_t k = 1; k < options.size(); ++k) {
      const auto cost = static_cast<double>(options[k].extra - options[k - 1].extra);
      const auto bytes = static_cast<double>(options[k - 1].kept - options[k].kept);
      dearest = std::max(dearest, cost / bytes);
      steps_.push_back({dearest, part, static_cast<Index>(k)});
    }
  }
  std::stable_sort(steps_.begin(), steps_.end(),
                   [](const Step& a, const Step& b) { return a.price < b.price; });
  extra_ = {0};
  for (const Step& step : steps_) {
    extra_.push_back(extra_.back() + option(step.part, step.option).extra -
                     option(step.part, step.option - 1).extra);
  }
}

std::vector<Index> Staircase::options_after(Index steps) const {
  std::vector<Index> chosen(parts_.size(), 0);
  for (Index k = 0; k < steps; ++k) chosen[at(steps_[at(k)].part)] = steps_[at(k)].option;
  return chosen;
}

Bytes Staircase::activations(Index steps) const {
  const std::vector<Index> chosen = options_after(steps);
  Bytes kept = 0, most = 0;
  for (Index part = 0; part < blocks(); ++part) {
    const BlockOption& o = option(part, chosen[at(part)]);
    kept += o.kept;
    most = std::max(most, kept + o.made_again);
  }
  return most;
}

void Staircase::find_smallest() {
  Bytes fewest = activations(0);
  for (Index k = 1; k <= kSamples; ++k) {
    const auto count = static_cast<Index>(std::int64_t{steps()} * k / kSamples);
    const Bytes bytes = activations(count);
    if (bytes >= fewest) continue;
    fewest = bytes;
    smallest_ = count;
  }
}

Index Staircase::steps_within(Bytes bytes) const {
  if (activations(smallest_) > bytes) return steps() + 1;
  Index low = 0, high = smallest_;
  while (low < high) {
    const Index middle = low + (high - low) / 2;
    if (activations(middle) <= bytes) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

Decision Staircase::decide(Index steps, Index slots) const {
  const std::vector<Index> chosen = options_after(steps);
  Decision decision;
  decision.hold.assign(at(structure_.tensors()), Hold::kKeep);
  for (Index part = 0; part < blocks(); ++part) {
    decision.segments.push_back(parts_[at(part)].first);
    const BlockOption& o = option(part, chosen[at(part)]);
    std::size_t local = 0;
    for (Index i = parts_[at(part)].first; i < parts_[at(part)].last; ++i) {
      for (TensorId t : structure_.op(i).outputs) {
        // Borders are held by the walk.
        const bool crosses =
            structure_.last_forward_use(static_cast<Index>(t.index())) >= parts_[at(part)].last;
        if (o.keep[local++] && !crosses) decision.hold[t.index()] = Hold::kSave;
      }
    }
  }
  if (decision.segments.empty()) decision.segments.push_back(0);
  // All that is left is the backward part: no forward op belongs to the segment that stays.
  if (structure_.turn() > decision.segments.back()) decision.segments.push_back(structure_.turn());
  decision.slots = slots >= blocks() ? static_cast<Index>(decision.segments.size()) : slots;
  return decision;
}

}  // namespace reprise::planner
