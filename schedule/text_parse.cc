// The reading half of the text form; docs/schedule_format.md describes it. Tables grow by the line,
// never by a number that the text claims, so that memory stays within a small multiple of the text.

#include <charconv>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "base/error.h"
#include "graph/text.h"
#include "schedule/line_reader.h"
#include "schedule/text.h"

namespace reprise::schedule {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
// Sizes and offsets stay so far below 2^63 that the sum of two cannot wrap.
constexpr Bytes kLargestSize = Bytes{1} << 61;

class Parser {
 public:
  Parser(std::string_view text, std::string_view source) : lines_(text, source), source_(source) {}

  PlannedStep parse() {
    parse_header();
    parse_graph_block();
    parse_values();
    parse_nodes();
    parse_slots();
    parse_instructions();
    if (!lines_.at_end()) {
      lines_.next_line("nothing after the line 'end'");
      throw lines_.failure(lines_.peek(), "nothing after the line 'end'");
    }
    return std::move(step_);
  }

 private:
  graph::Graph& graph() { return step_.prepared.graph; }

  // A line that is this one word: the title of a section.
  void title(std::string_view word) {
    lines_.next_line(fmt::format("'{}'", word));
    lines_.keyword(word);
    lines_.end_line();
  }

  // A line of a keyword and its text.
  std::string text_line(std::string_view word) {
    lines_.next_line(fmt::format("'{}'", word));
    lines_.keyword(word);
    std::string text = lines_.quoted(fmt::format("the {}", word));
    lines_.end_line();
    return text;
  }

  std::int64_t number_line(std::string_view word, std::int64_t low, std::int64_t high) {
    lines_.next_line(fmt::format("'{}'", word));
    lines_.keyword(word);
    const std::int64_t number = lines_.integer("a number of bytes", low, high);
    lines_.end_line();
    return number;
  }

  Bytes size(std::string_view what) { return lines_.integer(what, 0, kLargestSize); }

  void parse_header() {
    lines_.next_line("'reprise-plan 1'");
    lines_.keyword("reprise-plan");
    if (const auto version = lines_.integer("a version", 0, kLargest); version != 1) {
      throw lines_.failure(std::to_string(version), "version 1; another Reprise wrote this plan");
    }
    lines_.end_line();
    step_.planner = text_line("planner");
    step_.budget_bytes = number_line("budget", 0, kLargest);
    step_.schedule.arena_bytes = number_line("arena", 0, kLargestSize);
    step_.prepared.backend = text_line("backend");
    step_.prepared.cost_source = text_line("costs");
  }

  void parse_graph_block() {
    title("graph");
    const std::int64_t lines_before = lines_.line_number();
    const std::string_view block = lines_.take_block("end graph");
    // Empty lines in front, so that the graph's parser counts lines as this file does.
    const std::string text =
        std::string(static_cast<std::size_t>(lines_before), '\n') + std::string(block);
    try {
      graph() = graph::parse_graph(text);
    } catch (const base::Error& error) {
      if (error.kind() != base::ErrorKind::kInput) throw;
      throw base::input_error("{}: graph: {}", source_, error.what());
    }
    for (std::size_t i = 0; i < graph().values.size(); ++i) {
      value_names_.emplace(graph().values[ValueId(i)].name, ValueId(i));
    }
    for (std::size_t i = 0; i < graph().nodes.size(); ++i) {
      node_names_.emplace(graph().nodes[NodeId(i)].name, NodeId(i));
    }
  }

  // One line for each item of a table of the graph, in its order.
  void named_line(std::string_view keyword, std::string_view name) {
    const std::string expected = fmt::format("'{} {}'", keyword, name);
    lines_.next_line(expected);
    lines_.keyword(keyword);
    if (const std::string_view found = lines_.word(expected); found != name) {
      throw lines_.failure(found, fmt::format("{}: the graph's order", expected));
    }
  }

  void parse_values() {
    title("values");
    for (const graph::Value& value : graph().values) {
      named_line("value", value.name);
      lines_.keyword("bytes");
      step_.prepared.value_bytes.push_back(size("a number of bytes"));
      lines_.keyword("layout");
      step_.prepared.value_layouts.push_back(lines_.quoted("a layout"));
      lines_.end_line();
    }
  }

  void parse_nodes() {
    title("nodes");
    for (const graph::Node& node : graph().nodes) {
      named_line("node", node.name);
      graph::PreparedNode facts;
      lines_.keyword("cost");
      facts.cost_ns = lines_.integer("nanoseconds", 0, kLargest);
      lines_.keyword("flops");
      facts.flops = lines_.number("operations");
      lines_.keyword("moved");
      facts.bytes_moved = lines_.number("bytes");
      if (lines_.peek() == "workspace") {
        lines_.keyword("workspace");
        facts.workspace_bytes = size("a number of bytes");
      }
      if (!lines_.line_done()) parse_pairs(node, facts);
      step_.prepared.nodes.push_back(std::move(facts));
    }
  }

  void parse_pairs(const graph::Node& node, graph::PreparedNode& facts) {
    lines_.keyword("inplace");
    do {
      facts.inplace.push_back(parse_pair(node, lines_.word("an in-place pair")));
    } while (!lines_.line_done());
  }

  // "0>1" or "0>1!": input > output, forced.
  graph::InplacePair parse_pair(const graph::Node& node, std::string_view text) {
    graph::InplacePair pair;
    const char* const end = text.data() + text.size();
    const auto input = std::from_chars(text.data(), end, pair.input);
    const bool arrow = input.ec == std::errc() && input.ptr != end && *input.ptr == '>';
    const auto output = std::from_chars(arrow ? input.ptr + 1 : end, end, pair.output);
    pair.forced = output.ptr != end && *output.ptr == '!';
    const bool whole = output.ec == std::errc() && output.ptr + (pair.forced ? 1 : 0) == end;
    if (!whole || pair.input < 0 || pair.input >= std::ssize(node.inputs) || pair.output < 0 ||
        pair.output >= std::ssize(node.outputs)) {
      throw lines_.failure(
          text, fmt::format("an in-place pair like 0>0 or 0>0! of the node's {} inputs and {} "
                            "outputs",
                            node.inputs.size(), node.outputs.size()));
    }
    return pair;
  }

  template <class Id>
  Id named(const std::unordered_map<std::string_view, Id>& names, std::string_view what) {
    const std::string_view name = lines_.word(what);
    const auto found = names.find(name);
    if (found == names.end()) throw lines_.failure(name, what);
    return found->second;
  }

  void parse_slots() {
    title("slots");
    auto& slots = step_.schedule.slots;
    for (;;) {
      lines_.next_line("'slot' or 'instructions'");
      if (lines_.peek() == "instructions") return;
      lines_.keyword("slot");
      const auto next = static_cast<std::int64_t>(slots.size());
      (void)lines_.integer("the slot's number, counting from 0,", next, next);
      Slot slot;
      slot.value = named(value_names_, "the name of a value of the graph");
      lines_.keyword("offset");
      slot.offset = size("an offset");
      lines_.keyword("bytes");
      slot.bytes = size("a number of bytes");
      lines_.end_line();
      slots.push_back(slot);
    }
  }

  // Slot numbers up to the end of the line or to `stop`.
  std::vector<SlotId> slot_list(std::string_view stop) {
    const auto count = static_cast<std::int64_t>(step_.schedule.slots.size());
    std::vector<SlotId> list;
    while (!lines_.line_done() && lines_.peek() != stop) {
      list.emplace_back(static_cast<std::size_t>(lines_.integer("a slot", 0, count - 1)));
    }
    return list;
  }

  // The title has been read as the end of the slots.
  void parse_instructions() {
    lines_.keyword("instructions");
    lines_.end_line();
    lines_.next_line("'entry'");
    lines_.keyword("entry");
    step_.schedule.entry = slot_list("");
    for (;;) {
      lines_.next_line("'run' or 'exit'");
      if (lines_.peek() == "exit") break;
      parse_run();
    }
    lines_.keyword("exit");
    step_.schedule.exit = slot_list("");
    title("end");
  }

  void parse_run() {
    lines_.keyword("run");
    Instruction at;
    at.node = named(node_names_, "the name of a node of the graph");
    lines_.keyword("reads");
    at.reads = slot_list("writes");
    lines_.keyword("writes");
    at.writes = slot_list("workspace");
    if (!lines_.line_done()) {
      lines_.keyword("workspace");
      at.workspace_offset = size("an offset");
      at.workspace_bytes = size("a number of bytes");
      lines_.end_line();
    }
    step_.schedule.instructions.push_back(std::move(at));
  }

  LineReader lines_;
  std::string_view source_;
  PlannedStep step_;
  std::unordered_map<std::string_view, ValueId> value_names_;  // views into step_
  std::unordered_map<std::string_view, NodeId> node_names_;
};

}  // namespace

PlannedStep parse_planned_step(std::string_view text, std::string_view source) {
  return Parser(text, source).parse();
}

}  // namespace reprise::schedule
