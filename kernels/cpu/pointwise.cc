// Element by element, in whatever layout the values have. Own loops map zero to zero, so that the
// padding of blocked layouts stays zero; the others are oneDNN's.

#include "kernels/cpu/pointwise.h"

#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/primitive.h"
#include "kernels/cpu/storage.h"

namespace reprise::kernels::cpu {
namespace {

using dnnl::algorithm;
using dnnl::prop_kind;
using graph::OpKind;

// NaN goes through, so that a broken run shows.
template <class T>
[[gnu::always_inline]] inline void relu_of(const T* x, T* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const float number = load(x[i]);
    y[i] = stored<T>(number < 0.0f ? 0.0f : number);
  }
}
REPRISE_VECTOR void relu(const float* x, float* y, std::int64_t count) {
  relu_of(x, y, count);
}
REPRISE_VECTOR void relu(const Bf16* x, Bf16* y, std::int64_t count) {
  relu_of(x, y, count);
}

REPRISE_VECTOR void relu_grad(const float* y, const float* dy, float* dx, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) dx[i] = y[i] > 0.0f ? dy[i] : 0.0f;
}
// The bits of bf16 numbers above 0 are those from 1 to infinity's.
REPRISE_VECTOR void relu_grad(const Bf16* y, const Bf16* dy, Bf16* dx, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) {
    const bool above = static_cast<std::uint16_t>(y[i].bits - 1) < 0x7F80;
    dx[i].bits = static_cast<std::uint16_t>(dy[i].bits & (above ? 0xFFFF : 0));
  }
}

template <class T>
[[gnu::always_inline]] inline void add_of(const T* a, const T* b, T* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = stored<T>(load(a[i]) + load(b[i]));
}
REPRISE_VECTOR void add(const float* a, const float* b, float* y, std::int64_t count) {
  add_of(a, b, y, count);
}
REPRISE_VECTOR void add(const Bf16* a, const Bf16* b, Bf16* y, std::int64_t count) {
  add_of(a, b, y, count);
}

REPRISE_VECTOR void cast(const float* x, Bf16* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = stored<Bf16>(x[i]);
}
REPRISE_VECTOR void cast(const Bf16* x, float* y, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = load(x[i]);
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
std::int64_t stored_elements(const Layout& layout, graph::DType dtype) {
  return layout.bytes / graph::dtype_bytes(dtype);
}

template <class X, class Y>
std::unique_ptr<Kernel> unary(std::int64_t count, void (*loop)(const X*, Y*, std::int64_t)) {
  return make_kernel([=](const Run& run) {
    const X* x = run.input<X>(0);
    Y* y = run.output<Y>(0);
    parallel_ranges(count, count, [&](std::int64_t begin, std::int64_t end) {
      loop(x + begin, y + begin, end - begin);
    });
  });
}

template <class T>
std::unique_ptr<Kernel> binary(std::int64_t count,
                               void (*loop)(const T*, const T*, T*, std::int64_t)) {
  return make_kernel([=](const Run& run) {
    const T* a = run.input<T>(0);
    const T* b = run.input<T>(1);
    T* y = run.output<T>(0);
    parallel_ranges(count, count, [&](std::int64_t begin, std::int64_t end) {
      loop(a + begin, b + begin, y + begin, end - begin);
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
  const std::int64_t count = stored_elements(b.layout(0), b.input(0).dtype);
  const bool curved = op != OpKind::kRelu && op != OpKind::kReluGrad && op != OpKind::kAdd &&
                      op != OpKind::kMul && op != OpKind::kScale && op != OpKind::kPositive &&
                      op != OpKind::kCast;
  const bool bf16 = b.input(0).dtype == graph::DType::kBF16;
  b.flops(static_cast<double>(count) * (curved ? 20.0 : 1.0));
  switch (op) {
    case OpKind::kRelu:
      return bf16 ? unary<Bf16, Bf16>(count, relu) : unary<float, float>(count, relu);
    case OpKind::kReluGrad:
      return bf16 ? binary<Bf16>(count, relu_grad) : binary<float>(count, relu_grad);
    case OpKind::kAdd:
      if (b.input(0).dtype == graph::DType::kI32) return sums_of_counts(count);
      return bf16 ? binary<Bf16>(count, add) : binary<float>(count, add);
    case OpKind::kCast:
      return bf16 ? unary<Bf16, float>(count, cast) : unary<float, Bf16>(count, cast);
    case OpKind::kMul:
      return binary(count, mul);
    case OpKind::kScale:
      return scaled(count, static_cast<float>(b.attributes<graph::ScaleAttributes>().factor));
    case OpKind::kPositive:
      return unary(count, positive);
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
