#include "planner/chain/shortest.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <unordered_map>

namespace reprise::planner {
namespace {

constexpr int kMostStages = 10;
constexpr int kMostOptions = 14;

// What is there: bit i for plain x_i, then the phase, then four bits for xbar_{i+1} of each stage
// (option + 1).
using State = std::uint64_t;

class Search {
 public:
  Search(const ChainProblem& problem, Bytes budget, const ShortestOptions& options)
      : problem_(problem),
        budget_(budget),
        options_(options),
        length_(static_cast<int>(problem.stages.size())) {
    for (const Stage& stage : problem.stages) {
      std::int64_t least = std::numeric_limits<std::int64_t>::max();
      for (const StageOption& o : stage.options) {
        least = std::min(least, o.forward_cost + o.backward_cost);
      }
      least_.push_back(least);
    }
  }

  ShortestResult run() {
    const State start = 1 | phase_bits(length_ + 1);
    reach(start, 0, start, {});
    ShortestResult result;
    while (!queue_.empty()) {
      const Entry entry = queue_.top();
      queue_.pop();
      const Node& node = nodes_.at(entry.state);
      if (entry.estimate != node.cost + rest(entry.state)) continue;  // was reached cheaper since
      if (phase(entry.state) == 0) {
        result.proven = true;
        result.cheaper = path(entry.state, start);
        return result;
      }
      if (++expanded_ > options_.most_states) return result;
      if (options_.stop && expanded_ % 1024 == 0 && options_.stop()) return result;
      expand(entry.state, node.cost);
    }
    result.proven = true;
    return result;
  }

 private:
  struct Node {
    std::int64_t cost = 0;
    State before = 0;
    ChainInstruction by;
  };
  struct Entry {
    std::int64_t estimate = 0;
    State state = 0;
    // Cheapest first; ties by state, so that every run is the same.
    bool operator<(const Entry& other) const {
      return std::pair(estimate, state) > std::pair(other.estimate, other.state);
    }
  };

  static State phase_bits(int p) { return static_cast<State>(p) << 12; }
  static int phase(State s) { return static_cast<int>((s >> 12) & 15); }
  static bool plain(State s, int i) { return ((s >> i) & 1) != 0; }
  // Option of xbar_i, -1 for none; i > 0.
  static int record(State s, int i) { return static_cast<int>((s >> (16 + 4 * (i - 1))) & 15) - 1; }
  static State record_bits(int i, int option) {
    return static_cast<State>(option + 1) << (16 + 4 * (i - 1));
  }
  static State with_phase(State s, int p) { return (s & ~phase_bits(15)) | phase_bits(p); }
  static bool there(State s, int i) { return plain(s, i) || (i > 0 && record(s, i) >= 0); }

  const Stage& stage(int i) const { return problem_.stages[static_cast<std::size_t>(i)]; }
  const StageOption& option(int i, int k) const {
    return stage(i).options[static_cast<std::size_t>(k)];
  }
  Bytes a(int i) const { return i == 0 ? problem_.input : stage(i - 1).output; }
  Bytes g(int i) const { return i == 0 ? problem_.input_gradient : stage(i - 1).output_gradient; }

  Bytes resident(State s) const {
    Bytes bytes = phase(s) <= length_ ? g(phase(s)) : 0;
    for (int i = 0; i <= length_; ++i) {
      if (plain(s, i)) bytes += a(i);
      if (i > 0 && record(s, i) >= 0) bytes += option(i - 1, record(s, i)).record;
    }
    return bytes;
  }

  // What must still run, at the least.
  std::int64_t rest(State s) const {
    std::int64_t cost = phase(s) > length_ ? problem_.loss_cost : 0;
    for (int i = 0; i < std::min(phase(s), length_); ++i) {
      const int k = record(s, i + 1);
      const std::int64_t least = least_[static_cast<std::size_t>(i)];
      cost += k < 0 ? least : std::min(least, option(i, k).backward_cost);
    }
    return cost;
  }

  void reach(State s, std::int64_t cost, State before, ChainInstruction by) {
    const std::int64_t estimate = cost + rest(s);
    if (estimate >= options_.below) return;
    const auto [found, fresh] = nodes_.try_emplace(s, Node{cost, before, by});
    if (!fresh) {
      if (found->second.cost <= cost) return;
      found->second = {cost, before, by};
    }
    queue_.push({estimate, s});
  }

  void expand(State s, std::int64_t cost) {
    const Bytes room = budget_ - resident(s);
    const auto step = [&](Bytes more, std::int64_t price, State next, ChainInstruction by) {
      if (more <= room) reach(next, cost + price, s, by);
    };
    for (int i = 0; i < length_; ++i) {
      if (!there(s, i)) continue;
      const Stage& st = stage(i);
      for (int k = 0; record(s, i + 1) < 0 && k < static_cast<int>(st.options.size()); ++k) {
        const StageOption& o = option(i, k);
        step(o.record + o.forward_workspace, o.forward_cost, s | record_bits(i + 1, k),
             {ChainStep::kForwardAll, i, k});
      }
      if (plain(s, i + 1)) continue;
      const State next = s | (State{1} << (i + 1));
      step(st.output + st.forward_workspace, st.forward_cost, next,
           {ChainStep::kForwardKeep, i, 0});
      if (i > 0 && plain(s, i)) {
        step(st.output + st.forward_workspace, st.forward_cost, next & ~(State{1} << i),
             {ChainStep::kForwardDrop, i, 0});
      }
    }
    for (int i = 1; i <= length_; ++i) {
      if (plain(s, i)) step(0, 0, s & ~(State{1} << i), {ChainStep::kDropInput, i, 0});
      const int k = record(s, i);
      if (k >= 0) step(0, 0, s & ~record_bits(i, k), {ChainStep::kDropRecord, i, 0});
    }
    const int p = phase(s);
    if (p > length_ && there(s, length_)) {
      State next = with_phase(s, length_);
      if (length_ > 0) next &= ~(State{1} << length_);
      step(g(length_) + problem_.loss_workspace, problem_.loss_cost, next,
           {ChainStep::kLoss, 0, 0});
    } else if (p >= 1 && p <= length_ && record(s, p) >= 0 && there(s, p - 1)) {
      const int k = record(s, p);
      const State next = with_phase(s, p - 1) & ~record_bits(p, k) & ~(State{1} << (p - 1));
      step(g(p - 1) + option(p - 1, k).backward_workspace, option(p - 1, k).backward_cost, next,
           {ChainStep::kBackward, p - 1, k});
    }
  }

  std::vector<ChainInstruction> path(State end, State start) const {
    std::vector<ChainInstruction> result;
    for (State s = end; s != start; s = nodes_.at(s).before) result.push_back(nodes_.at(s).by);
    std::reverse(result.begin(), result.end());
    return result;
  }

  const ChainProblem& problem_;
  const Bytes budget_;
  const ShortestOptions& options_;
  const int length_;
  std::vector<std::int64_t> least_;
  std::unordered_map<State, Node> nodes_;
  std::priority_queue<Entry> queue_;
  std::int64_t expanded_ = 0;
};

}  // namespace

ShortestResult shortest_schedule(const ChainProblem& problem, Bytes budget,
                                 const ShortestOptions& options) {
  if (problem.stages.size() > kMostStages) return {};
  for (const Stage& stage : problem.stages) {
    if (stage.options.size() > kMostOptions) return {};
  }
  return Search(problem, budget, options).run();
}

}  // namespace reprise::planner
