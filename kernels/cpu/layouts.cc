#include "kernels/cpu/layouts.h"

#include <unordered_map>
#include <unordered_set>

#include "kernels/cpu/costs.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/primitive.h"

namespace reprise::kernels::cpu {
namespace {

using graph::Graph;
using graph::Node;
using graph::NodeId;
using graph::Phase;
using graph::Value;
using graph::ValueId;

// Nodes with equal keys share one kernel.
class KeyWriter {
 public:
  template <class T>
  void add(const T& value) {
    key_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }
  void add(const std::string& text) {
    add(text.size());
    key_ += text;
  }
  void add(const graph::Ints& numbers) {
    add(numbers.size());
    for (const std::int64_t number : numbers) add(number);
  }
  [[nodiscard]] std::string take() { return std::move(key_); }

 private:
  std::string key_;
};

class LayoutPass {
 public:
  LayoutPass(const Graph& graph, const PersistentLayouts* like) : graph_(graph) {
    out_.prepared.graph = graph;
    out_.prepared.graph.nodes = {};
    out_.layouts.resize(graph.values.size());
    for (const Value& value : graph.values) names_.insert(value.name);
    for (const Node& node : graph.nodes) names_.insert(node.name);
    place_outside_values(like);
  }

  LaidOut run() {
    for (const Node& node : graph_.nodes) place(node);
    finish();
    return std::move(out_);
  }

 private:
  void place_outside_values(const PersistentLayouts* like) {
    for (std::size_t i = 0; i < graph_.values.size(); ++i) {
      const ValueId id(i);
      const Value& value = graph_.values[id];
      if (value.producer.valid()) continue;
      if (!graph::is_persistent(value.role)) {
        out_.layouts[id] = out_.table.plain(value.shape, value.dtype);
        continue;
      }
      const Layout* layout = like == nullptr ? nullptr : like->persistent_layout(value.name);
      if (layout != nullptr) {
        out_.layouts[id] = out_.table.of(value.shape, value.dtype, layout->desc, layout->plain);
      }
    }
  }

  // The layout of a value as a reader finds it; a free parameter counts as plain.
  LayoutId present_layout(ValueId id) {
    if (out_.layouts[id].valid()) return out_.layouts[id];
    return out_.table.plain(graph_.values[id].shape, graph_.values[id].dtype);
  }

  void place(const Node& node) {
    const Booked& booked = book(node);
    Node placed = node;
    const Phase phase = node.phase == Phase::kForward ? Phase::kForward : Phase::kBackward;
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      placed.inputs[i] = in_layout(node.inputs[i], booked.reads[i], phase);
    }
    for (const graph::InplacePair& pair : booked.node.inplace) {
      const ValueId read = node.inputs[static_cast<std::size_t>(pair.input)];
      REPRISE_CHECK(!pair.forced || !graph::is_persistent(graph_.values[read].role) ||
                        placed.inputs[static_cast<std::size_t>(pair.input)] == read,
                    "node '{}' would update a copy of '{}'", node.name, graph_.values[read].name);
    }
    const NodeId id = out_.prepared.graph.nodes.push_back(std::move(placed));
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      out_.layouts[node.outputs[o]] = booked.writes[o];
      out_.prepared.graph.values[node.outputs[o]].producer = id;
    }
    out_.prepared.nodes.push_back(booked.node);
    out_.kernels.push_back(booked.kernel);
  }

  const Booked& book(const Node& node) {
    std::vector<LayoutId> layouts;
    std::vector<bool> free;
    KeyWriter key;
    key.add(node.op);
    key.add(node.accumulate);
    for (const ValueId input : node.inputs) {
      layouts.push_back(present_layout(input));
      free.push_back(!out_.layouts[input].valid());
      key.add(layouts.back());
      key.add(static_cast<bool>(free.back()));
    }
    graph::visit(node.attributes, [&key](const char*, const auto& field) { key.add(field); });
    const std::string text = key.take();
    if (const auto known = booked_.find(text); known != booked_.end()) return known->second;
    Booking booking(graph_, node, out_.table, std::move(layouts), std::move(free));
    try {
      std::unique_ptr<Kernel> kernel = plan_kernel(booking);
      return booked_.emplace(text, booking.finish(std::move(kernel))).first->second;
    } catch (const dnnl::error& error) {
      throw booking.unsupported(fmt::format("oneDNN: {}", error.what()));
    }
  }

  ValueId in_layout(ValueId id, LayoutId wanted, Phase phase) {
    if (!out_.layouts[id].valid()) out_.layouts[id] = wanted;
    if (out_.layouts[id] == wanted) return id;
    const std::string key =
        fmt::format("{} {} {}", id.index(), wanted.index(), phase == Phase::kForward ? 'f' : 'b');
    if (const auto known = forms_.find(key); known != forms_.end()) return known->second;
    const ValueId form = insert_reorder(id, wanted, phase);
    forms_.emplace(key, form);
    return form;
  }

  ValueId insert_reorder(ValueId id, LayoutId wanted, Phase phase) {
    // Layouts with different axes meet in the row-major form only.
    if (const auto [from, to] = std::pair(out_.table[out_.layouts[id]], out_.table[wanted]);
        !from.is_plain && !to.is_plain && !same_bytes(from.plain, to.plain)) {
      const Value& value = out_.prepared.graph.values[id];
      id = in_layout(id, out_.table.plain(value.shape, value.dtype), phase);
    }
    const Layout& from = out_.table[out_.layouts[id]];
    const Layout& to = out_.table[wanted];
    REPRISE_CHECK(from.forward == nullptr && to.forward == nullptr,
                  "a workspace cannot change its layout");
    Graph& graph = out_.prepared.graph;
    Value value = graph.values[id];
    const bool forward = phase == Phase::kForward;
    value.name =
        unique_name(fmt::format("{}.{}{}", value.name, to.name, forward ? "" : ".backward"));
    value.role = forward ? graph::Role::kActivation : graph::Role::kGradient;
    value.trainable = false;
    value.producer = NodeId(graph.nodes.size());
    value.output = 0;
    const ValueId made = graph.values.push_back(value);
    graph.nodes.push_back({.name = unique_name("reorder." + value.name),
                           .op = graph::OpKind::kReorder,
                           .phase = phase,
                           .attributes = graph::ReorderAttributes{to.name},
                           .inputs = {id},
                           .outputs = {made}});
    out_.layouts.push_back(wanted);
    graph::PreparedNode prepared;
    out_.kernels.push_back(reorder(from, to, prepared));
    out_.prepared.nodes.push_back(prepared);
    return made;
  }

  std::shared_ptr<Kernel> reorder(const Layout& from, const Layout& to,
                                  graph::PreparedNode& prepared) {
    const Desc& source = from.is_plain ? to.plain : from.desc;
    const Desc& target = to.is_plain ? from.plain : to.desc;
    std::shared_ptr<Kernel> kernel = reorder_kernel(source, target, prepared.workspace_bytes);
    prepared.bytes_moved = static_cast<double>(from.bytes + to.bytes);
    prepared.cost_ns = analytic_cost_ns(graph::OpKind::kReorder, 0, prepared.bytes_moved);
    return kernel;
  }

  std::string unique_name(const std::string& wish) {
    std::string name = wish;
    for (int i = 2; !names_.insert(name).second; ++i) name = fmt::format("{}.{}", wish, i);
    return name;
  }

  void finish() {
    graph::PreparedGraph& prepared = out_.prepared;
    prepared.backend = "cpu";
    prepared.cost_source = "analytic";
    for (std::size_t i = 0; i < prepared.graph.values.size(); ++i) {
      const ValueId id(i);
      if (!out_.layouts[id].valid()) out_.layouts[id] = present_layout(id);
      prepared.value_bytes.push_back(out_.table[out_.layouts[id]].bytes);
      prepared.value_layouts.push_back(out_.table[out_.layouts[id]].name);
    }
    for (const graph::Update& update : prepared.graph.updates) {
      REPRISE_CHECK(out_.layouts[update.initial] == out_.layouts[update.final],
                    "'{}' changes its layout in its update",
                    prepared.graph.values[update.initial].name);
    }
  }

  const Graph& graph_;
  LaidOut out_;
  std::unordered_map<std::string, Booked> booked_;
  std::unordered_map<std::string, ValueId> forms_;
  std::unordered_set<std::string> names_;
};

}  // namespace

LaidOut choose_layouts(const Graph& graph, const PersistentLayouts* like) {
  return LayoutPass(graph, like).run();
}

}  // namespace reprise::kernels::cpu
