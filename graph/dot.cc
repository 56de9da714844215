#include <iterator>

#include "graph/text.h"
#include "graph/text_line.h"

namespace reprise::graph {
namespace {

const char* phase_colour(Phase phase) {
  switch (phase) {
    case Phase::kForward:
      return "lightblue";
    case Phase::kBackward:
      return "lightsalmon";
    case Phase::kUpdate:
      return "lightgreen";
  }
  return "white";
}

std::string value_label(const Value& value) {
  return fmt::format("{} {}{}", value.name, dtype_name(value.dtype), shape_text(value.shape));
}

}  // namespace

// Dot's quoting is ours: names and ops have no character that would need more.
std::string to_dot(const Graph& graph) {
  std::string text;
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "digraph {} {{\n  node [shape=box, style=filled];\n", quote(graph.name));
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const Value& value = graph.values[ValueId(i)];
    if (value.producer.valid()) continue;
    fmt::format_to(out, "  v{} [label={}, shape=ellipse, fillcolor={}];\n", i,
                   quote(value_label(value)), value.role == Role::kInput ? "white" : "lightyellow");
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[NodeId(i)];
    fmt::format_to(out, "  n{} [label={}, fillcolor={}];\n", i,
                   quote(fmt::format("{}: {}", node.name, op_info(node.op).name)),
                   phase_colour(node.phase));
    for (ValueId input : node.inputs) {
      const Value& value = graph.values[input];
      if (value.producer.valid()) {
        fmt::format_to(out, "  n{} -> n{} [label={}];\n", value.producer.index(), i,
                       quote(value_label(value)));
      } else {
        fmt::format_to(out, "  v{} -> n{};\n", input.index(), i);
      }
    }
  }
  for (std::size_t i = 0; i < graph.outputs.size(); ++i) {
    const Value& value = graph.values[graph.outputs[i]];
    fmt::format_to(out, "  o{} [label={}, shape=ellipse, fillcolor=white];\n", i,
                   quote("output " + value.name));
    const char from = value.producer.valid() ? 'n' : 'v';
    const std::size_t id =
        value.producer.valid() ? value.producer.index() : graph.outputs[i].index();
    fmt::format_to(out, "  {}{} -> o{} [label={}];\n", from, id, i, quote(value_label(value)));
  }
  text += "}\n";
  return text;
}

}  // namespace reprise::graph
