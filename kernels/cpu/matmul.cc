// Matrix products and the gradient of a bias.

#include <cstring>

#include "kernels/cpu/channel_sum.h"
#include "kernels/cpu/matmul_primitive.h"
#include "kernels/cpu/ops.h"

namespace reprise::kernels::cpu {
namespace {

// Row-major storage of an operand; the last two axes swap when it is stored transposed.
Desc operand_desc(const graph::Value& value, bool transpose) {
  const graph::Shape& shape = value.shape;
  Desc desc = row_major(shape, value.dtype);
  if (!transpose) return desc;
  std::vector<int> axes(shape.size());
  for (std::size_t d = 0; d < axes.size(); ++d) axes[d] = static_cast<int>(d);
  std::swap(axes[axes.size() - 1], axes[axes.size() - 2]);
  return desc.permute_axes(axes);
}

}  // namespace

// a b bias? acc? => y
std::unique_ptr<Kernel> plan_matmul(Booking& b) {
  const auto& attributes = b.attributes<graph::MatmulAttributes>();
  const graph::Shape& y = b.output(0).shape;
  const bool bias = b.plain_inputs() == 3;
  const bool accumulate = b.node().accumulate;
  for (std::size_t i = 0; i < b.inputs(); ++i) b.require_plain(i);
  b.produce_plain(0);
  const Desc a = operand_desc(b.input(0), attributes.transpose_a);
  auto product = std::make_shared<MatmulPrimitive>(
      MatmulSizes{.a = a,
                  .b = operand_desc(b.input(1), attributes.transpose_b),
                  .y = row_major(y, b.output(0).dtype),
                  .bias = bias,
                  .accumulate = accumulate});
  b.flops(2.0 * static_cast<double>(graph::element_count(y)) *
          static_cast<double>(a.dims().back()));
  const std::size_t at = b.workspace(product->scratch_bytes());
  const std::size_t sum = b.inputs() - 1;
  const auto bytes = static_cast<std::size_t>(b.output_layout(0).bytes);
  return make_kernel([=](const Run& run) {
    if (accumulate && run.inputs[sum] != run.outputs[0]) {
      std::memcpy(run.outputs[0], run.inputs[sum], bytes);
    }
    product->execute(run, run.inputs[0], run.inputs[1], bias ? run.inputs[2] : nullptr,
                     run.outputs[0], run.workspace + at);
  });
}

// dy acc? => db: the sum over all axes but one.
std::unique_ptr<Kernel> plan_bias_grad(Booking& b) {
  const std::int64_t axis = b.attributes<graph::AxisAttributes>().axis;
  const graph::Shape& dy = b.input(0).shape;
  const bool accumulate = b.node().accumulate;
  ChannelView view;
  if (axis != 1 || !channel_view(b.layout(0), view)) {
    b.require_plain(0);
    view = {.channels = dy[static_cast<std::size_t>(axis)]};
    for (std::size_t d = 0; d < dy.size(); ++d) {
      if (static_cast<std::int64_t>(d) < axis) view.batch *= dy[d];
      if (static_cast<std::int64_t>(d) > axis) view.spatial *= dy[d];
    }
    view.lanes = view.spatial == 1 ? view.channels : 1;
    view.blocks = view.spatial == 1 ? 1 : view.channels;
  }
  if (accumulate) b.require_plain(1);
  b.produce_plain(0);
  b.flops(static_cast<double>(view.elements()));
  return with_storage(b.input(0).dtype, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    return make_kernel([=](const Run& run) {
      channel_sums(view, run.input<T>(0), accumulate ? run.input<float>(1) : nullptr,
                   run.output<float>(0));
    });
  });
}

}  // namespace reprise::kernels::cpu
