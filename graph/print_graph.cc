#include <iterator>

#include "graph/text.h"
#include "graph/text_attributes.h"
#include "graph/text_line.h"

namespace reprise::graph {
namespace {

std::string value_list(const Graph& graph, const std::vector<ValueId>& values) {
  std::string text = "(";
  for (std::size_t i = 0; i < values.size(); ++i) {
    text += i == 0 ? "" : ", ";
    text += graph.values[values[i]].name;
  }
  return text + ")";
}

}  // namespace

std::string print_graph(const Graph& graph) {
  std::string text = "reprise-graph 1\n";
  const auto out = std::back_inserter(text);
  fmt::format_to(out, "name {}\n", quote(graph.name));
  for (const Value& value : graph.values) {
    fmt::format_to(out, "value {} {} {} {}{}\n", value.name, role_name(value.role),
                   dtype_name(value.dtype), shape_text(value.shape),
                   value.trainable ? " trainable" : "");
  }
  for (const Node& node : graph.nodes) {
    fmt::format_to(out, "node {} {} {}{} {} -> {}{}\n", node.name, phase_name(node.phase),
                   op_info(node.op).name, node.accumulate ? " accumulate" : "",
                   value_list(graph, node.inputs), value_list(graph, node.outputs),
                   print_attributes(node.op, node.attributes));
  }
  for (ValueId output : graph.outputs) {
    fmt::format_to(out, "output {}\n", graph.values[output].name);
  }
  for (const Update& update : graph.updates) {
    fmt::format_to(out, "update {} -> {}\n", graph.values[update.initial].name,
                   graph.values[update.final].name);
  }
  if (graph.updates_last) text += "updates last\n";
  if (graph.loss.valid()) fmt::format_to(out, "loss {}\n", graph.values[graph.loss].name);
  text += "end\n";
  return text;
}

}  // namespace reprise::graph
