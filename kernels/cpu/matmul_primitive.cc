#include "kernels/cpu/matmul_primitive.h"

namespace reprise::kernels::cpu {
namespace {

dnnl::matmul::primitive_desc describe(const MatmulSizes& sizes) {
  dnnl::primitive_attr attributes = user_scratchpad();
  if (sizes.accumulate) {
    dnnl::post_ops sum;
    sum.append_sum(1.0f);
    attributes.set_post_ops(sum);
  }
  if (!sizes.bias) {
    return {dnnl::matmul::desc(sizes.a, sizes.b, sizes.y), attributes, cpu_engine()};
  }
  const Dims dims = sizes.y.dims();
  Dims bias(dims.size(), 1);
  bias.back() = dims.back();
  return {dnnl::matmul::desc(sizes.a, sizes.b, row_major(bias), sizes.y), attributes, cpu_engine()};
}

std::vector<Primitive::Argument> arguments(const dnnl::matmul::primitive_desc& pd, bool bias) {
  std::vector<Primitive::Argument> list{{DNNL_ARG_SRC, pd.src_desc()},
                                        {DNNL_ARG_WEIGHTS, pd.weights_desc()},
                                        {DNNL_ARG_DST, pd.dst_desc()}};
  if (bias) list.push_back({DNNL_ARG_BIAS, pd.bias_desc()});
  if (pd.scratchpad_desc().get_size() > 0) {
    list.push_back({DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()});
  }
  return list;
}

}  // namespace

MatmulPrimitive::MatmulPrimitive(const MatmulSizes& sizes)
    : MatmulPrimitive(describe(sizes), sizes.bias) {}

MatmulPrimitive::MatmulPrimitive(const dnnl::matmul::primitive_desc& pd, bool bias)
    : bias_(bias),
      b_desc_(pd.weights_desc()),
      scratch_bytes_(static_cast<Bytes>(pd.scratchpad_desc().get_size())),
      primitive_(dnnl::matmul(pd), arguments(pd, bias)) {}

void MatmulPrimitive::execute(const Run& run, const void* a, const void* b, const void* bias,
                              void* y, void* scratch) {
  primitive_.bind(0, a);
  primitive_.bind(1, b);
  primitive_.bind(2, y);
  std::size_t slot = 3;
  if (bias_) primitive_.bind(slot++, bias);
  if (scratch_bytes_ > 0) primitive_.bind(slot, scratch);
  primitive_.execute(run);
}

Desc matrix(std::int64_t rows, std::int64_t columns, graph::DType dtype) {
  return {{rows, columns}, data_type(dtype), Dims{columns, 1}};
}

Desc transposed_matrix(std::int64_t rows, std::int64_t columns, graph::DType dtype) {
  return {{columns, rows}, data_type(dtype), Dims{1, columns}};
}

}  // namespace reprise::kernels::cpu
