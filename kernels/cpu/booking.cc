#include "kernels/cpu/booking.h"

#include "kernels/cpu/costs.h"

namespace reprise::kernels::cpu {
Booking::Booking(const graph::Graph& graph, const graph::Node& node, LayoutTable& table,
                 std::vector<LayoutId> layouts, std::vector<bool> free)
    : graph_(graph), node_(node), table_(table), free_(std::move(free)) {
  booked_.reads = std::move(layouts);
  booked_.writes.resize(node.outputs.size());
}

std::size_t Booking::plain_inputs() const {
  return node_.inputs.size() - (node_.accumulate ? graph::op_info(node_.op).accumulated.size() : 0);
}

const graph::Value& Booking::input(std::size_t i) const {
  return graph_.values[node_.inputs[i]];
}
const graph::Value& Booking::output(std::size_t o) const {
  return graph_.values[node_.outputs[o]];
}

void Booking::require(std::size_t i, const Desc& desc, const Desc& plain_form) {
  booked_.reads[i] = table_.of(input(i).shape, input(i).dtype, desc, plain_form);
}
void Booking::require(std::size_t i, const Desc& desc) {
  require(i, desc, row_major(input(i).shape, input(i).dtype));
}
void Booking::require_plain(std::size_t i) {
  booked_.reads[i] = table_.plain(input(i).shape, input(i).dtype);
}
void Booking::require_like(std::size_t i, std::size_t other_input) {
  const Layout& other = layout(other_input);
  if (other.is_plain) {
    require_plain(i);
  } else {
    require(i, with_dtype(other.desc, input(i).dtype), with_dtype(other.plain, input(i).dtype));
  }
}

void Booking::produce(std::size_t o, const Desc& desc, const Desc& plain_form) {
  booked_.writes[o] = table_.of(output(o).shape, output(o).dtype, desc, plain_form);
}
void Booking::produce(std::size_t o, const Desc& desc) {
  produce(o, desc, row_major(output(o).shape, output(o).dtype));
}
void Booking::produce_plain(std::size_t o) {
  booked_.writes[o] = table_.plain(output(o).shape, output(o).dtype);
}
void Booking::produce_like(std::size_t o, std::size_t input) {
  const Layout& other = layout(input);
  if (other.is_plain) {
    produce_plain(o);
  } else {
    produce(o, with_dtype(other.desc, output(o).dtype), with_dtype(other.plain, output(o).dtype));
  }
}
void Booking::produce_workspace(std::size_t o, const Desc& desc,
                                std::shared_ptr<const void> forward) {
  booked_.writes[o] =
      table_.workspace(static_cast<Bytes>(desc.get_size()), desc, std::move(forward));
}

void Booking::require_common(std::size_t begin, std::size_t end) {
  std::size_t chosen = begin;
  while (chosen < end && (layout(chosen).is_plain || free(chosen))) ++chosen;
  for (std::size_t i = begin; i < end; ++i) {
    if (chosen == end) {
      require_plain(i);
    } else if (i != chosen) {
      require_like(i, chosen);
    }
  }
}

ChannelView Booking::require_channels(std::size_t i) {
  ChannelView view;
  if (channel_view(layout(i), view)) return view;
  require_plain(i);
  const bool plain_has_a_view = channel_view(layout(i), view);
  REPRISE_CHECK(plain_has_a_view, "node '{}': no channels", node_.name);
  return view;
}

std::size_t Booking::workspace(Bytes bytes) {
  const Bytes offset = base::align_up(booked_.node.workspace_bytes, graph::kArenaAlignment);
  if (bytes > 0) booked_.node.workspace_bytes = offset + bytes;
  return static_cast<std::size_t>(offset);
}

Booked Booking::finish(std::unique_ptr<Kernel> kernel) {
  double bytes = 0;
  for (const LayoutId id : booked_.reads) bytes += static_cast<double>(table_[id].bytes);
  for (std::size_t o = 0; o < booked_.writes.size(); ++o) {
    REPRISE_CHECK(booked_.writes[o].valid(), "node '{}': no layout for output {}", node_.name, o);
    bytes += static_cast<double>(table_[booked_.writes[o]].bytes);
  }
  graph::PreparedNode& booked = booked_.node;
  if (booked.bytes_moved == 0) booked.bytes_moved = bytes;
  booked.cost_ns = analytic_cost_ns(node_.op, booked.flops, booked.bytes_moved);
  for (const graph::InplacePair& pair : graph::inplace_pairs(node_)) {
    const LayoutId read = booked_.reads[static_cast<std::size_t>(pair.input)];
    const LayoutId write = booked_.writes[static_cast<std::size_t>(pair.output)];
    REPRISE_CHECK(!pair.forced || read == write,
                  "node '{}': input {} is updated in place but changes its layout", node_.name,
                  pair.input);
    if (read == write) booked.inplace.push_back(pair);
  }
  booked_.kernel = std::move(kernel);
  return std::move(booked_);
}

base::Error Booking::unsupported(const std::string& why) const {
  std::string shapes;
  for (const graph::ValueId value : node_.inputs) {
    shapes += fmt::format(" {}", graph::shape_text(graph_.values[value].shape));
  }
  return base::input_error("node '{}' ({} of{}): the CPU backend has no kernel: {}", node_.name,
                           graph::op_info(node_.op).name, shapes, why);
}

}  // namespace reprise::kernels::cpu
