#include "planner/spread_sums.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/ids.h"

namespace reprise::planner {
namespace {

using base::Bytes;
using graph::OpKind;
using schedule::Instruction;
using schedule::Schedule;
using schedule::Slot;
using schedule::SlotId;

// The next instruction that writes to each byte, seen from a place that moves from the end of the
// step to its begin.
class NextWrites {
 public:
  explicit NextWrites(std::int64_t none) : from_{{0, none}} {}

  void write(Bytes begin, Bytes bytes, std::int64_t instruction) {
    if (bytes <= 0) return;
    split(begin);
    split(begin + bytes);
    from_.erase(from_.lower_bound(begin), from_.lower_bound(begin + bytes));
    from_.emplace(begin, instruction);
  }
  [[nodiscard]] std::int64_t earliest(Bytes begin, Bytes bytes) const {
    auto piece = std::prev(from_.upper_bound(begin));
    std::int64_t first = piece->second;
    for (++piece; piece != from_.end() && piece->first < begin + bytes; ++piece)
      first = std::min(first, piece->second);
    return first;
  }

 private:
  void split(Bytes at) { from_.emplace(at, std::prev(from_.upper_bound(at))->second); }
  std::map<Bytes, std::int64_t> from_;  // pieces by their first address, without gaps
};

class Spreading {
 public:
  Spreading(const graph::PreparedGraph& prepared, const Schedule& schedule)
      : prepared_(prepared),
        schedule_(schedule),
        count_(std::ssize(schedule.instructions)),
        uses_(schedule.slots.size()),
        moves_(schedule.instructions.size()) {}

  std::vector<Instruction> make() {
    find_uses();
    move_begins();
    if (!prepared_.graph.updates_last) move_updates();
    move_awaits();
    drop_moves_beside_moved();
    return in_new_order();
  }

 private:
  struct Uses {
    std::int64_t writer = -1, first_reader = -1, last_reader = -1;
  };
  // To before the instruction `before`, or after the instruction `after`; -1: not.
  struct Move {
    std::int64_t before = -1, after = -1;
    std::int64_t order = 0;  // among those that go to one place
    [[nodiscard]] bool any() const { return before >= 0 || after >= 0; }
  };
  [[nodiscard]] const Instruction& at(std::int64_t i) const {
    return schedule_.instructions[static_cast<std::size_t>(i)];
  }
  [[nodiscard]] OpKind op(std::int64_t i) const { return prepared_.graph.nodes[at(i).node].op; }
  [[nodiscard]] Move& move(std::int64_t i) { return moves_[static_cast<std::size_t>(i)]; }

  void find_uses();
  void move_begins();
  void move_updates();
  void move_awaits();
  void drop_moves_beside_moved();
  // The await whose sum nobody but the update reads; -1: it reads no such sum.
  [[nodiscard]] std::int64_t await_of(std::int64_t update) const;
  [[nodiscard]] std::vector<Instruction> in_new_order() const;

  const graph::PreparedGraph& prepared_;
  const Schedule& schedule_;
  const std::int64_t count_;
  base::IdVector<SlotId, Uses> uses_;
  std::vector<Move> moves_;
};

void Spreading::find_uses() {
  for (std::int64_t i = 0; i < count_; ++i) {
    for (const SlotId slot : at(i).reads) {
      if (uses_[slot].first_reader < 0) uses_[slot].first_reader = i;
      uses_[slot].last_reader = i;
    }
    for (const SlotId slot : at(i).writes) uses_[slot].writer = i;
  }
}

// Behind the writer of the gradient and its other readers; the sum takes its place.
void Spreading::move_begins() {
  base::IdVector<SlotId, std::int64_t> last_other(schedule_.slots.size());
  for (std::int64_t i = 0; i < count_; ++i) {
    if (op(i) == OpKind::kAllReduce) {
      const SlotId gradient = at(i).reads[0];
      const std::int64_t after = std::max(uses_[gradient].writer, last_other[gradient]);
      if (uses_[gradient].writer >= 0 && after < i)
        move(i) = {.before = -1, .after = after, .order = i};
    }
    for (const SlotId slot : at(i).reads) last_other[slot] = i;
  }
}

std::int64_t Spreading::await_of(std::int64_t update) const {
  for (const SlotId slot : at(update).reads) {
    const Uses& uses = uses_[slot];
    const bool is_own = uses.first_reader == update && uses.last_reader == update;
    if (is_own && uses.writer >= 0 && op(uses.writer) == OpKind::kAwait) return uses.writer;
  }
  return -1;
}

// To where other bytes take the place of what an update reads, or others read what it writes.
void Spreading::move_updates() {
  NextWrites next(count_);
  for (std::int64_t i = count_ - 1; i >= 0; --i) {
    const Instruction& instruction = at(i);
    if (await_of(i) >= 0 && instruction.workspace_bytes == 0) {
      std::int64_t before = count_;
      for (const SlotId slot : instruction.reads) {
        const Slot& described = schedule_.slots[slot];
        before = std::min(before, next.earliest(described.offset, described.bytes));
      }
      for (const SlotId slot : instruction.writes) {
        const Slot& described = schedule_.slots[slot];
        before = std::min(before, next.earliest(described.offset, described.bytes));
        if (uses_[slot].first_reader >= 0) before = std::min(before, uses_[slot].first_reader);
      }
      move(i) = {.before = before, .after = -1, .order = i};
    }
    for (const SlotId slot : instruction.writes)
      next.write(schedule_.slots[slot].offset, schedule_.slots[slot].bytes, i);
    next.write(instruction.workspace_offset, instruction.workspace_bytes, i);
  }
}

// To their first reader, in the order in which their sums begin; with updates_last to before the
// first update.
void Spreading::move_awaits() {
  std::int64_t first_update = count_;
  for (std::int64_t i = 0; i < count_ && prepared_.graph.updates_last; ++i) {
    if (op(i) != OpKind::kAwait) continue;
    const std::int64_t reader = uses_[at(i).writes[0]].first_reader;
    if (reader >= 0 && prepared_.graph.nodes[at(reader).node].phase == graph::Phase::kUpdate)
      first_update = std::min(first_update, reader);
  }
  for (std::int64_t i = 0; i < count_; ++i) {
    if (op(i) != OpKind::kAwait) continue;
    const std::int64_t reader = uses_[at(i).writes[0]].first_reader;
    const std::int64_t begin = uses_[at(i).reads[0]].writer;
    if (reader < 0 || begin < 0) continue;
    Move& of_reader = move(reader);
    const bool follows = of_reader.before >= 0;
    const std::int64_t before = follows ? of_reader.before : std::min(reader, first_update);
    if (before <= i) continue;
    const std::int64_t order = std::max(move(begin).after, move(begin).any() ? 0 : begin);
    move(i) = {.before = before, .after = -1, .order = order};
    if (follows) of_reader.order = order;
  }
}

// What is moved must have something that stays to be beside.
void Spreading::drop_moves_beside_moved() {
  for (std::int64_t i = 0; i < count_; ++i) {
    Move& mine = move(i);
    const auto moved = [&](std::int64_t other) {
      return other >= 0 && other < count_ && move(other).any();
    };
    if (moved(mine.before) || moved(mine.after)) mine = {};
  }
}

std::vector<Instruction> Spreading::in_new_order() const {
  // Keys of the new order: place; what goes before the instruction of that place (0), it itself
  // (1), what goes behind it (2); order there; the old index.
  using Key = std::array<std::int64_t, 4>;
  std::vector<Key> keys;
  keys.reserve(moves_.size());
  for (std::int64_t i = 0; i < count_; ++i) {
    const Move& mine = moves_[static_cast<std::size_t>(i)];
    if (mine.before >= 0) {
      keys.push_back({mine.before, 0, mine.order, i});
    } else if (mine.after >= 0) {
      keys.push_back({mine.after, 2, mine.order, i});
    } else {
      keys.push_back({i, 1, 0, i});
    }
  }
  std::sort(keys.begin(), keys.end());
  std::vector<Instruction> instructions;
  instructions.reserve(keys.size());
  for (const Key& key : keys) instructions.push_back(at(key.back()));
  return instructions;
}

}  // namespace

Schedule spread_sums(const graph::PreparedGraph& prepared, Schedule schedule) {
  const auto& nodes = prepared.graph.nodes;
  const bool sums = std::any_of(
      schedule.instructions.begin(), schedule.instructions.end(),
      [&](const Instruction& each) { return nodes[each.node].op == OpKind::kAllReduce; });
  if (!sums) return schedule;
  schedule.instructions = Spreading(prepared, schedule).make();
  return schedule;
}

}  // namespace reprise::planner
