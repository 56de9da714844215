#include "planner/exact_search.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <queue>
#include <unordered_map>

// A state is what has run for good (Progress) and what is resident. A step runs one op; tensors are
// dropped only when the op would not fit otherwise, and never more of them than that takes: to have
// more at hand is never worse. For the same reason a state is passed over when one of the same
// progress, no dearer, holds all that it holds and more. Tensors that nothing will read are dropped
// at once, which makes more states equal. The estimate of the way to go (cost_to_finish) is exact
// but for memory, hence never too large and consistent.

namespace reprise::planner {
namespace {

constexpr std::int32_t kNone = -1;
constexpr std::size_t kMostCompared = 2'000;  // closed states of one progress, newest first

std::size_t at(std::int64_t i) {
  return static_cast<std::size_t>(i);
}

struct State {
  Progress progress = 0;
  Bits resident = 0;
  std::int64_t cost = 0;
  std::int32_t parent = kNone;
  std::int16_t op = 0;      // that led here
  std::int16_t choice = 0;  // with this algorithm
  bool closed = false;
};

// Open addressing over states by (progress, resident).
class StateTable {
 public:
  explicit StateTable(const std::vector<State>& states) : states_(states), slots_(1024, kNone) {}

  std::int32_t& find(Progress progress, Bits resident) {
    if (2 * states_.size() > slots_.size()) grow();
    return slots_[slot_of(progress, resident)];
  }

 private:
  std::size_t slot_of(Progress progress, Bits resident) const {
    std::uint64_t hash = (progress * 0x9E3779B97F4A7C15u) ^ (resident + (resident >> 29));
    hash = (hash ^ (hash >> 32)) * 0xD6E8FEB86659FD93u;
    hash ^= hash >> 32;
    std::size_t slot = hash & (slots_.size() - 1);
    while (slots_[slot] != kNone) {
      const State& state = states_[at(slots_[slot])];
      if (state.progress == progress && state.resident == resident) break;
      slot = (slot + 1) & (slots_.size() - 1);
    }
    return slot;
  }
  void grow() {
    slots_.assign(slots_.size() * 4, kNone);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      slots_[slot_of(states_[i].progress, states_[i].resident)] = static_cast<std::int32_t>(i);
    }
  }

  const std::vector<State>& states_;
  std::vector<std::int32_t> slots_;
};

class Search {
 public:
  Search(const ExactModel& model, Bytes budget, std::int64_t most_states)
      : m_(model), budget_(budget), most_states_(most_states), table_(states_) {}

  ExactAnswer run(const std::function<bool()>& stop) {
    if (m_.fixed_bytes() + m_.bytes_of(m_.at_start()) <= budget_) {
      reach(0, m_.at_start(), 0, {kNone, 0, 0});
    }
    for (std::int64_t opened = 0; !queue_.empty();) {
      const Entry next = queue_.top();
      queue_.pop();
      State& state = states_[at(next.state)];
      if (state.closed || next.cost != state.cost) continue;
      answer_.cost_bound = std::max(answer_.cost_bound, next.total);
      if (m_.finished(state.progress, state.resident)) return found(next.state);
      if (full() || (opened % 1024 == 0 && stop && stop())) return answer_;
      ++opened;
      state.closed = true;
      if (!dominated(state)) open(next.state);
    }
    if (!full()) answer_.kind = ExactAnswer::Kind::kInfeasible;
    return answer_;
  }

  // The algorithms of each op in the runs of the answer, ascending.
  [[nodiscard]] const std::vector<std::vector<std::int32_t>>& used() const { return used_; }

 private:
  // The step that leads to a state.
  struct From {
    std::int32_t state;
    int op;
    std::int32_t choice;
  };
  struct Entry {
    std::int64_t total, cost;
    int held;  // tensors resident: more of them first, so that they pass over the others
    std::int32_t state;
    bool operator<(const Entry& other) const {  // the top of the queue is the largest
      if (total != other.total) return total > other.total;
      if (cost != other.cost) return cost < other.cost;
      if (held != other.held) return held < other.held;
      return state > other.state;
    }
  };

  bool full() const { return answer_.states >= most_states_; }

  ExactAnswer found(std::int32_t goal) {
    answer_.kind = ExactAnswer::Kind::kOptimal;
    answer_.cost = answer_.cost_bound = states_[at(goal)].cost;
    used_.resize(at(m_.ops()));
    for (std::int32_t i = goal; states_[at(i)].parent != kNone; i = states_[at(i)].parent) {
      const State& state = states_[at(i)];
      answer_.order.emplace_back(at(state.op));
      std::vector<std::int32_t>& used = used_[at(state.op)];
      const auto place = std::lower_bound(used.begin(), used.end(), state.choice);
      if (place == used.end() || *place != state.choice) used.insert(place, state.choice);
    }
    std::reverse(answer_.order.begin(), answer_.order.end());
    for (const auto& used : used_) answer_.choices.push_back(used.empty() ? 0 : used.front());
    return answer_;
  }

  bool dominated(const State& state) {
    std::vector<std::pair<Bits, std::int64_t>>& seen = closed_[state.progress];
    const std::size_t first = seen.size() - std::min(seen.size(), kMostCompared);
    for (std::size_t i = first; i < seen.size(); ++i) {
      if (seen[i].second <= state.cost && (state.resident & ~seen[i].first) == 0) return true;
    }
    seen.emplace_back(state.resident, state.cost);
    return false;
  }

  void reach(Progress progress, Bits resident, std::int64_t cost, const From& from) {
    ++answer_.states;
    std::int32_t& known = table_.find(progress, resident);
    if (known != kNone && states_[at(known)].cost <= cost) return;
    const std::int64_t to_go = m_.cost_to_finish(progress, resident);
    if (to_go < 0) return;
    if (known == kNone) {
      known = static_cast<std::int32_t>(states_.size());
      states_.push_back({progress, resident});
    }
    const std::int32_t id = known;
    State& state = states_[at(id)];
    state.cost = cost;
    state.parent = from.state;
    state.op = static_cast<std::int16_t>(from.op);
    state.choice = static_cast<std::int16_t>(from.choice);
    queue_.push({cost + to_go, cost, std::popcount(resident), id});
  }

  void open(std::int32_t id) {
    const State state = states_[at(id)];
    const Bits wanted = m_.wanted(state.progress, state.resident);
    for (int i = 0; i < m_.ops(); ++i) {
      const ExactOp& op = m_.op(i);
      Progress after = 0;
      if ((op.inputs & ~state.resident) != 0 || !m_.may_run(i, state.progress, after)) continue;
      const bool again = after == state.progress;
      if (again && (op.outputs & wanted & ~state.resident) == 0) continue;
      for (std::size_t k = 0; k < op.algorithms.size(); ++k) {
        const std::int32_t choice = op.first_choice + static_cast<std::int32_t>(k);
        // A leaner one is of use only where a tensor would have to go for this one.
        if (run_op(state, {id, i, choice}, op.algorithms[k], after)) break;
      }
    }
  }

  // Which optional in-place pairs are taken depends on which inputs end here: every choice is
  // tried until the op fits. True when it fits while all inputs stay.
  bool run_op(const State& state, const From& from, const schedule::Algorithm& algorithm,
              Progress after) {
    const ExactOp& op = m_.op(from.op);
    const Bits left = (state.resident | op.outputs) & ~op.destroyed;
    const Bits useful = m_.wanted(after, left) | m_.outputs();
    Bits pair_inputs = 0;
    for (const ExactOp::Pair& pair : op.pairs) pair_inputs |= pair.input;
    // At the first step all that is there at the start counts.
    const bool first = state.parent == kNone;
    const Bytes need = m_.fixed_bytes() + m_.bytes_of(state.resident | op.outputs) +
                       algorithm.workspace - op.forced_bytes;
    const std::int64_t cost = state.cost + algorithm.cost;
    bool roomy = false;
    const Bits ends_anyway = pair_inputs & ~useful;
    const Bits choice = pair_inputs & useful & ~op.destroyed;
    for (Bits ends = 0;; ends = (ends - choice) & choice) {
      const Bits gone = ends | ends_anyway;
      const Bytes over = need - shared_bytes(op, gone) - budget_;
      const Bits rest = left & ~gone & useful;
      if (over <= 0) {
        reach(after, rest, cost, from);
        roomy = roomy || ends == 0;
      } else if (!first) {
        const Bits may_go = state.resident & ~op.inputs & ~op.outputs;
        drop(may_go, over, [&](Bits dropped) { reach(after, rest & ~dropped, cost, from); });
      }
      if (ends == choice) break;
    }
    return roomy;
  }

  // The bytes that pairs share when the inputs `gone` are not read again; forced pairs come first.
  static Bytes shared_bytes(const ExactOp& op, Bits gone) {
    Bytes shared = 0;
    Bits taken = op.destroyed | op.forced_outputs;
    for (const ExactOp::Pair& pair : op.pairs) {
      if ((pair.input & gone) == 0 || ((pair.input | pair.output) & taken) != 0) continue;
      taken |= pair.input | pair.output;
      shared += pair.bytes;
    }
    return shared;
  }

  // Every set among `may_go` that frees `over` bytes and of which no part would do.
  template <class Use>
  void drop(Bits may_go, Bytes over, const Use& use) {
    items_.clear();
    for (Bits rest = may_go; rest != 0; rest &= rest - 1) {
      const int bit = std::countr_zero(rest);
      if (m_.bytes()[at(bit)] > 0) items_.emplace_back(m_.bytes()[at(bit)], bit);
    }
    // Largest first: a set that is complete with its smallest member has no part that would do.
    std::sort(items_.begin(), items_.end(), std::greater<>());
    still_.assign(items_.size() + 1, 0);
    for (std::size_t i = items_.size(); i-- > 0;) still_[i] = still_[i + 1] + items_[i].first;
    drop_from(0, over, 0, use);
  }
  // As deep as there are tensors: at most 64.
  template <class Use>
  void drop_from(std::size_t i, Bytes over, Bits dropped, const Use& use) {
    if (i == items_.size() || still_[i] < over || full()) return;
    const Bits with = dropped | Bits{1} << items_[i].second;
    if (items_[i].first >= over) {
      use(with);
    } else {
      drop_from(i + 1, over - items_[i].first, with, use);
    }
    drop_from(i + 1, over, dropped, use);
  }

  const ExactModel& m_;
  const Bytes budget_;
  const std::int64_t most_states_;
  std::vector<State> states_;
  StateTable table_;
  std::priority_queue<Entry> queue_;
  std::unordered_map<Progress, std::vector<std::pair<Bits, std::int64_t>>> closed_;
  std::vector<std::pair<Bytes, int>> items_;
  std::vector<Bytes> still_;
  std::vector<std::vector<std::int32_t>> used_;
  ExactAnswer answer_;
};

// A problem in which some ops are held to one algorithm, and what the search finds for it.
struct Branch {
  ExactModel model;
  ExactAnswer answer;
  int disputed = -1;  // an op that runs with several algorithms; -1: none
};

Branch explore(const ExactModel& model, Bytes budget, std::int64_t most_states,
               const std::function<bool()>& stop) {
  Search search(model, budget, most_states);
  Branch branch{model, search.run(stop)};
  for (std::size_t i = 0; i < search.used().size() && branch.disputed < 0; ++i) {
    if (search.used()[i].size() < 2) continue;
    branch.disputed = static_cast<int>(i);
  }
  return branch;
}

}  // namespace

ExactAnswer solve_exactly(const ExactModel& model, Bytes budget, std::int64_t most_states,
                          const std::function<bool()>& stop) {
  if (!model.fits()) return {};
  std::vector<Branch> open;
  const auto dearer = [](const Branch& a, const Branch& b) {
    return a.answer.cost_bound > b.answer.cost_bound;
  };
  open.push_back(explore(model, budget, most_states, stop));
  std::int64_t states = open.front().answer.states;
  while (!open.empty()) {
    std::pop_heap(open.begin(), open.end(), dearer);
    const Branch best = std::move(open.back());
    open.pop_back();
    ExactAnswer answer = best.answer;
    if (answer.kind != ExactAnswer::Kind::kOptimal || best.disputed < 0) {
      answer.states = states;
      return answer;
    }
    for (std::size_t k = 0; k < best.model.op(best.disputed).algorithms.size(); ++k) {
      ExactModel held = best.model;
      held.restrict_to(best.disputed,
                       best.model.op(best.disputed).first_choice + static_cast<std::int32_t>(k));
      Branch next = explore(held, budget, std::max<std::int64_t>(most_states - states, 0), stop);
      states += next.answer.states;
      if (next.answer.kind == ExactAnswer::Kind::kInfeasible) continue;
      open.push_back(std::move(next));
      std::push_heap(open.begin(), open.end(), dearer);
    }
  }
  ExactAnswer none;
  none.kind = ExactAnswer::Kind::kInfeasible;
  none.states = states;
  return none;
}

}  // namespace reprise::planner
