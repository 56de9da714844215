#include "graph/gradient_paths.h"

#include <algorithm>
#include <span>
#include <string>

#include "base/error.h"

namespace reprise::graph {
namespace {

using Marks = base::IdVector<ValueId, bool>;

bool any_marked(const Marks& marks, const std::vector<ValueId>& values) {
  return std::any_of(values.begin(), values.end(), [&](ValueId v) { return marks[v]; });
}

// Integer values carry no gradient: paths end there.
void mark(const Graph& graph, std::span<const ValueId> values, Marks& marks) {
  for (ValueId v : values) {
    if (is_float(graph.values[v].dtype)) marks[v] = true;
  }
}

// Values that depend on a wanted one.
Marks mark_dependent(const Graph& graph, const std::vector<ValueId>& wanted) {
  Marks marks(graph.values.size(), false);
  mark(graph, wanted, marks);
  for (const Node& node : graph.nodes) {
    if (any_marked(marks, node.inputs)) mark(graph, node.outputs, marks);
  }
  return marks;
}

// Values that the loss depends on.
Marks mark_relevant(const Graph& graph) {
  Marks marks(graph.values.size(), false);
  marks[graph.loss] = true;
  for (std::size_t i = graph.nodes.size(); i-- > 0;) {
    const Node& node = graph.nodes[NodeId(i)];
    if (!any_marked(marks, node.outputs)) continue;
    const int most = op_info(node.op).differentiable_inputs;
    const std::size_t count = most < 0 ? node.inputs.size() : static_cast<std::size_t>(most);
    mark(graph, std::span(node.inputs).first(std::min(count, node.inputs.size())), marks);
  }
  return marks;
}

// "w > conv1 > bn1": from a wanted value down to the node. Long paths show both ends.
std::string path_to(const Graph& graph, const Marks& needed, const Node& node) {
  constexpr std::size_t kEnd = 4;
  std::vector<std::string> names{node.name};
  const Node* at = &node;
  for (;;) {
    const auto next =
        std::find_if(at->inputs.begin(), at->inputs.end(), [&](ValueId v) { return needed[v]; });
    if (next == at->inputs.end()) break;
    const Value& value = graph.values[*next];
    names.push_back(value.producer.valid() ? graph.nodes[value.producer].name : value.name);
    if (!value.producer.valid()) break;
    at = &graph.nodes[value.producer];
  }
  std::reverse(names.begin(), names.end());
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (names.size() > 2 * kEnd && i == kEnd) {
      text += fmt::format(" > ({} more)", names.size() - 2 * kEnd);
      i = names.size() - kEnd;
    }
    text += (i == 0 ? "" : " > ") + names[i];
  }
  return text;
}

// Nodes whose needed output does not hand its gradient on.
void check_no_blocking_op(const Graph& graph, const Marks& needed) {
  constexpr std::size_t kPaths = 20;  // walking back costs the depth each time
  std::string listed;
  std::size_t count = 0;
  for (const Node& node : graph.nodes) {
    if (!any_marked(needed, node.inputs)) continue;
    const OpInfo& info = op_info(node.op);
    for (std::size_t j = 0; j < node.outputs.size(); ++j) {
      if (!needed[node.outputs[j]]) continue;
      const bool flows =
          info.gradient != nullptr &&
          (info.differentiable < 0 || j < static_cast<std::size_t>(info.differentiable));
      if (flows) continue;
      ++count;
      listed += fmt::format("\n  {} '{}', output '{}'", info.name, node.name,
                            graph.values[node.outputs[j]].name);
      if (count <= kPaths) listed += ": " + path_to(graph, needed, node);
    }
  }
  if (count > 0) {
    throw base::input_error(
        "graph '{}': no gradient flows through {} of the outputs between the loss and what is "
        "trained; freeze the parameters before them or use other ops:{}",
        graph.name, count, listed);
  }
}

}  // namespace

base::IdVector<ValueId, bool> needed_gradients(const Graph& forward,
                                               const std::vector<ValueId>& wanted) {
  Marks needed = mark_dependent(forward, wanted);
  const Marks relevant = mark_relevant(forward);
  for (std::size_t i = 0; i < needed.size(); ++i) {
    needed[ValueId(i)] = needed[ValueId(i)] && relevant[ValueId(i)];
  }
  check_no_blocking_op(forward, needed);
  return needed;
}

}  // namespace reprise::graph
