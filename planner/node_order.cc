#include "planner/node_order.h"

#include <algorithm>

namespace reprise::planner {
namespace {

using base::Bytes;
using graph::NodeId;
using graph::Phase;
using graph::ValueId;

class Lister {
 public:
  Lister(const graph::PreparedGraph& prepared, const base::IdVector<ValueId, ValueId>& root,
         const std::vector<bool>& needed)
      : prepared_(prepared),
        graph_(prepared.graph),
        root_(root),
        needed_(needed),
        maker_(graph_.values.size()),
        readers_(graph_.values.size()),
        read_backward_(graph_.values.size(), false),
        trunk_(graph_.nodes.size(), false),
        listed_(graph_.nodes.size(), false) {
    order_.late.assign(graph_.nodes.size(), false);
  }

  NodeOrder run() {
    find_readers();
    find_trunk();
    find_late_nodes();
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!needed_[n] || order_.late[n]) continue;
      list_what_it_needs(NodeId(n));
      list(NodeId(n));
    }
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (order_.late[n] && !listed_[n]) list_late(NodeId(n));
    }
    return std::move(order_);
  }

 private:
  void find_readers() {
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      if (!needed_[n]) continue;
      const graph::Node& node = graph_.nodes[NodeId(n)];
      for (const ValueId output : node.outputs) maker_[output] = NodeId(n);
      for (const ValueId input : node.inputs) {
        readers_[root_[input]].push_back(NodeId(n));
        if (node.phase == Phase::kBackward) read_backward_[root_[input].index()] = true;
      }
    }
  }

  // What the first backward node of each pass that reads of the forward part needs.
  void find_trunk() {
    bool open = true;
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const graph::Node& node = graph_.nodes[NodeId(n)];
      if (!needed_[n]) continue;
      if (node.phase == Phase::kForward) open = true;
      if (node.phase != Phase::kBackward || !open) continue;
      open = std::none_of(node.inputs.begin(), node.inputs.end(), [&](ValueId input) {
        const NodeId maker = maker_[root_[input]];
        return maker.valid() && graph_.nodes[maker].phase == Phase::kForward;
      });
      if (!open) add_to_trunk(NodeId(n));
    }
  }
  void add_to_trunk(NodeId top) {
    std::vector<NodeId> stack = {top};
    while (!stack.empty()) {
      const NodeId node = stack.back();
      stack.pop_back();
      for (const ValueId input : graph_.nodes[node].inputs) {
        const NodeId maker = maker_[root_[input]];
        if (!maker.valid() || trunk_[maker.index()]) continue;
        trunk_[maker.index()] = true;
        stack.push_back(maker);
      }
    }
  }

  void find_late_nodes() {
    // Readers of a node come behind it: only the backward part needs it, down to what it reads.
    std::vector<bool> for_backward(graph_.nodes.size(), false);
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
      const graph::Node& node = graph_.nodes[NodeId(n)];
      for_backward[n] = needed_[n] && !trunk_[n] && node.phase == Phase::kForward &&
                        graph::op_info(node.op).recomputable &&
                        std::all_of(node.outputs.begin(), node.outputs.end(), [&](ValueId output) {
                          return std::all_of(
                              readers_[output].begin(), readers_[output].end(), [&](NodeId reader) {
                                return graph_.nodes[reader].phase == Phase::kBackward ||
                                       for_backward[reader.index()];
                              });
                        });
    }
    // And what they read is there in any case, which depends on nodes before them.
    for (std::size_t n = 0; n < graph_.nodes.size(); ++n) {
      const graph::Node& node = graph_.nodes[NodeId(n)];
      if (!for_backward[n]) continue;
      Bytes held = 0;  // of what it reads, only for it
      bool waits_for_late = false;
      for (const ValueId input : node.inputs) {
        const ValueId value = root_[input];
        const bool late = maker_[value].valid() && order_.late[maker_[value].index()];
        waits_for_late = waits_for_late || late;
        if (!late && !read_backward_[value.index()] &&
            !graph::is_persistent(graph_.values[value].role))
          held += prepared_.value_bytes[value];
      }
      Bytes made = 0;
      for (const ValueId output : node.outputs) made += prepared_.value_bytes[output];
      order_.late[n] = held <= made && (waits_for_late || !is_end(NodeId(n)));
    }
    // A reader that is not late after all is not to wait.
    for (std::size_t n = graph_.nodes.size(); n-- > 0;) {
      if (!order_.late[n]) continue;
      for (const ValueId output : graph_.nodes[NodeId(n)].outputs) {
        for (const NodeId reader : readers_[output]) {
          if (graph_.nodes[reader].phase == Phase::kForward && !order_.late[reader.index()])
            order_.late[n] = false;
        }
      }
    }
  }

  void list(NodeId node) {
    listed_[node.index()] = true;
    order_.nodes.push_back(node);
  }
  [[nodiscard]] bool waits(NodeId node) const {
    return node.valid() && order_.late[node.index()] && !listed_[node.index()];
  }

  // Late nodes that make what it reads, and those that read what it destroys.
  void list_what_it_needs(NodeId node) {
    for (const ValueId input : graph_.nodes[node].inputs) {
      if (waits(maker_[root_[input]])) list_late(maker_[root_[input]]);
    }
    for (const graph::InplacePair& pair : prepared_.nodes[node].inplace) {
      if (!pair.forced) continue;
      const auto input = static_cast<std::size_t>(pair.input);
      for (const NodeId reader : readers_[root_[graph_.nodes[node].inputs[input]]]) {
        if (waits(reader)) list_late(reader);
      }
    }
  }

  // The node behind the late ones that it reads from, then those whose inputs are all there now and
  // that no backward node waits for.
  void list_late(NodeId wanted) {
    std::vector<NodeId> stack = {wanted};
    while (!stack.empty()) {
      const NodeId node = stack.back();
      const auto& inputs = graph_.nodes[node].inputs;
      const auto missing = std::find_if(inputs.begin(), inputs.end(), [&](ValueId input) {
        const NodeId maker = maker_[root_[input]];
        return maker.valid() && !listed_[maker.index()];
      });
      if (missing != inputs.end()) {
        stack.push_back(maker_[root_[*missing]]);
        continue;
      }
      stack.pop_back();
      if (listed_[node.index()]) continue;
      list(node);
      for (const ValueId output : graph_.nodes[node].outputs) {
        for (const NodeId reader : readers_[output]) {
          if (waits(reader) && is_end(reader) && has_inputs(reader)) stack.push_back(reader);
        }
      }
    }
  }
  // Does no backward node read what it makes?
  [[nodiscard]] bool is_end(NodeId node) const {
    const auto& outputs = graph_.nodes[node].outputs;
    return std::none_of(outputs.begin(), outputs.end(),
                        [&](ValueId output) { return read_backward_[output.index()]; });
  }
  [[nodiscard]] bool has_inputs(NodeId node) const {
    const auto& inputs = graph_.nodes[node].inputs;
    return std::none_of(inputs.begin(), inputs.end(),
                        [&](ValueId input) { return waits(maker_[root_[input]]); });
  }

  const graph::PreparedGraph& prepared_;
  const graph::Graph& graph_;
  const base::IdVector<ValueId, ValueId>& root_;
  const std::vector<bool>& needed_;
  base::IdVector<ValueId, NodeId> maker_;                 // of roots; invalid where none is needed
  base::IdVector<ValueId, std::vector<NodeId>> readers_;  // of roots
  std::vector<bool> read_backward_;                       // per value: by a backward node
  std::vector<bool> trunk_, listed_;                      // per node
  NodeOrder order_;
};

}  // namespace

NodeOrder order_nodes(const graph::PreparedGraph& prepared,
                      const base::IdVector<ValueId, ValueId>& root,
                      const std::vector<bool>& needed) {
  return Lister(prepared, root, needed).run();
}

}  // namespace reprise::planner
