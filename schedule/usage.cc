#include "schedule/usage.h"

#include <algorithm>
#include <limits>

#include "base/error.h"

namespace reprise::schedule {
namespace {

// Sums of sizes that nobody has checked yet.
__extension__ using Wide = __int128;

Bytes narrow(Wide bytes) {
  constexpr Wide kLargest = std::numeric_limits<Bytes>::max();
  return static_cast<Bytes>(std::clamp(bytes, Wide{0}, kLargest));
}

Category category_of_role(graph::Role role) {
  switch (role) {
    case graph::Role::kInput:
      return Category::kInput;
    case graph::Role::kParameter:
      return Category::kParameter;
    case graph::Role::kOptimizerState:
      return Category::kOptimizerState;
    case graph::Role::kState:
      return Category::kState;
    case graph::Role::kGradient:
      return Category::kGradient;
    case graph::Role::kActivation:
    case graph::Role::kUpdate:
      break;
  }
  return Category::kActivation;
}

base::IdVector<ValueId, Category> value_categories(const graph::Graph& graph) {
  base::IdVector<ValueId, Category> categories(graph.values.size());
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    categories[ValueId(i)] = category_of_role(graph.values[ValueId(i)].role);
  }
  for (const graph::Update& update : graph.updates) {
    categories[update.final] = categories[update.initial];
  }
  return categories;
}

Activity activity_of(graph::Phase phase, bool repeated) {
  if (repeated) return Activity::kRecompute;
  switch (phase) {
    case graph::Phase::kForward:
      return Activity::kForward;
    case graph::Phase::kBackward:
      return Activity::kBackward;
    case graph::Phase::kUpdate:
      return Activity::kUpdate;
  }
  return Activity::kForward;
}

class Measurement {
 public:
  Measurement(const graph::PreparedGraph& prepared, const Schedule& schedule)
      : graph_(prepared.graph),
        schedule_(schedule),
        steps_(std::max<std::size_t>(schedule.instructions.size(), 1)) {}

  Usage measure() {
    usage_.lifetimes = slot_lifetimes(schedule_);
    classify();
    hand_on_in_place();
    sum();
    return std::move(usage_);
  }

 private:
  void classify() {
    const base::IdVector<ValueId, Category> values = value_categories(graph_);
    for (const Slot& slot : schedule_.slots) {
      REPRISE_CHECK(values.contains(slot.value), "value {} of {}", slot.value.index(),
                    values.size());
      usage_.categories.push_back(values[slot.value]);
    }
    base::IdVector<NodeId, bool> ran(graph_.nodes.size(), false);
    for (const Instruction& at : schedule_.instructions) {
      REPRISE_CHECK(ran.contains(at.node), "node {} of {}", at.node.index(), ran.size());
      const bool repeated = ran[at.node];
      ran[at.node] = true;
      usage_.activities.push_back(activity_of(graph_.nodes[at.node].phase, repeated));
      if (!repeated) continue;
      ++usage_.recomputed;
      for (SlotId slot : at.writes) usage_.categories[slot] = Category::kRecomputed;
    }
  }

  void hand_on_in_place() {
    for (std::size_t step = 0; step < schedule_.instructions.size(); ++step) {
      const Instruction& at = schedule_.instructions[step];
      for (SlotId write : at.writes) {
        for (SlotId read : at.reads) {
          if (schedule_.slots[read].offset != schedule_.slots[write].offset) continue;
          Lifetime& lifetime = usage_.lifetimes[read];
          lifetime.end = std::min(lifetime.end, static_cast<std::int64_t>(step));
        }
      }
    }
  }

  void sum() {
    std::array<std::vector<Wide>, kCategoryCount> change;
    for (auto& changes : change) changes.assign(steps_ + 1, 0);
    const auto add = [&](Category category, std::int64_t start, std::int64_t end, Bytes bytes) {
      if (start >= end) return;
      auto& changes = change[static_cast<std::size_t>(category)];
      changes[static_cast<std::size_t>(start)] += bytes;
      changes[static_cast<std::size_t>(end)] -= bytes;
    };
    for (std::size_t i = 0; i < schedule_.slots.size(); ++i) {
      const Lifetime& lifetime = usage_.lifetimes[SlotId(i)];
      add(usage_.categories[SlotId(i)], lifetime.start, lifetime.end,
          schedule_.slots[SlotId(i)].bytes);
    }
    for (std::size_t step = 0; step < schedule_.instructions.size(); ++step) {
      const auto start = static_cast<std::int64_t>(step);
      add(Category::kWorkspace, start, start + 1, schedule_.instructions[step].workspace_bytes);
    }
    std::vector<Wide> total(steps_, 0);
    for (std::size_t c = 0; c < kCategoryCount; ++c) {
      Wide live = 0;
      for (std::size_t step = 0; step < steps_; ++step) {
        live += change[c][step];
        total[step] += live;
        usage_.live_by_category[c].push_back(narrow(live));
      }
    }
    for (Wide live : total) usage_.live_bytes.push_back(narrow(live));
    const auto peak = std::max_element(usage_.live_bytes.begin(), usage_.live_bytes.end());
    usage_.peak_step = peak - usage_.live_bytes.begin();
  }

  const graph::Graph& graph_;
  const Schedule& schedule_;
  const std::size_t steps_;
  Usage usage_;
};

}  // namespace

const char* category_name(Category category) {
  switch (category) {
    case Category::kParameter:
      return "parameter";
    case Category::kOptimizerState:
      return "optimizer state";
    case Category::kState:
      return "state";
    case Category::kInput:
      return "input";
    case Category::kActivation:
      return "activation";
    case Category::kRecomputed:
      return "recomputed";
    case Category::kGradient:
      return "gradient";
    case Category::kWorkspace:
      return "workspace";
  }
  return "unknown category";
}

const char* activity_name(Activity activity) {
  switch (activity) {
    case Activity::kForward:
      return "forward";
    case Activity::kRecompute:
      return "recompute";
    case Activity::kBackward:
      return "backward";
    case Activity::kUpdate:
      return "update";
  }
  return "unknown activity";
}

Bytes Usage::peak_of(Category category) const {
  const std::vector<Bytes>& live = live_by_category[static_cast<std::size_t>(category)];
  return *std::max_element(live.begin(), live.end());
}

Bytes Usage::at_peak(Category category) const {
  return live_by_category[static_cast<std::size_t>(category)][static_cast<std::size_t>(peak_step)];
}

std::int64_t end_of_forward(const graph::Graph& graph, const Schedule& schedule) {
  const auto& instructions = schedule.instructions;
  if (!graph.loss.valid()) return std::ssize(instructions);
  const graph::NodeId loss = graph.values[graph::storage_root(graph, graph.loss)].producer;
  const auto found = std::find_if(instructions.begin(), instructions.end(),
                                  [&](const Instruction& each) { return each.node == loss; });
  return std::min(std::ssize(instructions), found - instructions.begin() + 1);
}

Usage measure_usage(const graph::PreparedGraph& prepared, const Schedule& schedule) {
  return Measurement(prepared, schedule).measure();
}

}  // namespace reprise::schedule
