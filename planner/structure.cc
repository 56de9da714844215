#include "planner/structure.h"

#include <algorithm>

#include "schedule/simulate.h"

namespace reprise::planner {

std::vector<bool> required_ops(const Problem& problem, OrderFreedom freedom) {
  if (freedom == OrderFreedom::kFixed) return std::vector<bool>(problem.ops.size(), true);
  std::vector<bool> wanted(problem.tensors.size(), false);
  std::vector<bool> required(problem.ops.size(), false);
  for (std::size_t i = problem.ops.size(); i-- > 0;) {
    const schedule::Op& op = problem.ops[OpId(i)];
    required[i] =
        !op.recomputable || std::any_of(op.outputs.begin(), op.outputs.end(), [&](TensorId t) {
          return wanted[t.index()] || problem.tensors[t].kind == schedule::TensorKind::kOutput;
        });
    if (!required[i]) continue;
    for (TensorId t : op.inputs) wanted[t.index()] = true;
  }
  return required;
}

schedule::Order program_order(const Problem& problem, OrderFreedom freedom) {
  const std::vector<bool> required = required_ops(problem, freedom);
  schedule::Order order;
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    if (required[i]) order.emplace_back(i);
  }
  return order;
}

bool is_fixed_order(const Problem& problem, const schedule::Order& order) {
  std::size_t next = 0;  // the first op that has not run
  for (const OpId op : order) {
    if (op.index() > next) return false;
    if (op.index() == next) ++next;
  }
  return next == problem.ops.size();
}

Structure::Structure(const Problem& problem, OrderFreedom freedom)
    : problem_(&problem), freedom_(freedom), required_(required_ops(problem, freedom)) {
  producer_.assign(problem.tensors.size(), -1);
  destroyer_.assign(problem.tensors.size(), -1);
  for (Index i = 0; i < ops(); ++i) {
    for (TensorId t : op(i).outputs) producer_[t.index()] = i;
    for (const graph::InplacePair& pair : op(i).inplace) {
      if (pair.forced) destroyer_[op(i).inputs[at(pair.input)].index()] = i;
    }
  }
  find_readers();
  find_turn();
  find_delayable();
  find_rerunnable();
}

void Structure::find_readers() {
  const auto for_each_read = [&](auto&& f) {
    std::vector<Index> seen_by(problem_->tensors.size(), -1);
    for (Index i = 0; i < ops(); ++i) {
      for (TensorId t : op(i).inputs) {
        if (!required_[at(i)] || seen_by[t.index()] == i) continue;
        seen_by[t.index()] = i;
        f(t.index(), i);
      }
    }
  };
  first_reader_.assign(problem_->tensors.size() + 1, 0);
  for_each_read([&](std::size_t t, Index) { ++first_reader_[t + 1]; });
  for (std::size_t t = 0; t < problem_->tensors.size(); ++t) {
    first_reader_[t + 1] += first_reader_[t];
  }
  readers_.resize(first_reader_.back());
  std::vector<std::size_t> next(first_reader_.begin(), first_reader_.end() - 1);
  for_each_read([&](std::size_t t, Index i) { readers_[next[t]++] = i; });
}

void Structure::find_turn() {
  turn_ = ops();
  for (Index i = ops() - 1; i >= 0; --i) {
    if (op(i).backward) turn_ = i;
  }
  if (turn_ == ops() && turn_ > 0) {
    const schedule::Order order = program_order(*problem_, freedom_);
    const schedule::TraceResult traced = schedule::trace_order(*problem_, order);
    const auto peak = static_cast<std::size_t>(schedule::profile_memory(traced.trace).peak_step);
    if (peak < order.size()) turn_ = static_cast<Index>(order[peak].index()) + 1;
  }
  last_forward_use_.assign(problem_->tensors.size(), -1);
  for (Index t = 0; t < tensors(); ++t) {
    if (producer(t) < turn_) last_forward_use_[at(t)] = producer(t);
    for (Index reader : readers(t)) {
      if (reader < turn_) last_forward_use_[at(t)] = reader;
    }
  }
}

void Structure::find_delayable() {
  delayable_.assign(problem_->ops.size(), false);
  const auto destroys = [&](Index i, TensorId t) { return destroyer_[t.index()] == i; };
  const auto candidate = [&](Index i) {
    const schedule::Op& o = op(i);
    const auto read = [&](TensorId t) { return !readers(static_cast<Index>(t.index())).empty(); };
    bool any = false;
    for (TensorId t : o.inputs) {
      any = any || destroys(i, t);
      // Its other inputs must not be lost while it waits.
      if (destroyer_[t.index()] >= 0 && !destroys(i, t)) return false;
    }
    return any && std::none_of(o.outputs.begin(), o.outputs.end(), read);
  };
  for (Index i = 0; i < ops(); ++i) delayable_[at(i)] = candidate(i);
}

void Structure::find_rerunnable() {
  rerunnable_.assign(problem_->ops.size(), false);
  const auto recoverable = [&](TensorId t) {
    const Index destroyer = destroyer_[t.index()];
    if (destroyer < 0 || delayable_[at(destroyer)]) return true;
    const Index producer = producer_[t.index()];
    return producer >= 0 && rerunnable_[at(producer)] &&
           problem_->tensors[t].kind == schedule::TensorKind::kTemp;
  };
  for (Index i = 0; i < ops(); ++i) {
    rerunnable_[at(i)] = op(i).recomputable && !delayable_[at(i)] &&
                         std::all_of(op(i).inputs.begin(), op(i).inputs.end(), recoverable);
  }
}

bool Structure::droppable(Index tensor) const {
  return this->tensor(tensor).kind == schedule::TensorKind::kTemp && producer(tensor) >= 0 &&
         rerunnable(producer(tensor));
}

}  // namespace reprise::planner
