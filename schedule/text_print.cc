// The writing half of the text form; docs/schedule_format.md describes it.

#include <iterator>

#include "fmt/format.h"

#include "base/error.h"
#include "graph/text.h"
#include "graph/text_line.h"
#include "schedule/text.h"

namespace reprise::schedule {
namespace {

class Printer {
 public:
  explicit Printer(const PlannedStep& step)
      : step_(step), prepared_(step.prepared), graph_(step.prepared.graph) {}

  std::string print() {
    line("reprise-plan 1");
    line("planner {}", graph::quote(step_.planner));
    line("budget {}", step_.budget_bytes);
    line("arena {}", step_.schedule.arena_bytes);
    line("backend {}", graph::quote(prepared_.backend));
    line("costs {}", graph::quote(prepared_.cost_source));
    text_ += graph::print_graph(graph_);
    print_values();
    print_nodes();
    print_slots();
    print_instructions();
    line("end");
    return std::move(text_);
  }

 private:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    add(format, std::forward<Args>(args)...);
    text_ += '\n';
  }

  void print_values() {
    line("values");
    for (std::size_t i = 0; i < graph_.values.size(); ++i) {
      const ValueId value(i);
      line("value {} bytes {} layout {}", graph_.values[value].name, prepared_.value_bytes[value],
           graph::quote(prepared_.value_layouts[value]));
    }
  }

  void print_nodes() {
    line("nodes");
    for (std::size_t i = 0; i < graph_.nodes.size(); ++i) {
      const graph::PreparedNode& facts = prepared_.nodes[NodeId(i)];
      add("node {} cost {} flops {} moved {}", graph_.nodes[NodeId(i)].name, facts.cost_ns,
          facts.flops, facts.bytes_moved);
      if (facts.workspace_bytes != 0) add(" workspace {}", facts.workspace_bytes);
      if (!facts.inplace.empty()) add(" inplace");
      for (const graph::InplacePair& pair : facts.inplace) {
        add(" {}>{}{}", pair.input, pair.output, pair.forced ? "!" : "");
      }
      for (const graph::Algorithm& other : facts.others) {
        add(" or {} cost {} workspace {}", graph::quote(other.name), other.cost_ns,
            other.workspace_bytes);
      }
      text_ += '\n';
    }
  }

  void print_slots() {
    line("slots");
    for (std::size_t i = 0; i < step_.schedule.slots.size(); ++i) {
      const Slot& slot = step_.schedule.slots[SlotId(i)];
      REPRISE_CHECK(graph_.values.contains(slot.value), "slot {} holds value {} of {}", i,
                    slot.value.index(), graph_.values.size());
      line("slot {} {} offset {} bytes {}", i, graph_.values[slot.value].name, slot.offset,
           slot.bytes);
    }
  }

  void print_list(const std::vector<SlotId>& slots) {
    for (SlotId slot : slots) add(" {}", slot.index());
  }

  void print_instructions() {
    line("instructions");
    add("entry");
    print_list(step_.schedule.entry);
    text_ += '\n';
    for (const Instruction& at : step_.schedule.instructions) {
      REPRISE_CHECK(graph_.nodes.contains(at.node), "an instruction runs node {} of {}",
                    at.node.index(), graph_.nodes.size());
      add("run {} reads", graph_.nodes[at.node].name);
      print_list(at.reads);
      add(" writes");
      print_list(at.writes);
      if (at.algorithm != 0) add(" algorithm {}", at.algorithm);
      if (at.workspace_offset != 0 || at.workspace_bytes != 0) {
        add(" workspace {} {}", at.workspace_offset, at.workspace_bytes);
      }
      text_ += '\n';
    }
    add("exit");
    print_list(step_.schedule.exit);
    text_ += '\n';
  }

  const PlannedStep& step_;
  const graph::PreparedGraph& prepared_;
  const graph::Graph& graph_;
  std::string text_;
};

}  // namespace

std::string print_planned_step(const PlannedStep& step) {
  return Printer(step).print();
}

}  // namespace reprise::schedule
