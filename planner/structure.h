#pragma once

// What planning needs to know of a problem beyond its tables: who makes and reads what, where the
// forward part ends, and what may be made again. O(ops + arities) to build.

#include <cstdint>
#include <span>
#include <vector>

#include "planner/strategy.h"
#include "schedule/problem.h"

namespace reprise::planner {

using base::Bytes;
using schedule::OpId;
using schedule::Problem;
using schedule::TensorId;

// Index of an op in program order, or of a tensor; -1 for none.
using Index = std::int32_t;

// Per op: must it run in every order? It may run only once, makes an output, or feeds such an op.
// In a fixed order every op must.
[[nodiscard]] std::vector<bool> required_ops(const Problem& problem,
                                             OrderFreedom freedom = OrderFreedom::kFree);
// The required ops in program order, each once.
[[nodiscard]] schedule::Order program_order(const Problem& problem,
                                            OrderFreedom freedom = OrderFreedom::kFree);
// Does every op run, and do first runs come in program order?
[[nodiscard]] bool is_fixed_order(const Problem& problem, const schedule::Order& order);

class Structure {
 public:
  // `problem` must outlive it.
  explicit Structure(const Problem& problem, OrderFreedom freedom = OrderFreedom::kFree);

  [[nodiscard]] const Problem& problem() const { return *problem_; }
  [[nodiscard]] OrderFreedom freedom() const { return freedom_; }
  [[nodiscard]] Index ops() const { return static_cast<Index>(problem_->ops.size()); }
  [[nodiscard]] Index tensors() const { return static_cast<Index>(problem_->tensors.size()); }
  [[nodiscard]] const schedule::Op& op(Index i) const {
    return problem_->ops[OpId(static_cast<std::size_t>(i))];
  }
  [[nodiscard]] const schedule::Tensor& tensor(Index i) const {
    return problem_->tensors[TensorId(static_cast<std::size_t>(i))];
  }

  [[nodiscard]] Index producer(Index tensor) const { return producer_[at(tensor)]; }
  // In program order, each op once.
  [[nodiscard]] std::span<const Index> readers(Index tensor) const {
    return std::span(readers_).subspan(first_reader_[at(tensor)],
                                       first_reader_[at(tensor) + 1] - first_reader_[at(tensor)]);
  }
  [[nodiscard]] bool required(Index op) const { return required_[at(op)]; }
  // The op that has a forced in-place pair on the tensor.
  [[nodiscard]] Index destroyer(Index tensor) const { return destroyer_[at(tensor)]; }

  // Ops before it are the forward part: the first op marked as backward; in a problem without marks
  // the op after the one at which the most bytes are live in program order.
  [[nodiscard]] Index turn() const { return turn_; }
  // Last op of the forward part that reads or makes the tensor; -1 for none.
  [[nodiscard]] Index last_forward_use(Index tensor) const { return last_forward_use_[at(tensor)]; }
  [[nodiscard]] bool read_after_turn(Index tensor) const {
    return !readers(tensor).empty() && readers(tensor).back() >= turn_;
  }

  // An op that destroys versions of tensors, and whose outputs no op reads (the update of a
  // parameter). It may run later than in program order, after all other readers of what it
  // destroys.
  [[nodiscard]] bool delayable(Index op) const { return delayable_[at(op)]; }
  // Running the op again at any later time is possible: it is recomputable, and its inputs are not
  // lost to an op that destroys them, or can be made again in turn.
  [[nodiscard]] bool rerunnable(Index op) const { return rerunnable_[at(op)]; }
  // A kTemp tensor of a rerunnable op.
  [[nodiscard]] bool droppable(Index tensor) const;

 private:
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }
  void find_readers();
  void find_turn();
  void find_delayable();
  void find_rerunnable();

  const Problem* problem_;
  OrderFreedom freedom_;
  std::vector<Index> producer_, destroyer_, last_forward_use_;
  std::vector<std::size_t> first_reader_;
  std::vector<Index> readers_;
  std::vector<bool> required_, delayable_, rerunnable_;
  Index turn_ = 0;
};

}  // namespace reprise::planner
