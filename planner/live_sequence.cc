#include "planner/live_sequence.h"

#include <algorithm>

#include "base/error.h"

namespace reprise::planner {

using schedule::TensorKind;

LiveSequence::LiveSequence(const Structure& structure, const schedule::Order& order,
                           std::size_t room, const schedule::Choices& choices)
    : s_(structure),
      tree_(order.size() + room + 2),
      op_at_(order.size() + room + 2, -1),
      runs_(at(structure.ops())),
      choice_(at(structure.ops()), 0),
      repeated_place_(at(structure.ops()), -1),
      events_(at(structure.tensors())),
      inputs_(at(structure.ops())),
      saved_(op_at_.size(), 0),
      broken_(op_at_.size(), 0) {
  if (!choices.empty()) choice_ = choices;
  for (Index i = 0; i < s_.ops(); ++i) {
    algorithm_.push_back(s_.op(i).algorithm(static_cast<std::size_t>(choice(i))));
  }
  find_pairs();
  if (s_.freedom() == OrderFreedom::kFixed) faults_ = s_.ops();  // none has run
  for (Index t = 0; t < s_.tensors(); ++t) {
    const schedule::Tensor& tensor = s_.tensor(t);
    if (tensor.kind == TensorKind::kResident) resident_ += tensor.bytes;
    if (tensor.kind == TensorKind::kInput) tree_.add(0, 0, tensor.bytes);
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::size_t position = order.size() == 1 ? 0 : i * (op_at_.size() - 2) / order.size();
    add(static_cast<Index>(order[i].index()), static_cast<Index>(position));
  }
}

void LiveSequence::find_pairs() {
  pairs_.resize(at(s_.ops()));
  for (Index i = 0; i < s_.ops(); ++i) {
    const schedule::Op& op = s_.op(i);
    for (TensorId t : op.inputs) {
      const auto tensor = static_cast<Index>(t.index());
      std::vector<Index>& inputs = inputs_[at(i)];
      if (std::find(inputs.begin(), inputs.end(), tensor) == inputs.end()) inputs.push_back(tensor);
    }
    const auto covers_all_places = [&](TensorId from, std::int32_t output) {
      for (std::size_t k = 0; k < op.inputs.size(); ++k) {
        if (op.inputs[k] != from) continue;
        const bool allowed = std::any_of(op.inplace.begin(), op.inplace.end(), [&](const auto& p) {
          return p.input == static_cast<std::int32_t>(k) && p.output == output;
        });
        if (!allowed) return false;
      }
      return true;
    };
    for (bool forced : {true, false}) {
      for (const graph::InplacePair& pair : op.inplace) {
        if (pair.forced != forced) continue;
        const TensorId from = op.inputs[at(pair.input)], to = op.outputs[at(pair.output)];
        const schedule::Tensor& input = s_.problem().tensors[from];
        const bool allowed =
            forced ||
            (input.bytes == s_.problem().tensors[to].bytes && input.kind != TensorKind::kResident &&
             input.kind != TensorKind::kOutput && covers_all_places(from, pair.output));
        if (!allowed) continue;
        pairs_[at(i)].push_back({static_cast<Index>(from.index()), static_cast<Index>(to.index()),
                                 input.bytes, forced});
      }
    }
  }
}

Index LiveSequence::free_before(Index position) const {
  Index previous = position - 1;
  while (previous >= 0 && op_at_[at(previous)] < 0) --previous;
  return free_between(previous, position, previous + (position - previous) / 2);
}

Index LiveSequence::free_between(Index low, Index high, Index wish) const {
  wish = std::clamp(wish, low + 1, std::max(high - 1, low + 1));
  for (Index step = 0; step < high - low; ++step) {
    if (wish - step > low && wish - step < high && op_at_[at(wish - step)] < 0) return wish - step;
    if (wish + step > low && wish + step < high && op_at_[at(wish + step)] < 0) return wish + step;
  }
  return -1;
}

std::size_t LiveSequence::event_at(Index tensor, Index position) const {
  const std::vector<Event>& events = events_[at(tensor)];
  const auto found = std::lower_bound(events.begin(), events.end(), position,
                                      [](const Event& e, Index p) { return e.position < p; });
  return static_cast<std::size_t>(found - events.begin());
}

LiveSequence::CopyView LiveSequence::copy_seen_at(Index tensor, Index position) const {
  const std::vector<Event>& events = events_[at(tensor)];
  const std::size_t here = event_at(tensor, position);
  CopyView view;
  std::size_t i = here;
  while (i > 0 && !events[i - 1].made) --i;
  view.exists = i > 0 || s_.producer(tensor) < 0;
  if (i > 0) view.made = events[i - 1].position;
  std::size_t next = here;
  while (next < events.size() && !events[next].made) {
    if (events[next].position == position) view.used_here = true;
    if (events[next].position > position && view.next_use < 0)
      view.next_use = events[next].position;
    ++next;
  }
  if (next > 0 && !events[next - 1].made) view.last_use = events[next - 1].position;
  if (next == events.size() && s_.tensor(tensor).kind != TensorKind::kTemp &&
      s_.tensor(tensor).kind != TensorKind::kInput) {
    view.last_use = end();
  }
  return view;
}

Index LiveSequence::first_use_of_made(Index tensor, Index position) const {
  const std::vector<Event>& events = events_[at(tensor)];
  const std::size_t next = event_at(tensor, position) + 1;
  return next < events.size() && !events[next].made ? events[next].position : end();
}

Index LiveSequence::last_read_seen_at(Index tensor, Index position) const {
  const std::vector<Event>& events = events_[at(tensor)];
  std::size_t next = event_at(tensor, position);
  while (next < events.size() && !events[next].made) ++next;
  if (next == events.size() && (s_.tensor(tensor).kind == TensorKind::kOutput ||
                                s_.tensor(tensor).kind == TensorKind::kResident)) {
    return end();
  }
  return next > 0 && !events[next - 1].made ? events[next - 1].position : -1;
}

// The copies that the events [first, last) belong to, whole copies only.
void LiveSequence::count_copies(Index tensor, std::size_t first, std::size_t last, int sign) {
  const schedule::Tensor& t = s_.tensor(tensor);
  if (t.kind == TensorKind::kResident) return;
  const std::vector<Event>& events = events_[at(tensor)];
  for (std::size_t i = first; i < last;) {
    std::size_t next = i + 1;
    while (next < last && !events[next].made) ++next;
    const bool from_start = !events[i].made;  // only the uses before the first making
    Index final_position = events[next - 1].position;
    if (!events[next - 1].made) touched_.push_back(final_position);
    if (from_start && s_.producer(tensor) >= 0) {
      faults_ += sign * static_cast<std::int64_t>(next - i);
    } else {
      if (next == events.size() && t.kind == TensorKind::kOutput) final_position = end() - 1;
      const Index start = from_start ? 1 : events[i].position;  // position 0 is always counted
      if (start <= final_position) {
        tree_.add(at(start), at(final_position), sign * t.bytes);
      }
    }
    i = next;
  }
}

void LiveSequence::change_use(Index tensor, std::size_t event, int sign) {
  std::vector<Event>& events = events_[at(tensor)];
  const Index position = events[event].position;
  const bool last = event + 1 == events.size() || events[event + 1].made;
  const bool shared = event > 0 || s_.producer(tensor) < 0;  // an earlier event of the same copy
  touched_.push_back(position);
  if (event > 0 && !events[event - 1].made) touched_.push_back(events[event - 1].position);
  if (s_.tensor(tensor).kind == TensorKind::kResident) return;
  std::size_t first = event;
  if (s_.producer(tensor) >= 0) {
    while (first > 0 && !events[first].made) --first;
    if (!events[first].made) {  // nothing makes it before
      faults_ += sign;
      return;
    }
  }
  if (!last || !shared) return;
  if (event + 1 == events.size() && s_.tensor(tensor).kind == TensorKind::kOutput) return;
  const Index before = event > 0 ? events[event - 1].position : 0;
  if (before < position) tree_.add(at(before + 1), at(position), sign * s_.tensor(tensor).bytes);
}

void LiveSequence::add_use(Index tensor, Index position) {
  std::vector<Event>& events = events_[at(tensor)];
  const std::size_t i = event_at(tensor, position);
  events.insert(events.begin() + static_cast<std::ptrdiff_t>(i), {position, false});
  change_use(tensor, i, 1);
}

void LiveSequence::remove_use(Index tensor, Index position) {
  const std::size_t i = event_at(tensor, position);
  change_use(tensor, i, -1);
  std::vector<Event>& events = events_[at(tensor)];
  events.erase(events.begin() + static_cast<std::ptrdiff_t>(i));
}

void LiveSequence::add_making(Index tensor, Index position) {
  std::vector<Event>& events = events_[at(tensor)];
  const std::size_t i = event_at(tensor, position);
  std::size_t first = i, last = i;
  if (first > 0) --first;
  while (first > 0 && !events[first].made) --first;
  while (last < events.size() && !events[last].made) ++last;
  count_copies(tensor, first, last, -1);
  events.insert(events.begin() + static_cast<std::ptrdiff_t>(i), {position, true});
  count_copies(tensor, first, last + 1, 1);
}

void LiveSequence::remove_making(Index tensor, Index position) {
  std::vector<Event>& events = events_[at(tensor)];
  const std::size_t i = event_at(tensor, position);
  std::size_t first = i, last = i + 1;
  if (first > 0) --first;
  while (first > 0 && !events[first].made) --first;
  while (last < events.size() && !events[last].made) ++last;
  count_copies(tensor, first, last, -1);
  events.erase(events.begin() + static_cast<std::ptrdiff_t>(i));
  count_copies(tensor, first, last - 1, 1);
}

// Faults of a fixed order that the first run of `op` has a part in: each op wants one of its own,
// before that of the next op.
int LiveSequence::count_disorder(Index op) const {
  const auto missing_or_late = [&](Index i) {
    const std::vector<Index>& runs = runs_[at(i)];
    if (runs.empty() || i + 1 == s_.ops()) return runs.empty();
    const std::vector<Index>& next = runs_[at(i + 1)];
    return !next.empty() && next.front() < runs.front();
  };
  return (missing_or_late(op) ? 1 : 0) + (op > 0 && missing_or_late(op - 1) ? 1 : 0);
}

void LiveSequence::add(Index op, Index position) {
  const bool fixed = s_.freedom() == OrderFreedom::kFixed;
  if (fixed) faults_ -= count_disorder(op);
  op_at_[at(position)] = op;
  std::vector<Index>& runs = runs_[at(op)];
  runs.insert(std::lower_bound(runs.begin(), runs.end(), position), position);
  if (fixed) faults_ += count_disorder(op);
  if (runs.size() == 2) {
    repeated_place_[at(op)] = static_cast<Index>(repeated_.size());
    repeated_.push_back(op);
  }
  const schedule::Algorithm algorithm = algorithm_[at(op)];
  cost_ += algorithm.cost;
  if (algorithm.workspace > 0) tree_.add(at(position), at(position), algorithm.workspace);
  for (Index t : inputs_[at(op)]) add_use(t, position);
  for (TensorId t : s_.op(op).outputs) add_making(static_cast<Index>(t.index()), position);
  settle();
}

void LiveSequence::remove(Index position) {
  const Index op = op_at_[at(position)];
  REPRISE_CHECK(op >= 0, "no run at position {}", position);
  for (TensorId t : s_.op(op).outputs) remove_making(static_cast<Index>(t.index()), position);
  for (Index t : inputs_[at(op)]) remove_use(t, position);
  const schedule::Algorithm algorithm = algorithm_[at(op)];
  if (algorithm.workspace > 0) tree_.add(at(position), at(position), -algorithm.workspace);
  cost_ -= algorithm.cost;
  std::vector<Index>& runs = runs_[at(op)];
  const bool fixed = s_.freedom() == OrderFreedom::kFixed;
  if (fixed) faults_ -= count_disorder(op);
  runs.erase(std::lower_bound(runs.begin(), runs.end(), position));
  if (fixed) faults_ += count_disorder(op);
  if (runs.size() == 1) {
    const Index place = repeated_place_[at(op)];
    repeated_[at(place)] = repeated_.back();
    repeated_place_[at(repeated_[at(place)])] = place;
    repeated_.pop_back();
  }
  op_at_[at(position)] = -1;
  touched_.push_back(position);
  settle();
}

void LiveSequence::choose(Index op, std::int32_t choice) {
  const schedule::Algorithm from = algorithm_[at(op)];
  const schedule::Algorithm to = s_.op(op).algorithm(static_cast<std::size_t>(choice));
  choice_[at(op)] = choice;
  algorithm_[at(op)] = to;
  for (Index position : runs(op)) {
    cost_ += to.cost - from.cost;
    tree_.add(at(position), at(position), to.workspace - from.workspace);
  }
}

void LiveSequence::settle() {
  for (std::size_t i = 0; i < touched_.size(); ++i) charge_pairs(touched_[i]);
  touched_.clear();
}

void LiveSequence::charge_pairs(Index position) {
  const Index op = op_at_[at(position)];
  Bytes saved = 0;
  std::int8_t broken = 0;
  if (op >= 0 && !pairs_[at(op)].empty()) {
    const std::vector<Pair>& pairs = pairs_[at(op)];
    std::uint64_t taken = 0;  // pairs, by number; no op has so many
    for (std::size_t i = 0; i < pairs.size() && i < 64; ++i) {
      const Index last = last_read_seen_at(pairs[i].input, position);
      if (pairs[i].forced) {
        if (last > position) ++broken;
      } else {
        bool free = last == position;
        for (std::size_t k = 0; k < i && free; ++k) {
          if ((taken >> k & 1) == 0) continue;
          free = pairs[k].input != pairs[i].input && pairs[k].output != pairs[i].output;
        }
        if (!free) continue;
      }
      taken |= std::uint64_t{1} << i;
      saved += pairs[i].bytes;
    }
  }
  if (saved != saved_[at(position)]) {
    tree_.add(at(position), at(position), saved_[at(position)] - saved);
    saved_[at(position)] = saved;
  }
  faults_ += broken - broken_[at(position)];
  broken_[at(position)] = broken;
}

schedule::Order LiveSequence::order() const {
  schedule::Order order;
  for (Index op : op_at_) {
    if (op >= 0) order.emplace_back(at(op));
  }
  return order;
}

}  // namespace reprise::planner
