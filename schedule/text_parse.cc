// The reading half of the text form; docs/schedule_format.md describes it. Tables grow by the line,
// never by a number that the text claims, so that memory stays within a small multiple of the text.

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_map>

#include "fmt/format.h"

#include "base/error.h"
#include "graph/prepared_names.h"
#include "graph/text.h"
#include "graph/text_line.h"
#include "schedule/text.h"

namespace reprise::schedule {
namespace {

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();
// Sizes and offsets stay so far below 2^63 that the sum of two cannot wrap.
constexpr Bytes kLargestSize = Bytes{1} << 61;

// The lines of a text. Empty lines and comments are skipped; the last line must have its newline,
// so that no text that was cut short passes.
class Lines {
 public:
  explicit Lines(std::string_view text) : rest_(text) {}

  graph::TextLine next(std::string_view expected) {
    for (;;) {
      const std::string_view text = take_line(expected);
      graph::TextLine line(text, number_);
      if (!line.done() && !line.take("#")) return line;
    }
  }

  // All lines up to the first that is `last`, with it.
  std::string_view block(std::string_view last) {
    const std::string_view start = rest_;
    while (take_line(last) != last) continue;
    return start.substr(0, start.size() - rest_.size());
  }

  [[nodiscard]] std::size_t number() const { return number_; }

  void expect_no_more() {
    while (!rest_.empty()) {
      const std::string_view text = take_line("the end of the text");
      graph::TextLine line(text, number_);
      if (!line.done() && !line.take("#")) throw line.fail("nothing after 'end'");
    }
  }

 private:
  std::string_view take_line(std::string_view expected) {
    ++number_;
    const std::size_t newline = rest_.find('\n');
    if (newline == std::string_view::npos) {
      throw graph::TextLine(rest_, number_)
          .fail(fmt::format("{} and a newline, but the text was cut", expected));
    }
    const std::string_view line = rest_.substr(0, newline);
    rest_.remove_prefix(newline + 1);
    return line;
  }

  std::string_view rest_;
  std::size_t number_ = 0;
};

using Line = graph::TextLine;

std::int64_t integer_in(Line& line, std::string_view what, std::int64_t low, std::int64_t high) {
  Line before = line;
  const std::int64_t value = line.integer(what);
  if (value < low || value > high)
    throw before.fail(fmt::format("{} in [{}, {}]", what, low, high));
  return value;
}

Bytes size(Line& line, std::string_view what) {
  return integer_in(line, what, 0, kLargestSize);
}

double finite_number(Line& line, std::string_view what) {
  Line before = line;
  const double value = line.number(what);
  if (!std::isfinite(value)) throw before.fail(fmt::format("{}, finite", what));
  return value;
}

// Texts that must be one of a kind; the line behind them is still at hand.
std::string backend_name(Line& line) {
  std::string name = line.quoted("a backend in quotes");
  const auto& known = graph::kBackendNames;
  if (std::find(known.begin(), known.end(), name) == known.end())
    throw line.fault("there is no backend '{}'; known: {}", name, fmt::join(known, ", "));
  return name;
}

std::string cost_source(Line& line) {
  std::string source = line.quoted("the costs' source in quotes");
  constexpr std::string_view kMeasured = "measured on ";
  if (source != "analytic" && !(source.starts_with(kMeasured) && source.size() > kMeasured.size()))
    throw line.fault("costs '{}': expected analytic, or measured on a device", source);
  return source;
}

std::string layout_name(Line& line) {
  std::string name = line.quoted("a layout in quotes");
  if (!graph::is_layout_name(name)) {
    throw line.fault("'{}' is no layout; expected plain, workspace or axes like aBcd16b", name);
  }
  return name;
}

class Parser {
 public:
  explicit Parser(std::string_view text) : lines_(text) {}

  PlannedStep parse() {
    parse_header();
    parse_graph_block();
    parse_values();
    parse_nodes();
    parse_slots();
    parse_instructions();
    lines_.expect_no_more();
    return std::move(step_);
  }

 private:
  graph::Graph& graph() { return step_.prepared.graph; }

  // A line that is this one word: the title of a section.
  void title(std::string_view word) {
    Line line = lines_.next(word);
    line.expect(word);
    line.expect_end();
  }

  // A line of a keyword and the text that `read` takes.
  template <class Read>
  std::string text_line(std::string_view word, const Read& read) {
    Line line = lines_.next(word);
    line.expect(word);
    std::string text = read(line);
    line.expect_end();
    return text;
  }

  std::int64_t number_line(std::string_view word, std::int64_t high) {
    Line line = lines_.next(word);
    line.expect(word);
    const std::int64_t number = integer_in(line, "an integer", 0, high);
    line.expect_end();
    return number;
  }

  void parse_header() {
    if (const auto version = number_line("reprise-plan", kLargest); version != 1) {
      throw base::input_error("line {}: version {} is unknown; this program reads 1",
                              lines_.number(), version);
    }
    step_.planner = text_line("planner", [](Line& line) { return line.quoted("text in quotes"); });
    step_.budget_bytes = number_line("budget", kLargest);
    step_.schedule.arena_bytes = number_line("arena", kLargestSize);
    step_.prepared.backend = text_line("backend", backend_name);
    step_.prepared.cost_source = text_line("costs", cost_source);
  }

  // The graph's own text form, up to its 'end'. Empty lines in front make its parser count lines as
  // this one does.
  void parse_graph_block() {
    const std::string before(lines_.number(), '\n');
    graph() = graph::parse_graph(before + std::string(lines_.block("end")));
    for (std::size_t i = 0; i < graph().values.size(); ++i) {
      value_names_.emplace(graph().values[ValueId(i)].name, ValueId(i));
    }
    for (std::size_t i = 0; i < graph().nodes.size(); ++i) {
      node_names_.emplace(graph().nodes[NodeId(i)].name, NodeId(i));
    }
  }

  // One line for each item of a table of the graph, in its order.
  Line named_line(std::string_view keyword, std::string_view name) {
    const std::string expected = fmt::format("{} {}", keyword, name);
    Line line = lines_.next(expected);
    Line before = line;
    line.expect(keyword);
    if (line.name("a name") != name) throw before.fail(expected + ", as in the graph's order");
    return line;
  }

  void parse_values() {
    title("values");
    for (const graph::Value& value : graph().values) {
      Line line = named_line("value", value.name);
      line.expect("bytes");
      step_.prepared.value_bytes.push_back(size(line, "a number of bytes"));
      line.expect("layout");
      step_.prepared.value_layouts.push_back(layout_name(line));
      line.expect_end();
    }
  }

  void parse_nodes() {
    title("nodes");
    for (const graph::Node& node : graph().nodes) {
      Line line = named_line("node", node.name);
      graph::PreparedNode facts;
      line.expect("cost");
      facts.cost_ns = integer_in(line, "nanoseconds", 0, kLargest);
      line.expect("flops");
      facts.flops = finite_number(line, "a number of operations");
      line.expect("moved");
      facts.bytes_moved = finite_number(line, "a number of bytes");
      if (line.take("workspace")) facts.workspace_bytes = size(line, "a number of bytes");
      bool other = false;
      if (line.take("inplace")) {
        do {
          facts.inplace.push_back(parse_pair(line, node));
          other = line.take("or");
        } while (!line.done() && !other);
      } else {
        other = line.take("or");
      }
      for (; other; other = line.take("or")) facts.others.push_back(parse_algorithm(line));
      line.expect_end();
      step_.prepared.nodes.push_back(std::move(facts));
    }
  }

  // After "or": "winograd" cost 40 workspace 4096.
  static graph::Algorithm parse_algorithm(Line& line) {
    graph::Algorithm algorithm;
    algorithm.name = line.quoted("a name in quotes");
    line.expect("cost");
    algorithm.cost_ns = integer_in(line, "nanoseconds", 0, kLargest);
    line.expect("workspace");
    algorithm.workspace_bytes = size(line, "a number of bytes");
    return algorithm;
  }

  // "0>1" or "0>1!": input > output, forced.
  static graph::InplacePair parse_pair(Line& line, const graph::Node& node) {
    graph::InplacePair pair;
    pair.input = static_cast<std::int32_t>(
        integer_in(line, "an input of the node", 0, std::ssize(node.inputs) - 1));
    line.expect(">");
    pair.output = static_cast<std::int32_t>(
        integer_in(line, "an output of the node", 0, std::ssize(node.outputs) - 1));
    pair.forced = line.take("!");
    return pair;
  }

  template <class Id>
  static Id named(Line& line, const std::unordered_map<std::string_view, Id>& names,
                  std::string_view what) {
    Line before = line;
    const auto found = names.find(line.name(what));
    if (found == names.end()) throw before.fail(what);
    return found->second;
  }

  void parse_slots() {
    title("slots");
    for (;;) {
      Line line = lines_.next("slot or instructions");
      if (line.take("instructions")) return line.expect_end();
      line.expect("slot");
      const std::int64_t next = std::ssize(step_.schedule.slots);
      (void)integer_in(line, "the slot's number, counted from 0,", next, next);
      Slot slot;
      slot.value = named(line, value_names_, "the name of a value of the graph");
      line.expect("offset");
      slot.offset = size(line, "an offset");
      line.expect("bytes");
      slot.bytes = size(line, "a number of bytes");
      line.expect_end();
      step_.schedule.slots.push_back(slot);
    }
  }

  // Slot numbers up to the end of the line or to one of the words, which is taken and returned;
  // "" at the end.
  std::string_view slot_list(Line& line, std::initializer_list<std::string_view> stops,
                             std::vector<SlotId>& list) {
    while (!line.done()) {
      for (const std::string_view stop : stops) {
        if (line.take(stop)) return stop;
      }
      list.emplace_back(static_cast<std::size_t>(
          integer_in(line, "a slot", 0, std::ssize(step_.schedule.slots) - 1)));
    }
    return "";
  }

  // The title has been taken as the end of the slots.
  void parse_instructions() {
    Line entry = lines_.next("entry");
    entry.expect("entry");
    slot_list(entry, {}, step_.schedule.entry);
    for (;;) {
      Line line = lines_.next("run or exit");
      if (line.take("exit")) {
        slot_list(line, {}, step_.schedule.exit);
        break;
      }
      parse_run(line);
    }
    title("end");
  }

  void parse_run(Line& line) {
    line.expect("run");
    Instruction at;
    at.node = named(line, node_names_, "the name of a node of the graph");
    line.expect("reads");
    if (slot_list(line, {"writes"}, at.reads).empty()) throw line.fail("writes");
    std::string_view next = slot_list(line, {"algorithm", "workspace"}, at.writes);
    if (next == "algorithm") {
      const std::int64_t count = std::ssize(step_.prepared.nodes[at.node].others) + 1;
      at.algorithm =
          static_cast<std::int32_t>(integer_in(line, "an algorithm of the node", 1, count - 1));
      if (line.take("workspace")) next = "workspace";
    }
    if (next == "workspace") {
      at.workspace_offset = size(line, "an offset");
      at.workspace_bytes = size(line, "a number of bytes");
    }
    line.expect_end();
    step_.schedule.instructions.push_back(std::move(at));
  }

  Lines lines_;
  PlannedStep step_;
  std::unordered_map<std::string_view, ValueId> value_names_;  // views into step_
  std::unordered_map<std::string_view, NodeId> node_names_;
};

}  // namespace

PlannedStep parse_planned_step(std::string_view text, std::string_view source) {
  try {
    return Parser(text).parse();
  } catch (const base::Error& error) {
    if (error.kind() != base::ErrorKind::kInput) throw;
    throw base::input_error("{}: {}", source, error.what());
  }
}

}  // namespace reprise::schedule
