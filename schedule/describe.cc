#include "schedule/describe.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "fmt/format.h"

#include "schedule/usage.h"

namespace reprise::schedule {
namespace {

class Description {
 public:
  Description(const graph::PreparedGraph& prepared, const Schedule& schedule,
              const DescribeOptions& options)
      : prepared_(prepared),
        graph_(prepared.graph),
        schedule_(schedule),
        options_(options),
        usage_(measure_usage(prepared, schedule)) {}

  std::string write() {
    write_figures();
    write_categories();
    write_largest();
    write_instructions();
    return std::move(text_);
  }

 private:
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  // A byte count in both forms: "58.0 MiB (60817408)".
  static std::string bytes(Bytes count) {
    const std::string shown = base::format_bytes(count);
    return count < base::kKiB ? shown : fmt::format("{} ({} B)", shown, count);
  }

  // A name in a column that is at least as wide as the longest one there.
  static std::string padded(const std::string& name, std::size_t width) {
    return fmt::format("{:<{}}", name, width);
  }

  const std::string& node_name(std::size_t step) const {
    return graph_.nodes[schedule_.instructions[step].node].name;
  }

  const std::string& value_name(SlotId slot) const {
    return graph_.values[schedule_.slots[slot].value].name;
  }

  std::int64_t cost_of(const Instruction& at) const {
    return prepared_.nodes[at.node].cost_of(static_cast<std::size_t>(at.algorithm));
  }

  void write_figures() {
    line("graph         {}: {} nodes, {} values", graph_.name, graph_.nodes.size(),
         graph_.values.size());
    line("backend       {}, costs {}", prepared_.backend, prepared_.cost_source);
    double cost = 0, repeated = 0;  // of a file that nobody has checked: sums may be huge
    for (std::size_t i = 0; i < schedule_.instructions.size(); ++i) {
      const auto one = static_cast<double>(cost_of(schedule_.instructions[i]));
      cost += one;
      if (usage_.activities[i] == Activity::kRecompute) repeated += one;
    }
    line("instructions  {}, {} of them recomputed", schedule_.instructions.size(),
         usage_.recomputed);
    const double share = cost == repeated ? 0 : repeated / (cost - repeated);
    line("cost          {:.3f} ms, {:.1f} % more than without recomputation", cost / 1e6,
         100 * share);
    line("slots         {}", schedule_.slots.size());
    line("arena         {}", bytes(schedule_.arena_bytes));
    if (schedule_.instructions.empty()) {
      line("live peak     {}", bytes(usage_.peak()));
    } else {
      const auto peak = static_cast<std::size_t>(usage_.peak_step);
      line("live peak     {} in instruction {}, {}", bytes(usage_.peak()), peak, node_name(peak));
    }
  }

  void write_categories() {
    line("\n{:<24}{:>14}{:>14}", "bytes by use", "at the peak", "at most");
    for (std::size_t c = 0; c < kCategoryCount; ++c) {
      const auto category = static_cast<Category>(c);
      if (usage_.peak_of(category) == 0) continue;
      line("  {:<22}{:>14}{:>14}", category_name(category),
           base::format_bytes(usage_.at_peak(category)),
           base::format_bytes(usage_.peak_of(category)));
    }
  }

  void write_largest() {
    std::vector<SlotId> live;
    for (std::size_t i = 0; i < schedule_.slots.size(); ++i) {
      const Lifetime& steps = usage_.lifetimes[SlotId(i)];
      const bool there = steps.start <= usage_.peak_step && usage_.peak_step < steps.end;
      if (there && schedule_.slots[SlotId(i)].bytes > 0) live.emplace_back(i);
    }
    std::stable_sort(live.begin(), live.end(), [&](SlotId a, SlotId b) {
      return schedule_.slots[a].bytes > schedule_.slots[b].bytes;
    });
    if (live.size() > options_.largest) live.resize(options_.largest);
    if (live.empty()) return;
    std::size_t width = 24;
    for (SlotId slot : live) width = std::max(width, value_name(slot).size() + 2);
    line("\nlargest slots at the peak");
    for (SlotId slot : live) {
      const Lifetime& steps = usage_.lifetimes[slot];
      line("  {:>10}  {:<16}{}instructions {} to {}",
           base::format_bytes(schedule_.slots[slot].bytes), category_name(usage_.categories[slot]),
           padded(value_name(slot), width), steps.start, steps.end - 1);
    }
  }

  void write_instructions() {
    if (schedule_.instructions.empty()) return;
    const std::size_t shown = std::min(options_.instructions, schedule_.instructions.size());
    std::size_t width = 24;
    for (std::size_t i = 0; i < shown; ++i) width = std::max(width, node_name(i).size() + 2);
    line("\n{:>12}  {:<11}{}{:<24}{:>11}{:>11}", "instruction", "activity", padded("node", width),
         "op", "live", "cost us");
    for (std::size_t i = 0; i < shown; ++i) {
      const Instruction& at = schedule_.instructions[i];
      const graph::Node& node = graph_.nodes[at.node];
      line("{:>12}  {:<11}{}{:<24}{:>11}{:>11.1f}", i, activity_name(usage_.activities[i]),
           padded(node.name, width), graph::op_info(node.op).name,
           base::format_bytes(usage_.live_bytes[i]), static_cast<double>(cost_of(at)) / 1e3);
    }
    if (shown < schedule_.instructions.size()) {
      line("{:>12}  {} more", "...", schedule_.instructions.size() - shown);
    }
  }

  const graph::PreparedGraph& prepared_;
  const graph::Graph& graph_;
  const Schedule& schedule_;
  const DescribeOptions& options_;
  const Usage usage_;
  std::string text_;
};

}  // namespace

std::string describe(const graph::PreparedGraph& prepared, const Schedule& schedule,
                     const DescribeOptions& options) {
  return Description(prepared, schedule, options).write();
}

}  // namespace reprise::schedule
