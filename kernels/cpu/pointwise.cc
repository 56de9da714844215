// Element by element, in whatever layout the values have. Own loops map zero to zero, so that the
// padding of blocked layouts stays zero; the others are oneDNN's.

#include "kernels/cpu/pointwise.h"

#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/primitive.h"

namespace reprise::kernels::cpu {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;
using graph::OpKind;

// NaN goes through, so that a broken run shows.
REPRISE_VECTOR void relu(const float* x, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] < 0.0f ? 0.0f : x[i];
}

REPRISE_VECTOR void relu_grad(const float* y, const float* dy, float* dx, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}

REPRISE_VECTOR void add(const float* a, const float* b, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

REPRISE_VECTOR void mul(const float* a, const float* b, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] * b[i];
}

REPRISE_VECTOR void scale(const float* x, float factor, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = factor * x[i];
}

REPRISE_VECTOR void positive(const float* x, std::int32_t* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] > 0.0f ? 1 : 0;
}

REPRISE_VECTOR void add_counts(const std::int32_t* a, const std::int32_t* b, std::int32_t* y,
                               std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = a[i] + b[i];
}

// Stored elements, padding included.
std::int64_t stored_elements(const Layout& layout) {
  return layout.bytes / static_cast<Bytes>(sizeof(float));  // f32 and i32 alike
}

template <void (*kLoop)(const float*, float*, std::int64_t)>
std::unique_ptr<Kernel> unary(std::int64_t count) {
  return make_kernel([count](const Run& run) {
    const float* x = run.input<float>(0);
    float* y = run.output<float>(0);
    parallel_ranges(count, count, [&](std::int64_t begin, std::int64_t end) {
      kLoop(x + begin, y + begin, end - begin);
    });
  });
}

template <void (*kLoop)(const float*, const float*, float*, std::int64_t)>
std::unique_ptr<Kernel> binary(std::int64_t count) {
  return make_kernel([count](const Run& run) {
    const float* a = run.input<float>(0);
    const float* b = run.input<float>(1);
    float* y = run.output<float>(0);
    parallel_ranges(count, count, [&](std::int64_t begin, std::int64_t end) {
      kLoop(a + begin, b + begin, y + begin, end - begin);
    });
  });
}

std::unique_ptr<Kernel> scaled(std::int64_t count, float factor) {
  return make_kernel([=](const Run& run) {
    const float* x = run.input<float>(0);
    float* y = run.output<float>(0);
    parallel_ranges(count, count, [&](std::int64_t begin, std::int64_t end) {
      scale(x + begin, factor, y + begin, end - begin);
    });
  });
}

std::unique_ptr<Kernel> positives(std::int64_t count) {
  return make_kernel([=](const Run& run) {
    const float* x = run.input<float>(0);
    auto* y = run.output<std::int32_t>(0);
    parallel_ranges(count, count, [&](std::int64_t begin, std::int64_t end) {
      positive(x + begin, y + begin, end - begin);
    });
  });
}

std::unique_ptr<Kernel> sums_of_counts(std::int64_t count) {
  return make_kernel([=](const Run& run) {
    add_counts(run.input<std::int32_t>(0), run.input<std::int32_t>(1), run.output<std::int32_t>(0),
               count);
  });
}

dnnl::eltwise_forward::primitive_desc eltwise(algorithm kind, const Desc& x) {
  return {dnnl::eltwise_forward::desc(prop_kind::forward_training, kind, x, 0.0f, 0.0f),
          user_scratchpad(), cpu_engine()};
}

// x => y
std::unique_ptr<Kernel> eltwise_kernel(Booking& b, algorithm kind) {
  const Desc x = b.layout(0).desc;
  const auto pd = eltwise(kind, x);
  const std::size_t at = b.workspace(static_cast<Bytes>(pd.scratchpad_desc().get_size()));
  return std::make_unique<PrimitiveKernel>(
      dnnl::eltwise_forward(pd), std::vector{reads(DNNL_ARG_SRC, 0, x), writes(DNNL_ARG_DST, 0, x),
                                             scratch(pd.scratchpad_desc(), at)});
}

// (x or y) dy => dx
std::unique_ptr<Kernel> eltwise_grad_kernel(Booking& b, algorithm kind, int data_argument) {
  const Desc x = b.layout(0).desc;
  const dnnl::eltwise_backward::primitive_desc pd(
      dnnl::eltwise_backward::desc(kind, x, x, 0.0f, 0.0f), user_scratchpad(), cpu_engine(),
      eltwise(kind, x));
  const std::size_t at = b.workspace(static_cast<Bytes>(pd.scratchpad_desc().get_size()));
  return std::make_unique<PrimitiveKernel>(
      dnnl::eltwise_backward(pd),
      std::vector{reads(data_argument, 0, x), reads(DNNL_ARG_DIFF_DST, 1, x),
                  writes(DNNL_ARG_DIFF_SRC, 0, x), scratch(pd.scratchpad_desc(), at)});
}

}  // namespace

void add_arrays(const float* a, const float* b, float* y, std::int64_t count) {
  parallel_ranges(count, count, [&](std::int64_t begin, std::int64_t end) {
    add(a + begin, b + begin, y + begin, end - begin);
  });
}

std::unique_ptr<Kernel> plan_pointwise(Booking& b) {
  const OpKind op = b.node().op;
  if (op == OpKind::kPositive) {
    b.require_plain(0);  // another dtype has another layout
    b.produce_plain(0);
  } else {
    b.require_common(0, b.inputs());
    // sigmoid(0) is not 0: with padding, oneDNN has slow code only.
    if (op == OpKind::kSigmoid && has_padding(b.layout(0).desc)) b.require_plain(0);
    b.produce_like(0, 0);
  }
  const std::int64_t count = stored_elements(b.layout(0));
  const bool curved = op != OpKind::kRelu && op != OpKind::kReluGrad && op != OpKind::kAdd &&
                      op != OpKind::kMul && op != OpKind::kScale && op != OpKind::kPositive;
  b.flops(static_cast<double>(count) * (curved ? 20.0 : 1.0));
  switch (op) {
    case OpKind::kRelu:
      return unary<relu>(count);
    case OpKind::kReluGrad:
      return binary<relu_grad>(count);
    case OpKind::kAdd:
      return b.input(0).dtype == graph::DType::kI32 ? sums_of_counts(count) : binary<add>(count);
    case OpKind::kMul:
      return binary<mul>(count);
    case OpKind::kScale:
      return scaled(count, static_cast<float>(b.attributes<graph::ScaleAttributes>().factor));
    case OpKind::kPositive:
      return positives(count);
    case OpKind::kSigmoid:
      return eltwise_kernel(b, algorithm::eltwise_logistic);
    case OpKind::kSigmoidGrad:
      return eltwise_grad_kernel(b, algorithm::eltwise_logistic_use_dst_for_bwd, DNNL_ARG_DST);
    case OpKind::kTanh:
      return eltwise_kernel(b, algorithm::eltwise_tanh);
    case OpKind::kTanhGrad:
      return eltwise_grad_kernel(b, algorithm::eltwise_tanh_use_dst_for_bwd, DNNL_ARG_DST);
    case OpKind::kGelu:
      return eltwise_kernel(b, algorithm::eltwise_gelu_erf);
    case OpKind::kGeluGrad:
      return eltwise_grad_kernel(b, algorithm::eltwise_gelu_erf, DNNL_ARG_SRC);
    default:
      throw b.unsupported("not a pointwise op");
  }
}

}  // namespace reprise::kernels::cpu
