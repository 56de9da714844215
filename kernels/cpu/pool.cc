// Windowed pooling on oneDNN. The indices of max pooling are its workspace; their layout keeps the
// forward primitive, without which the gradient cannot read them.

#include "kernels/cpu/ops.h"
#include "kernels/cpu/primitive.h"

namespace reprise::kernels::cpu {
namespace {

using ForwardDesc = dnnl::pooling_forward::primitive_desc;
using dnnl::algorithm;
using graph::OpKind;
using graph::Pool2dAttributes;

algorithm pool_algorithm(bool max, const Pool2dAttributes& a) {
  if (max) return algorithm::pooling_max;
  return a.count_padding ? algorithm::pooling_avg_include_padding
                         : algorithm::pooling_avg_exclude_padding;
}

ForwardDesc forward(algorithm kind, const Pool2dAttributes& a, const Desc& x, const Desc& y) {
  return {dnnl::pooling_forward::desc(dnnl::prop_kind::forward_training, kind, x, y, a.stride,
                                      a.kernel, a.padding, a.padding),
          user_scratchpad(), cpu_engine()};
}

// Lanes of a channel layout; 0 when it is none.
std::int64_t lanes_of(const Layout& layout) {
  ChannelView view;
  if (layout.is_plain) return 1;
  return channel_view(layout, view) ? view.lanes : 0;
}

double window_flops(const Pool2dAttributes& a, const graph::Shape& y) {
  return static_cast<double>(graph::element_count(y) * a.kernel[0] * a.kernel[1]);
}

}  // namespace

// x => y indices?
std::unique_ptr<Kernel> plan_pool(Booking& b) {
  const auto& a = b.attributes<Pool2dAttributes>();
  const bool max = b.node().op == OpKind::kMaxPool;
  std::int64_t lanes = lanes_of(b.layout(0));
  if (lanes == 0) {
    b.require_plain(0);
    lanes = 1;
  }
  const Desc x = b.layout(0).desc;
  const Desc y = channel_desc(b.output(0).shape, lanes, b.output(0).dtype);
  const auto pd = std::make_shared<const ForwardDesc>(forward(pool_algorithm(max, a), a, x, y));
  b.produce(0, y);
  b.flops(window_flops(a, b.output(0).shape));
  const std::size_t at = b.workspace(static_cast<Bytes>(pd->scratchpad_desc().get_size()));
  std::vector<Operand> operands{reads(DNNL_ARG_SRC, 0, x), writes(DNNL_ARG_DST, 0, y),
                                scratch(pd->scratchpad_desc(), at)};
  if (max) {
    b.produce_workspace(1, pd->workspace_desc(), pd);
    operands.push_back(writes(DNNL_ARG_WORKSPACE, 1, pd->workspace_desc()));
  }
  return std::make_unique<PrimitiveKernel>(dnnl::pooling_forward(*pd), operands);
}

// dy indices? => dx
std::unique_ptr<Kernel> plan_pool_grad(Booking& b) {
  const auto& a = b.attributes<Pool2dAttributes>();
  const bool max = b.node().op == OpKind::kMaxPoolGrad;
  const Dims dx_dims = b.output(0).shape;
  std::shared_ptr<const ForwardDesc> hint;
  if (max) {
    hint = std::static_pointer_cast<const ForwardDesc>(b.layout(1).forward);
    if (hint == nullptr) {
      throw b.unsupported("the indices do not come from a max_pool of the same program");
    }
    b.require(0, hint->dst_desc());
  } else {
    std::int64_t lanes = lanes_of(b.layout(0));
    if (lanes == 0) {
      b.require_plain(0);
      lanes = 1;
    }
    const graph::DType type = b.input(0).dtype;
    hint = std::make_shared<const ForwardDesc>(
        forward(pool_algorithm(false, a), a, channel_desc(dx_dims, lanes, type),
                channel_desc(b.input(0).shape, lanes, type)));
  }
  const Desc dx = hint->src_desc();
  const Desc dy = hint->dst_desc();
  const dnnl::pooling_backward::primitive_desc pd(
      dnnl::pooling_backward::desc(pool_algorithm(max, a), dx, dy, a.stride, a.kernel, a.padding,
                                   a.padding),
      user_scratchpad(), cpu_engine(), *hint);
  b.produce(0, dx);
  b.flops(window_flops(a, b.input(0).shape));
  const std::size_t at = b.workspace(static_cast<Bytes>(pd.scratchpad_desc().get_size()));
  std::vector<Operand> operands{reads(DNNL_ARG_DIFF_DST, 0, dy), writes(DNNL_ARG_DIFF_SRC, 0, dx),
                                scratch(pd.scratchpad_desc(), at)};
  if (max) operands.push_back(reads(DNNL_ARG_WORKSPACE, 1, pd.workspace_desc()));
  return std::make_unique<PrimitiveKernel>(dnnl::pooling_backward(pd), operands);
}

}  // namespace reprise::kernels::cpu
