#include "planner/chain/stage_sizes.h"

#include <algorithm>
#include <limits>

namespace reprise::planner {
namespace {

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

std::int64_t cost_of(const Structure& s, const schedule::Order& ops) {
  std::int64_t cost = 0;
  for (OpId op : ops) cost += s.problem().ops[op].cost;
  return cost;
}

}  // namespace

StageMeter::StageMeter(const StagedGraph& graph)
    : g_(graph),
      s_(graph.structure()),
      walk_(graph, std::numeric_limits<std::int64_t>::max()),
      last_read_(at(s_.tensors()), -1),
      live_(at(s_.tensors()), false) {
  for (Index c = 1; c < g_.stages(); ++c) {
    everywhere_ = c == 1 ? g_.gradient(c) : std::min(everywhere_, g_.gradient(c));
  }
}

Bytes StageMeter::gradient(Index cut) const {
  return std::max<Bytes>(0, g_.gradient(cut) - everywhere_);
}

// The most that is live of `before` and of what the ops make. What comes from backward stages
// behind this one is part of `before` and goes after its last reader.
template <class Stays>
Bytes StageMeter::peak(const schedule::Order& ops, Bytes before, Index stage, Stays&& stays) {
  for (std::size_t p = 0; p < ops.size(); ++p) {
    const schedule::Op& op = s_.problem().ops[ops[p]];
    for (TensorId t : op.inputs) {
      last_read_[t.index()] = static_cast<Index>(p);
      const Index producer = s_.producer(static_cast<Index>(t.index()));
      live_[t.index()] = producer >= s_.turn() && g_.stage_of(producer) > stage;
    }
    for (TensorId t : op.outputs) last_read_[t.index()] = static_cast<Index>(p);
  }
  Bytes live = before, most = before;
  for (std::size_t p = 0; p < ops.size(); ++p) {
    const schedule::Op& op = s_.problem().ops[ops[p]];
    const auto dies = [&](TensorId t) {
      return live_[t.index()] && last_read_[t.index()] == static_cast<Index>(p) &&
             !stays(static_cast<Index>(t.index()));
    };
    for (const graph::InplacePair& pair : op.inplace) {
      const TensorId from = op.inputs[at(pair.input)], to = op.outputs[at(pair.output)];
      const Bytes bytes = s_.problem().tensors[from].bytes;
      const bool taken = live_[to.index()] || !dies(from) ||
                         (!pair.forced && bytes != s_.problem().tensors[to].bytes);
      if (taken) continue;
      live_[from.index()] = false;
      live_[to.index()] = true;
      live += s_.problem().tensors[to].bytes - bytes;
    }
    for (TensorId t : op.outputs) {
      if (!live_[t.index()]) live += s_.problem().tensors[t].bytes;
      live_[t.index()] = true;
    }
    most = std::max(most, live + op.workspace);
    const auto drop = [&](TensorId t) {
      if (!dies(t)) return;
      live_[t.index()] = false;
      live -= s_.problem().tensors[t].bytes;
    };
    for (TensorId t : op.inputs) drop(t);
    for (TensorId t : op.outputs) drop(t);
  }
  for (OpId op : ops) {
    for (TensorId t : s_.problem().ops[op].outputs) live_[t.index()] = false;
  }
  return most;
}

Stage StageMeter::measure(Index i) {
  const auto crosses = [&](Index t) {
    const Index last = s_.last_forward_use(t);
    return g_.feeds_backward(t) && last >= 0 && g_.stage_of(last) > i;
  };
  Stage stage;
  for (Index t : g_.crossing(i + 1)) {
    if (g_.feeds_backward(t)) stage.output += s_.tensor(t).bytes;
  }
  stage.output_gradient = gradient(i + 1);
  walk_.stand_before(i);
  walk_.step({ChainStep::kForwardKeep, static_cast<std::int32_t>(i), 0});
  stage.forward_cost = cost_of(s_, walk_.take());
  schedule::Order first_run;
  for (Index op : g_.forward(i)) first_run.emplace_back(at(op));
  stage.forward_workspace = std::max<Bytes>(0, peak(first_run, 0, i, crosses) - stage.output);
  for (Index k = 0; k < g_.options(); ++k) stage.options.push_back(measure_option(i, k));
  for (StageOption& option : stage.options) option.record += stage.output;
  return stage;
}

// Its record without the stage's output.
StageOption StageMeter::measure_option(Index i, Index k) {
  const auto crosses = [&](Index t) {
    const Index last = s_.last_forward_use(t);
    return g_.feeds_backward(t) && last >= 0 && g_.stage_of(last) > i;
  };
  StageOption option;
  Bytes output = 0;
  for (Index t : g_.crossing(i + 1)) {
    if (g_.feeds_backward(t)) output += s_.tensor(t).bytes;
  }
  for (Index t : g_.made(i)) {
    if (s_.read_after_turn(t) && !crosses(t) && !g_.dropped(k, t)) {
      option.record += s_.tensor(t).bytes;
    }
  }
  const auto stage = static_cast<std::int32_t>(i);
  const auto choice = static_cast<std::int32_t>(k);
  walk_.stand_before(i);
  walk_.step({ChainStep::kForwardAll, stage, choice});
  const schedule::Order forward = walk_.take();
  walk_.step({ChainStep::kBackward, stage, choice});
  const schedule::Order backward = walk_.take();
  option.forward_cost = cost_of(s_, forward);
  option.backward_cost = cost_of(s_, backward);
  const auto recorded = [&](Index t) {
    return crosses(t) || (s_.read_after_turn(t) && !g_.dropped(k, t));
  };
  option.forward_workspace =
      std::max<Bytes>(0, peak(forward, 0, i, recorded) - option.record - output);
  const auto goes_on = [&](Index t) {
    if (s_.producer(t) < s_.turn()) return false;
    return s_.tensor(t).kind == schedule::TensorKind::kOutput ||
           (!s_.readers(t).empty() && g_.stage_of(s_.readers(t).back()) < i);
  };
  const Bytes behind = g_.gradient(i + 1);
  option.backward_workspace =
      std::max<Bytes>(0, peak(backward, behind, i, goes_on) - behind - gradient(i));
  return option;
}

ChainProblem StageMeter::chain() {
  ChainProblem problem;
  problem.input_gradient = gradient(0);
  for (Index i = 0; i < g_.stages(); ++i) {
    Stage stage = measure(i);
    const std::int64_t again = std::max(stage.forward_cost, stage.options.front().forward_cost);
    stage.forward_cost = again;
    for (StageOption& option : stage.options) option.forward_cost = again;
    problem.stages.push_back(std::move(stage));
  }
  return problem;
}

}  // namespace reprise::planner
