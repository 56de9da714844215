#include "planner/decision.h"

#include <algorithm>

#include "base/error.h"
#include "planner/delay.h"

namespace reprise::planner {
namespace {

// C(a, b), saturating well above any number of segments.
std::int64_t binomial(std::int64_t a, std::int64_t b) {
  if (b < 0 || b > a) return 0;
  std::int64_t result = 1;
  for (std::int64_t i = 1; i <= b; ++i) {
    result = result * (a - b + i) / i;
    if (result > (std::int64_t{1} << 40)) return std::int64_t{1} << 40;
  }
  return result;
}

class Walk {
 public:
  Walk(const Structure& structure, const Decision& decision, std::int64_t max_steps)
      : s_(structure),
        d_(decision),
        max_steps_(max_steps),
        present_(count(s_.tensors()), false),
        segment_of_op_(count(s_.ops()), 0) {
    for (Index t = 0; t < s_.tensors(); ++t) present_[at(t)] = s_.producer(t) < 0;
    Index segment = -1;
    for (Index i = 0; i < s_.ops(); ++i) {
      const auto next = static_cast<std::size_t>(segment + 1);
      if (next < d_.segments.size() && d_.segments[next] == i) ++segment;
      segment_of_op_[at(i)] = segment;
    }
  }

  std::optional<schedule::Order> run() {
    aim_at(last_segment());
    for (Index i = 0; i < s_.ops(); ++i) {
      if (s_.delayable(i) || !s_.required(i)) continue;
      made_.clear();
      if (!make_inputs(i)) return std::nullopt;
      emit(i);
      if (i < s_.turn()) {
        drop_after_forward(i);
      } else {
        drop_after_backward(i);
      }
    }
    return insert_delayed(s_, order_);
  }

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  static std::size_t count(Index i) { return static_cast<std::size_t>(i); }
  static Index id(TensorId t) { return static_cast<Index>(t.index()); }

  Index last_segment() const { return static_cast<Index>(d_.segments.size()) - 1; }
  Index segment_of(Index tensor) const {
    const Index producer = s_.producer(tensor);
    return producer < 0 ? 0 : segment_of_op_[at(producer)];
  }

  // Does the tensor cross a cut that is held? Cut c lies before segment c.
  bool held(Index tensor) const {
    const Index last_use = s_.last_forward_use(tensor);
    if (last_use < 0) return false;
    const auto cut = std::upper_bound(cuts_.begin(), cuts_.end(), segment_of(tensor));
    return cut != cuts_.end() && *cut <= segment_of_op_[at(last_use)];
  }

  // Chooses the cuts to hold on the way to a segment from the ones that are held.
  void aim_at(Index segment) {
    while (!cuts_.empty() && cuts_.back() > segment) cuts_.pop_back();
    while (true) {
      const Index from = cuts_.empty() ? 0 : cuts_.back();
      const Index free = d_.slots - static_cast<Index>(cuts_.size());
      if (from >= segment || free <= 0) return;
      cuts_.push_back(from + revolve_advance(segment - from + 1, free + 1));
    }
  }

  void emit(Index i) {
    order_.emplace_back(at(i));
    const schedule::Op& op = s_.op(i);
    for (const graph::InplacePair& pair : op.inplace) {
      if (pair.forced) present_[op.inputs[at(pair.input)].index()] = false;
    }
    for (TensorId t : op.outputs) present_[t.index()] = true;
  }

  Index first_missing_producer(Index i) const {
    Index first = s_.ops();
    for (TensorId t : s_.op(i).inputs) {
      if (!present_[t.index()]) first = std::min(first, s_.producer(id(t)));
    }
    return first;
  }

  // Depth-first, on a stack of our own: an op waits below the producers of what it lacks.
  bool make_inputs(Index top) {
    live_segments_.clear();
    if (top >= s_.turn() && first_missing_producer(top) < s_.ops()) {
      for (TensorId t : s_.op(top).inputs) {
        if (!present_[t.index()]) live_segments_.push_back(segment_of(id(t)));
      }
      aim_at(*std::max_element(live_segments_.begin(), live_segments_.end()));
    }
    waiting_.assign(1, top);
    while (true) {
      const Index i = waiting_.back();
      const Index missing = first_missing_producer(i);
      if (missing < s_.ops()) {
        REPRISE_CHECK(missing >= 0 && s_.rerunnable(missing), "op '{}' lacks an input that is lost",
                      s_.op(i).name);
        waiting_.push_back(missing);
        continue;
      }
      if (i == top) return true;
      if (static_cast<std::int64_t>(order_.size()) >= max_steps_) return false;
      for (TensorId t : s_.op(i).outputs) {
        if (!present_[t.index()]) made_.push_back(id(t));
      }
      emit(i);
      waiting_.pop_back();
    }
  }

  void drop_after_forward(Index i) {
    const auto drop = [&](TensorId tensor) {
      const Index t = id(tensor);
      if (s_.last_forward_use(t) > i || !s_.droppable(t) || held(t)) return;
      if (d_.hold[at(t)] == Hold::kSave) return;
      if (segment_of(t) == last_segment() && d_.hold[at(t)] == Hold::kKeep) return;
      present_[at(t)] = false;
    };
    for (TensorId t : s_.op(i).inputs) drop(t);
    for (TensorId t : s_.op(i).outputs) drop(t);
    for (Index t : made_) drop(TensorId(at(t)));
  }

  // After a backward op has run: of what was made for it, what stays for those to come.
  void drop_after_backward(Index i) {
    const std::vector<TensorId>& inputs = s_.op(i).inputs;
    for (Index t : made_) {
      if (!s_.droppable(t) || held(t)) continue;
      const bool direct = std::find(inputs.begin(), inputs.end(), TensorId(at(t))) != inputs.end();
      const Hold hold = d_.hold[at(t)];
      if (hold == Hold::kOnce && direct) continue;
      const bool live = std::find(live_segments_.begin(), live_segments_.end(), segment_of(t)) !=
                        live_segments_.end();
      if (hold == Hold::kKeep && live) continue;
      present_[at(t)] = false;
    }
  }

  const Structure& s_;
  const Decision& d_;
  const std::int64_t max_steps_;
  std::vector<bool> present_;         // per tensor: a copy is there, or counted on to be
  std::vector<Index> segment_of_op_;  // the last segment also for what follows it
  std::vector<Index> cuts_;           // held, ascending
  std::vector<Index> waiting_;
  std::vector<Index> made_;           // tensors made again for the op about to run
  std::vector<Index> live_segments_;  // those of what it lacked
  schedule::Order order_;
};

}  // namespace

Index revolve_advance(Index n, Index m) {
  std::int64_t r = 1;
  while (binomial(m + r, m) < n) ++r;
  const std::int64_t least = std::max<std::int64_t>(1, binomial(m + r - 2, m));
  const std::int64_t advance = std::max(least, n - binomial(m - 1 + r, m - 1));
  return static_cast<Index>(std::min<std::int64_t>(advance, n - 1));
}

Decision keep_everything(const Structure& structure) {
  Decision decision;
  decision.segments = {0};
  for (Index t = 0; t < structure.tensors(); ++t) {
    // What only the forward part reads is not worth its bytes until then.
    decision.hold.push_back(structure.read_after_turn(t) ? Hold::kKeep : Hold::kOnce);
  }
  return decision;
}

std::optional<schedule::Order> make_order(const Structure& structure, const Decision& decision,
                                          std::int64_t max_steps) {
  REPRISE_CHECK(decision.hold.size() == static_cast<std::size_t>(structure.tensors()),
                "a hold for {} of {} tensors", decision.hold.size(), structure.tensors());
  return Walk(structure, decision, max_steps).run();
}

}  // namespace reprise::planner
