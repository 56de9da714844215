#include "planner/chain/stages.h"

#include <algorithm>

#include "base/error.h"
#include "planner/delay.h"

namespace reprise::planner {
namespace {

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

Index index(TensorId t) {
  return static_cast<Index>(t.index());
}

}  // namespace

StagedGraph::StagedGraph(const Structure& structure, std::vector<Index> cuts,
                         std::vector<std::vector<bool>> dropped)
    : s_(structure), cuts_(std::move(cuts)), dropped_(std::move(dropped)) {
  const Index length = stages();
  forward_.resize(at(length));
  backward_.resize(at(length));
  made_.resize(at(length));
  crossing_.resize(at(length) + 1);
  gradient_.assign(at(length) + 1, 0);
  stage_of_op_.assign(at(s_.ops()), 0);
  Index stage = -1;
  for (Index i = 0; i < s_.turn(); ++i) {
    if (stage + 1 < length && cuts_[at(stage + 1)] == i) ++stage;
    stage_of_op_[at(i)] = stage;
    if (s_.required(i) && !s_.delayable(i)) forward_[at(stage)].push_back(i);
  }
  stage = 0;
  for (Index i = s_.ops() - 1; i >= s_.turn(); --i) {
    for (TensorId t : s_.op(i).inputs) {
      const Index producer = s_.producer(index(t));
      if (producer >= 0 && producer < s_.turn()) {
        stage = std::max(stage, stage_of_op_[at(producer)]);
      }
    }
    stage_of_op_[at(i)] = stage;
  }
  for (Index i = s_.turn(); i < s_.ops(); ++i) {
    if (s_.required(i) && !s_.delayable(i)) backward_[at(stage_of_op_[at(i)])].push_back(i);
  }
  for (Index t = 0; t < s_.tensors(); ++t) {
    const Index producer = s_.producer(t);
    if (producer < 0) continue;
    const Index from = stage_of_op_[at(producer)];
    if (producer >= s_.turn()) {
      const Index to = s_.readers(t).empty() ? from : stage_of_op_[at(s_.readers(t).back())];
      for (Index c = to + 1; c <= from; ++c) gradient_[at(c)] += s_.tensor(t).bytes;
      continue;
    }
    if (!s_.droppable(t)) continue;
    made_[at(from)].push_back(t);
    const Index last = s_.last_forward_use(t);
    const Index to = last < 0 ? from : stage_of_op_[at(last)];
    for (Index c = from + 1; c <= to; ++c) crossing_[at(c)].push_back(t);
  }
}

// The most that is live while these ops run in turn, of what they make: what one of them makes
// lives until the last of them that reads it.
Bytes StagedGraph::transient(const std::vector<Index>& ops) const {
  Bytes live = 0, peak = 0;
  std::vector<std::pair<Index, Bytes>> ends;
  for (Index i : ops) {
    Bytes made = 0;
    for (TensorId t : s_.op(i).outputs) made += s_.problem().tensors[t].bytes;
    live += made;
    peak = std::max(peak, live + s_.op(i).workspace);
    for (TensorId t : s_.op(i).outputs) {
      Index last = i;
      for (Index r : s_.readers(index(t))) {
        if (r > last && r <= ops.back()) last = r;
      }
      ends.emplace_back(last, s_.problem().tensors[t].bytes);
    }
    std::erase_if(ends, [&](const auto& e) {
      if (e.first > i) return false;
      live -= e.second;
      return true;
    });
  }
  return peak;
}

Stage StagedGraph::measure(Index i) const {
  Stage stage;
  std::vector<bool> crosses(at(s_.tensors()), false);
  for (Index t : crossing_[at(i + 1)]) {
    stage.output += s_.tensor(t).bytes;
    crosses[at(t)] = true;
  }
  stage.output_gradient = gradient_[at(i + 1)];
  for (Index op : forward_[at(i)]) stage.forward_cost += s_.op(op).cost;
  std::int64_t backward_cost = 0;
  for (Index op : backward_[at(i)]) backward_cost += s_.op(op).cost;
  const Bytes forward_peak = transient(forward_[at(i)]),
              backward_peak = transient(backward_[at(i)]);
  stage.forward_workspace = std::max<Bytes>(0, forward_peak - stage.output);
  for (const std::vector<bool>& dropped : dropped_) {
    StageOption option;
    option.record = stage.output;
    Bytes again = 0;
    option.forward_cost = stage.forward_cost;
    option.backward_cost = backward_cost;
    for (Index t : made_[at(i)]) {
      if (!s_.read_after_turn(t) || crosses[at(t)]) continue;
      if (dropped[at(t)]) {
        again += s_.tensor(t).bytes;
        option.backward_cost += s_.op(s_.producer(t)).cost;
      } else {
        option.record += s_.tensor(t).bytes;
      }
    }
    option.forward_workspace = std::max<Bytes>(0, forward_peak - option.record);
    option.backward_workspace = std::max<Bytes>(0, backward_peak - gradient_[at(i)]) + again;
    stage.options.push_back(option);
  }
  return stage;
}

ChainProblem StagedGraph::chain() const {
  ChainProblem problem;
  problem.input_gradient = gradient_[0];
  for (Index i = 0; i < stages(); ++i) problem.stages.push_back(measure(i));
  return problem;
}

// What is there is known by tensor; what stays follows from the cuts and records that are held.
class StagedGraph::Walk {
 public:
  Walk(const StagedGraph& graph, std::int64_t most_steps)
      : g_(graph),
        s_(graph.s_),
        most_steps_(most_steps),
        present_(at(s_.tensors()), false),
        needed_(at(s_.tensors()), false),
        ran_(at(s_.ops()), false),
        cut_held_(at(g_.stages()) + 1, false),
        record_(at(g_.stages()), -1) {
    for (Index t = 0; t < s_.tensors(); ++t) present_[at(t)] = s_.producer(t) < 0;
    cut_held_[0] = true;
  }

  void step(ChainInstruction in) {
    if (too_long_) return;
    const Index i = in.stage;
    switch (in.step) {
      case ChainStep::kForwardAll:
        record_[at(i)] = in.option;
        return run(g_.forward_[at(i)], i);
      case ChainStep::kForwardKeep:
      case ChainStep::kForwardDrop:
        cut_held_[at(i) + 1] = true;
        if (in.step == ChainStep::kForwardDrop) cut_held_[at(i)] = false;
        return run(g_.forward_[at(i)], i);
      case ChainStep::kLoss:
        cut_held_.back() = false;
        return;
      case ChainStep::kBackward:
        for (Index op : g_.backward_[at(i)]) {
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

  schedule::Order finish() { return too_long_ ? schedule::Order{} : insert_delayed(s_, order_); }

 private:
  // Again only what leads to something that is kept now.
  void run(const std::vector<Index>& ops, Index stage) {
    std::vector<Index> wanted;
    for (auto op = ops.rbegin(); op != ops.rend(); ++op) {
      const auto& outputs = s_.op(*op).outputs;
      const bool want =
          !ran_[at(*op)] || std::any_of(outputs.begin(), outputs.end(), [&](TensorId t) {
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

  bool keep(Index t) const {
    const Index from = g_.stage_of_op_[at(s_.producer(t))];
    const Index last = s_.last_forward_use(t);
    const Index to = last < 0 ? from : g_.stage_of_op_[at(last)];
    for (Index c = from + 1; c <= to; ++c) {
      if (cut_held_[at(c)] || record_[at(c) - 1] >= 0) return true;
    }
    const std::int32_t option = record_[at(from)];
    return option >= 0 && s_.read_after_turn(t) && !g_.dropped_[at(option)][at(t)];
  }

  void drop(const std::vector<Index>& tensors) {
    for (Index t : tensors) {
      if (present_[at(t)] && !keep(t)) present_[at(t)] = false;
    }
  }
  void drop_from(Index stage) {
    drop(g_.made_[at(stage)]);
    drop(g_.crossing_[at(stage)]);
    drop(g_.crossing_[at(stage) + 1]);
    drop(demanded_);
    demanded_.clear();
  }

  void emit(Index i) {
    order_.emplace_back(at(i));
    for (const graph::InplacePair& pair : s_.op(i).inplace) {
      if (pair.forced) present_[s_.op(i).inputs[at(pair.input)].index()] = false;
    }
    for (TensorId t : s_.op(i).outputs) present_[t.index()] = true;
  }

  Index missing_producer(Index i) const {
    Index first = s_.ops();
    for (TensorId t : s_.op(i).inputs) {
      if (!present_[t.index()]) first = std::min(first, s_.producer(index(t)));
    }
    return first;
  }

  // An op that may run once runs once; one whose outputs are there is not needed.
  bool run_op(Index top) {
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

  const StagedGraph& g_;
  const Structure& s_;
  const std::int64_t most_steps_;
  bool too_long_ = false;
  std::vector<bool> present_, needed_, ran_, cut_held_;
  std::vector<std::int32_t> record_;  // option of each stage's record, -1 for none
  std::vector<Index> waiting_, demanded_;
  schedule::Order order_;
};

schedule::Order StagedGraph::order(const ChainProgram& program, std::int64_t most_steps) const {
  Walk walk(*this, most_steps);
  program.for_each([&](ChainInstruction in) { walk.step(in); });
  return walk.finish();
}

}  // namespace reprise::planner
