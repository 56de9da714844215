#include "planner/chain/stages.h"

#include <algorithm>

#include "planner/chain/stage_walk.h"

namespace reprise::planner {
namespace {

Index index(TensorId t) {
  return static_cast<Index>(t.index());
}

}  // namespace

StagedGraph::StagedGraph(const Structure& structure, std::vector<Index> cuts,
                         std::vector<std::vector<bool>> dropped)
    : s_(&structure), cuts_(std::move(cuts)), dropped_(std::move(dropped)) {
  assign_ops();
  place_tensors();
  find_feeds();
}

void StagedGraph::assign_ops() {
  forward_.resize(cuts_.size());
  backward_.resize(cuts_.size());
  stage_of_op_.assign(at(s_->ops()), 0);
  Index stage = -1;
  for (Index i = 0; i < s_->turn(); ++i) {
    if (stage + 1 < stages() && cuts_[at(stage + 1)] == i) ++stage;
    stage_of_op_[at(i)] = stage;
    if (s_->required(i) && !s_->delayable(i)) forward_[at(stage)].push_back(i);
  }
  // What may be delayed says nothing about where the backward part is: a carried state is stored at
  // the end, from what the last stage made.
  stage = 0;
  for (Index i = s_->ops() - 1; i >= s_->turn(); --i) {
    if (!s_->delayable(i)) stage = std::max(stage, last_stage_read(i));
    stage_of_op_[at(i)] = stage;
  }
  // An update runs as soon as its gradient is there.
  for (Index i = s_->turn(); i < s_->ops(); ++i) {
    if (!s_->delayable(i)) continue;
    for (TensorId t : s_->op(i).inputs) {
      const Index producer = s_->producer(index(t));
      if (producer >= s_->turn()) {
        stage_of_op_[at(i)] = std::max(stage_of_op_[at(i)], stage_of_op_[at(producer)]);
      }
    }
  }
  for (Index i = s_->turn(); i < s_->ops(); ++i) {
    if (s_->required(i) && !s_->delayable(i)) backward_[at(stage_of_op_[at(i)])].push_back(i);
  }
}

// Of the forward part; 0 when it reads nothing of it.
Index StagedGraph::last_stage_read(Index op) const {
  Index stage = 0;
  for (TensorId t : s_->op(op).inputs) {
    const Index producer = s_->producer(index(t));
    if (producer >= 0 && producer < s_->turn()) {
      stage = std::max(stage, stage_of_op_[at(producer)]);
    }
  }
  return stage;
}

void StagedGraph::place_tensors() {
  made_.resize(cuts_.size());
  crossing_.resize(cuts_.size() + 1);
  gradient_.assign(cuts_.size() + 1, 0);
  for (Index t = 0; t < s_->tensors(); ++t) {
    const Index producer = s_->producer(t);
    if (producer < 0) continue;
    const Index from = stage_of_op_[at(producer)];
    if (producer >= s_->turn()) {
      const Index to = s_->readers(t).empty() ? from : stage_of_op_[at(s_->readers(t).back())];
      for (Index c = to + 1; c <= from; ++c) gradient_[at(c)] += s_->tensor(t).bytes;
      continue;
    }
    if (!s_->droppable(t)) continue;
    made_[at(from)].push_back(t);
    const Index last = s_->last_forward_use(t);
    const Index to = last < 0 ? from : stage_of_op_[at(last)];
    for (Index c = from + 1; c <= to; ++c) crossing_[at(c)].push_back(t);
  }
}

void StagedGraph::find_feeds() {
  feeds_backward_.assign(at(s_->tensors()), false);
  for (Index t = 0; t < s_->tensors(); ++t) feeds_backward_[at(t)] = s_->read_after_turn(t);
  for (Index i = s_->turn() - 1; i >= 0; --i) {
    const auto& outputs = s_->op(i).outputs;
    if (!std::any_of(outputs.begin(), outputs.end(),
                     [&](TensorId t) { return feeds_backward_[t.index()]; })) {
      continue;
    }
    for (TensorId t : s_->op(i).inputs) feeds_backward_[t.index()] = true;
  }
}

schedule::Order StagedGraph::order(const ChainProgram& program, std::int64_t most_steps) const {
  StageWalk walk(*this, most_steps);
  program.for_each([&](ChainInstruction in) { walk.step(in); });
  return walk.finish();
}

}  // namespace reprise::planner
