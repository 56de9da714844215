#include <algorithm>

#include "base/error.h"
#include "planner/chain/uniform.h"

namespace reprise::planner {
namespace {

class Rollout {
 public:
  Rollout(const UniformChain& chain, const UniformTable& table, const UniformSlopes& slopes)
      : c_(chain), table_(table), slopes_(slopes) {}

  ChainProgram run(Bytes memory) {
    todo_.push_back({Kind::kOuter, 0, c_.steps, memory});
    while (!todo_.empty()) {
      const Task task = todo_.back();
      todo_.pop_back();
      if (task.kind == Kind::kBackward) {
        emit(ChainStep::kBackward, task.first, task.n);
      } else {
        go(task.kind == Kind::kOuter, task.first, task.n, task.memory);
      }
    }
    return std::move(program_);
  }

 private:
  enum class Kind : std::uint8_t { kInner, kOuter, kBackward };
  struct Task {
    Kind kind = Kind::kInner;
    std::int64_t first = 0, n = 0;  // kBackward: from stage `first` down
    Bytes memory = 0;
  };
  // What to do first: record (0), or hold the input of the stage that far on.
  using Decision = std::int64_t;

  void emit(ChainStep step, std::int64_t stage, std::int64_t count) {
    program_.push({step, static_cast<std::int32_t>(stage), 0}, static_cast<std::int32_t>(count));
  }

  // Follows the last part of each decision in a loop, so that records of a million stages need no
  // stack.
  void go(bool outer, std::int64_t i, std::int64_t n, Bytes m) {
    while (n > 0) {
      const std::int64_t all = std::min(n, slopes_.reach(outer, 1, m));
      const Decision j = all == n ? 0 : decide(outer, n, m);
      if (j == 0) {
        const std::int64_t count = all == n ? n : 1;
        emit(ChainStep::kForwardAll, i, count);
        todo_.push_back({Kind::kBackward, i + count - 1, count, 0});
        i += count;
        n -= count;
        m -= count * c_.b;
      } else {
        emit(ChainStep::kForwardKeep, i, 1);
        emit(ChainStep::kForwardDrop, i + 1, j - 1);
        todo_.push_back({Kind::kInner, i, j, m});
        i += j;
        n -= j;
        m -= c_.a;
      }
    }
    if (outer) program_.push({ChainStep::kLoss, 0, 0});
  }

  Decision decide(bool outer, std::int64_t n, Bytes m) const {
    if (n <= (outer ? table_.outer() : table_.inner())) {
      const auto& stairs = outer ? table_.q(small(n)) : table_.p(small(n));
      const StairStep* step = step_within(stairs, m);
      REPRISE_CHECK(step != nullptr, "{} stages within {} bytes have no plan", n, m);
      return step->choice.move == ChainMove::kCheckpoint ? step->choice.split : 0;
    }
    return roll(outer, n, m);
  }

  static std::int32_t small(std::int64_t n) { return static_cast<std::int32_t>(n); }

  std::optional<std::int64_t> value(bool outer, std::int64_t n, Bytes m) const {
    if (n > (outer ? table_.outer() : table_.inner())) return slopes_.bound(outer, n, m, true);
    const StairStep* step = step_within(outer ? table_.q(small(n)) : table_.p(small(n)), m);
    if (step == nullptr) return std::nullopt;
    return step->cost;
  }

  Decision roll(bool outer, std::int64_t n, Bytes m) const {
    const Bytes gradient = outer ? 0 : c_.g;
    std::optional<std::int64_t> best;
    Decision decision = 0;
    const Bytes record = c_.b + std::max(gradient + c_.of, 2 * c_.g + c_.ob);
    if (m >= record) {
      if (const auto rest = value(outer, n - 1, m - c_.b)) best = c_.uf + c_.ub + *rest;
    }
    const auto consider = [&](std::int64_t j) {
      if (j < 1 || j > (outer ? n : n - 1)) return;
      if (m < gradient + (j == 1 ? c_.a : 2 * c_.a) + c_.of) return;
      const auto after = value(outer, n - j, m - c_.a);
      const auto before = value(false, j, m);
      if (!after || !before) return;
      const std::int64_t cost = j * c_.uf + *after + *before;
      if (best && *best <= cost) return;
      best = cost;
      decision = j;
    };
    const std::int64_t r = slopes_.runs_needed(outer, n, m);
    for (std::int64_t q = std::max<std::int64_t>(r - 2, 1); q <= r; ++q) {
      for (const std::int64_t j :
           {slopes_.reach(false, q, m), n - slopes_.reach(outer, q, m - c_.a)}) {
        for (std::int64_t near = -1; near <= 1; ++near) consider(j + near);
      }
    }
    consider(1);
    consider(n - 1);
    consider(n);
    REPRISE_CHECK(best.has_value(), "{} stages within {} bytes have no plan", n, m);
    return decision;
  }

  const UniformChain& c_;
  const UniformTable& table_;
  const UniformSlopes& slopes_;
  std::vector<Task> todo_;
  ChainProgram program_;
};

}  // namespace

ChainProgram roll_out(const UniformChain& chain, const UniformTable& table,
                      const UniformSlopes& slopes, Bytes memory) {
  return Rollout(chain, table, slopes).run(memory);
}

}  // namespace reprise::planner
