#include "kernels/cuda/booking.h"

#include <algorithm>
#include <cmath>

#include "kernels/cuda/costs.h"

namespace reprise::kernels::cuda {

Bytes plain_bytes(const graph::Value& value) {
  return base::checked_mul(graph::element_count(value.shape), graph::dtype_bytes(value.dtype),
                           value.name);
}

std::size_t StepScalars::add(const std::string& key, Function function) {
  const auto [found, is_new] = by_key_.emplace(key, functions_.size());
  if (is_new) functions_.push_back(std::move(function));
  return found->second;
}

void StepScalars::evaluate(const graph::StepContext& context, double* into) const {
  for (const Function& function : functions_) *into++ = function(context);
}

Booking::Booking(const graph::Graph& graph, const graph::Node& node, Device& device,
                 StepScalars& scalars)
    : graph_(graph),
      node_(node),
      device_(device),
      scalars_(scalars),
      own_bytes_(node.outputs.size()) {}

std::size_t Booking::plain_inputs() const {
  return node_.inputs.size() - (node_.accumulate ? graph::op_info(node_.op).accumulated.size() : 0);
}

const graph::Value& Booking::input(std::size_t i) const {
  return graph_.values[node_.inputs[i]];
}
const graph::Value& Booking::output(std::size_t o) const {
  return graph_.values[node_.outputs[o]];
}

std::size_t Booking::workspace(Bytes bytes) {
  const Bytes offset = base::align_up(prepared_.workspace_bytes, graph::kArenaAlignment);
  if (bytes > 0) prepared_.workspace_bytes = offset + bytes;
  return static_cast<std::size_t>(offset);
}

std::size_t Booking::algorithm(const std::string& name, Bytes workspace_bytes,
                               double relative_cost) {
  prepared_.others.push_back({.name = name, .workspace_bytes = workspace_bytes});
  relative_costs_.push_back(relative_cost);
  return prepared_.others.size();
}

void Booking::never_in_place(int input, int output) {
  not_in_place_.emplace_back(input, output);
}

void Booking::own_form(std::size_t output, Bytes bytes) {
  own_bytes_[output] = bytes;
}

Booking::Booked Booking::finish(std::unique_ptr<Kernel> kernel) {
  double bytes = 0;
  for (std::size_t i = 0; i < inputs(); ++i) {
    bytes += static_cast<double>(plain_bytes(input(i)));
  }
  for (std::size_t o = 0; o < node_.outputs.size(); ++o) {
    const Bytes plain = plain_bytes(output(o));
    bytes += static_cast<double>(own_bytes_[o] > 0 ? own_bytes_[o] : plain);
  }
  if (prepared_.bytes_moved == 0) prepared_.bytes_moved = bytes;
  const bool bf16 = inputs() > 0 && input(0).dtype == graph::DType::kBF16;
  prepared_.cost_ns =
      analytic_cost_ns(node_.op, prepared_.flops, prepared_.bytes_moved, launches_, bf16);
  for (std::size_t k = 0; k < relative_costs_.size(); ++k) {
    prepared_.others[k].cost_ns = static_cast<std::int64_t>(
        std::ceil(relative_costs_[k] * static_cast<double>(prepared_.cost_ns)));
  }
  for (const graph::InplacePair& pair : graph::inplace_pairs(node_)) {
    const bool refused =
        std::ranges::find(not_in_place_, std::pair<int, int>(pair.input, pair.output)) !=
        not_in_place_.end();
    REPRISE_CHECK(!pair.forced || !refused, "node '{}': input {} must be updated in place",
                  node_.name, pair.input);
    if (!refused) prepared_.inplace.push_back(pair);
  }
  return {std::move(prepared_), std::move(own_bytes_), std::move(kernel)};
}

base::Error Booking::unsupported(const std::string& why) const {
  std::string shapes;
  for (const graph::ValueId value : node_.inputs) {
    shapes += fmt::format(" {}", graph::shape_text(graph_.values[value].shape));
  }
  return base::input_error("node '{}' ({} of{}): the CUDA backend has no kernel: {}", node_.name,
                           graph::op_info(node_.op).name, shapes, why);
}

}  // namespace reprise::kernels::cuda
