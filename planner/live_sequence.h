#pragma once

// An order that can be changed one run at a time, with its peak kept exact: what trace_order and
// profile_memory would say of it, at O(log) a change instead of O(steps).
//
// Runs sit at positions with gaps between them. Each tensor has the sorted list of positions at
// which it is made and used; that gives the stretches over which its copies are live, which lie in
// a tree of sums and maxima. In-place pairs take the shared bytes off at the one position where
// both sides count.

#include <cstdint>
#include <span>
#include <vector>

#include "planner/max_tree.h"
#include "planner/structure.h"

namespace reprise::planner {

class LiveSequence {
 public:
  // Room for `room` runs besides those of the order. `choices`: as in trace_order.
  LiveSequence(const Structure& structure, const schedule::Order& order, std::size_t room,
               const schedule::Choices& choices = {});

  [[nodiscard]] Bytes peak() const { return resident_ + tree_.largest(); }
  [[nodiscard]] std::int64_t cost() const { return cost_; }
  // Is the order an execution? False while something reads what is not there, or works in place on
  // what is read later; in a fixed order also while first runs are missing or out of order.
  [[nodiscard]] bool valid() const { return faults_ == 0; }
  [[nodiscard]] Index peak_position() const { return static_cast<Index>(tree_.where_largest()); }

  [[nodiscard]] Index op_at(Index position) const { return op_at_[at(position)]; }
  [[nodiscard]] std::span<const Index> runs(Index op) const { return runs_[at(op)]; }
  // Ops that run more than once, in no particular order.
  [[nodiscard]] const std::vector<Index>& repeated_ops() const { return repeated_; }
  // A free position between the run at `position` and the one before it; -1 when there is none.
  [[nodiscard]] Index free_before(Index position) const;
  // A free position anywhere strictly between two positions, nearest to `wish`; -1: none.
  [[nodiscard]] Index free_between(Index low, Index high, Index wish) const;
  [[nodiscard]] Index end() const { return static_cast<Index>(op_at_.size()); }

  // The copy that a reader at `position` would see.
  struct CopyView {
    bool exists = false;
    Index made = -1;         // -1: there from the start
    Index last_use = -1;     // before the next copy; -1 for none; end() for what stays
    Index next_use = -1;     // first use after `position`, of this copy; -1 for none
    bool used_here = false;  // a run at `position` itself reads it
  };
  [[nodiscard]] CopyView copy_seen_at(Index tensor, Index position) const;
  // The first reader of the copy made at `position`, end() for none.
  [[nodiscard]] Index first_use_of_made(Index tensor, Index position) const;
  [[nodiscard]] bool has_readers(Index tensor, Index made_position) const {
    return first_use_of_made(tensor, made_position) < end();
  }

  void add(Index op, Index position);  // the position is free
  void remove(Index position);
  // The op's algorithm in all its runs.
  void choose(Index op, std::int32_t choice);
  [[nodiscard]] std::int32_t choice(Index op) const { return choice_[at(op)]; }
  [[nodiscard]] std::int64_t cost_of(Index op) const { return algorithm_[at(op)].cost; }

  [[nodiscard]] schedule::Order order() const;

 private:
  // Positions at which a tensor is made or used, ascending.
  struct Event {
    Index position;
    bool made;
  };
  struct Pair {
    Index input, output;  // tensors
    Bytes bytes;
    bool forced;
  };
  static std::size_t at(Index i) { return static_cast<std::size_t>(i); }

  void find_pairs();
  void add_use(Index tensor, Index position);
  void remove_use(Index tensor, Index position);
  void add_making(Index tensor, Index position);
  void remove_making(Index tensor, Index position);
  void change_use(Index tensor, std::size_t event, int sign);
  void count_copies(Index tensor, std::size_t first, std::size_t last, int sign);
  void settle();
  [[nodiscard]] int count_disorder(Index op) const;
  void charge_pairs(Index position);
  [[nodiscard]] Index last_read_seen_at(Index tensor, Index position) const;
  [[nodiscard]] std::size_t event_at(Index tensor, Index position) const;

  const Structure& s_;
  MaxTree tree_;
  Bytes resident_ = 0;
  std::int64_t cost_ = 0;
  std::int64_t faults_ = 0;
  std::vector<Index> op_at_;              // per position; -1: free
  std::vector<std::vector<Index>> runs_;  // per op, ascending positions
  std::vector<std::int32_t> choice_;      // per op
  std::vector<schedule::Algorithm> algorithm_;
  std::vector<Index> repeated_, repeated_place_;
  std::vector<std::vector<Event>> events_;  // per tensor
  std::vector<std::vector<Index>> inputs_;  // per op, each tensor once
  std::vector<std::vector<Pair>> pairs_;    // per op, forced first, only those that may be taken
  std::vector<Bytes> saved_;                // per position, by in-place pairs
  std::vector<std::int8_t> broken_;         // per position: forced pairs on what is read later
  std::vector<Index> touched_;              // positions whose pairs may have changed
};

}  // namespace reprise::planner
