#include "kernels/cuda/id_limits.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace reprise::kernels::cuda {

using graph::NodeId;
using graph::OpKind;
using graph::ValueId;

IdLimits::IdLimits(const graph::Graph& graph) : readers_(graph.values.size()) {
  // Which input each i32 value shows, if any; nodes come after the producers of what they read.
  base::IdVector<ValueId, ValueId> shows(graph.values.size());
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const graph::Value& value = graph.values[ValueId(i)];
    if (!value.producer.valid() && value.dtype == graph::DType::kI32)
      shows[ValueId(i)] = ValueId(i);
  }
  const auto add = [&](ValueId ids, Reader reader) {
    if (shows[ids].valid()) readers_[shows[ids]].push_back(std::move(reader));
  };
  for (const graph::Node& node : graph.nodes) {
    if (node.op == OpKind::kReshape || node.op == OpKind::kSlice) {
      shows[node.outputs[0]] = shows[node.inputs[0]];
    } else if (node.op == OpKind::kEmbedding) {
      add(node.inputs[1],
          {.node = node.name, .what = "id", .limit = graph.values[node.inputs[0]].shape[0]});
    } else if (node.op == OpKind::kSoftmaxCrossEntropy || node.op == OpKind::kCorrectCount) {
      add(node.inputs[1],
          {.node = node.name,
           .what = "label",
           .limit = graph.values[node.inputs[0]].shape[1],
           .may_ignore = true,
           .ignored = std::get<graph::LossAttributes>(node.attributes).ignore_index});
    }
  }
}

void IdLimits::require(ValueId value, std::span<const std::byte> plain) const {
  for (const Reader& reader : readers_[value]) {
    for (std::size_t at = 0; at + sizeof(std::int32_t) <= plain.size();
         at += sizeof(std::int32_t)) {
      std::int32_t id = 0;
      std::memcpy(&id, plain.data() + at, sizeof(id));
      if ((id >= 0 && id < reader.limit) || (reader.may_ignore && id == reader.ignored)) continue;
      throw base::input_error("node '{}': {} {} at position {} is outside of [0, {})", reader.node,
                              reader.what, id, at / sizeof(id), reader.limit);
    }
  }
}

}  // namespace reprise::kernels::cuda
