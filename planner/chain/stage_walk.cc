#include "planner/chain/stage_walk.h"

#include <algorithm>

#include "base/error.h"
#include "planner/delay.h"

namespace reprise::planner {
namespace {

Index index(TensorId t) {
  return static_cast<Index>(t.index());
}

}  // namespace

StageWalk::StageWalk(const StagedGraph& graph, std::int64_t most_steps)
    : g_(graph),
      s_(graph.structure()),
      most_steps_(most_steps),
      present_(at(s_.tensors()), false),
      needed_(at(s_.tensors()), false),
      ran_(at(s_.ops()), false),
      cut_held_(at(g_.stages()) + 1, false),
      record_(at(g_.stages()), -1) {
  for (Index t = 0; t < s_.tensors(); ++t) present_[at(t)] = s_.producer(t) < 0;
  cut_held_[0] = true;
}

void StageWalk::step(ChainInstruction in) {
  if (too_long_) return;
  const Index i = in.stage;
  switch (in.step) {
    case ChainStep::kForwardAll:
      record_[at(i)] = in.option;
      return run(g_.forward(i), i);
    case ChainStep::kForwardKeep:
    case ChainStep::kForwardDrop:
      cut_held_[at(i) + 1] = true;
      if (in.step == ChainStep::kForwardDrop) cut_held_[at(i)] = false;
      return run(g_.forward(i), i);
    case ChainStep::kLoss:
      cut_held_.back() = false;
      return;
    case ChainStep::kBackward:
      for (Index op : g_.backward(i)) {
        if (!run_op(op)) return;
      }
      record_[at(i)] = -1;
      if (i > 0) cut_held_[at(i)] = false;
      return drop_from(i);
    case ChainStep::kDropInput:
      cut_held_[at(i)] = false;
      return drop_from(i);
    case ChainStep::kDropRecord:
      record_[at(i) - 1] = -1;
      return drop_from(i - 1);
  }
}

schedule::Order StageWalk::finish() {
  return too_long_ ? schedule::Order{} : insert_delayed(s_, order_);
}

void StageWalk::stand_before(Index stage) {
  order_.clear();
  demanded_.clear();
  std::fill(present_.begin(), present_.end(), true);
  std::fill(ran_.begin(), ran_.end(), true);
  std::fill(record_.begin(), record_.end(), -1);
  std::fill(cut_held_.begin(), cut_held_.end(), false);
  cut_held_[at(stage)] = true;
  for (Index t : g_.made(stage)) present_[at(t)] = false;
  for (Index op : g_.backward(stage)) ran_[at(op)] = false;
}

schedule::Order StageWalk::take() {
  return std::exchange(order_, {});
}

// Again only what leads to something that is kept now.
void StageWalk::run(const std::vector<Index>& ops, Index stage) {
  std::vector<Index> wanted;
  for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
    const auto& outputs = s_.op(*op).outputs;
    const bool want = !ran_[at(*op)] || std::any_of(outputs.begin(), outputs.end(), [&](auto t) {
      return !present_[t.index()] &&
             (needed_[t.index()] || (s_.droppable(index(t)) && keep(index(t))));
    });
    if (!want) continue;
    wanted.push_back(*op);
    for (TensorId t : s_.op(*op).inputs) needed_[t.index()] = true;
  }
  for (Index op : wanted) {
    for (TensorId t : s_.op(op).inputs) needed_[t.index()] = false;
  }
  for (auto op = wanted.rbegin(); op != wanted.rend(); ++op) {
    if (!run_op(*op)) return;
  }
  drop_from(stage);
}

bool StageWalk::keep(Index t) const {
  const Index from = g_.stage_of(s_.producer(t));
  const Index last = s_.last_forward_use(t);
  const Index to = last < 0 ? from : g_.stage_of(last);
  // What only the first run of a later op needs is not made again after that.
  if (to > from && (g_.feeds_backward(t) || !ran_[at(last)])) {
    for (Index c = from + 1; c <= to; ++c) {
      if (cut_held_[at(c)] || record_[at(c) - 1] >= 0) return true;
    }
  }
  const std::int32_t option = record_[at(from)];
  return option >= 0 && s_.read_after_turn(t) && !g_.dropped(option, t);
}

void StageWalk::drop(const std::vector<Index>& tensors) {
  for (Index t : tensors) {
    if (present_[at(t)] && !keep(t)) present_[at(t)] = false;
  }
}

void StageWalk::drop_from(Index stage) {
  drop(g_.made(stage));
  drop(g_.crossing(stage));
  drop(g_.crossing(stage + 1));
  drop(demanded_);
  demanded_.clear();
}

void StageWalk::emit(Index i) {
  order_.emplace_back(at(i));
  for (const graph::InplacePair& pair : s_.op(i).inplace) {
    if (pair.forced) present_[s_.op(i).inputs[at(pair.input)].index()] = false;
  }
  for (TensorId t : s_.op(i).outputs) present_[t.index()] = true;
}

Index StageWalk::missing_producer(Index i) const {
  Index first = s_.ops();
  for (TensorId t : s_.op(i).inputs) {
    if (!present_[t.index()]) first = std::min(first, s_.producer(index(t)));
  }
  return first;
}

// An op that may run once runs once; one whose outputs are there is not needed.
bool StageWalk::run_op(Index top) {
  const auto there = [&](TensorId t) { return present_[t.index()]; };
  const auto& outputs = s_.op(top).outputs;
  if (ran_[at(top)] &&
      (!s_.rerunnable(top) || std::all_of(outputs.begin(), outputs.end(), there))) {
    return true;
  }
  waiting_.assign(1, top);
  while (!waiting_.empty()) {
    const Index i = waiting_.back();
    const Index missing = missing_producer(i);
    if (missing < s_.ops()) {
      REPRISE_CHECK(missing >= 0 && (s_.rerunnable(missing) || !ran_[at(missing)]),
                    "op '{}' lacks an input that is lost", s_.op(i).name);
      waiting_.push_back(missing);
      continue;
    }
    if (static_cast<std::int64_t>(order_.size()) >= most_steps_) {
      too_long_ = true;
      return false;
    }
    for (TensorId t : s_.op(i).outputs) {
      if (i != top && s_.droppable(index(t))) demanded_.push_back(index(t));
    }
    emit(i);
    ran_[at(i)] = true;
    waiting_.pop_back();
  }
  return true;
}

}  // namespace reprise::planner
