// Ops that work element by element.

#include "kernels/cuda/pointwise.h"

#include <optional>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/element_type.h"
#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {
namespace {

using graph::OpKind;

std::optional<Map> map_of(OpKind op) {
  switch (op) {
    case OpKind::kRelu:
      return Map::kRelu;
    case OpKind::kSigmoid:
      return Map::kSigmoid;
    case OpKind::kTanh:
      return Map::kTanh;
    case OpKind::kGelu:
      return Map::kGelu;
    default:
      return std::nullopt;
  }
}

std::optional<Map2> map2_of(OpKind op) {
  switch (op) {
    case OpKind::kReluGrad:
      return Map2::kReluGrad;
    case OpKind::kSigmoidGrad:
      return Map2::kSigmoidGrad;
    case OpKind::kTanhGrad:
      return Map2::kTanhGrad;
    case OpKind::kGeluGrad:
      return Map2::kGeluGrad;
    case OpKind::kAdd:
      return Map2::kAdd;
    case OpKind::kMul:
      return Map2::kMul;
    default:
      return std::nullopt;
  }
}

// Of one element; a call of exp, erf or tanh counts as twenty.
double flops_of(OpKind op) {
  switch (op) {
    case OpKind::kSigmoid:
    case OpKind::kTanh:
    case OpKind::kGelu:
      return 20.0;
    case OpKind::kGeluGrad:
      return 40.0;
    case OpKind::kSigmoidGrad:
    case OpKind::kTanhGrad:
      return 3.0;
    default:
      return 1.0;
  }
}

}  // namespace

std::unique_ptr<Kernel> plan_pointwise(Booking& b) {
  const OpKind op = b.node().op;
  const std::int64_t count = graph::element_count(b.output(0).shape);
  b.flops(flops_of(op) * static_cast<double>(count));
  if (b.input(0).dtype == graph::DType::kI32) {  // add, of counts
    return make_kernel([count](const Run& run) {
      launch_add(run.input<std::int32_t>(0), run.input<std::int32_t>(1),
                 run.output<std::int32_t>(0), count, run.stream());
    });
  }
  return with_element(b, b.input(0), [&]<class T>(std::type_identity<T>) {
    if (const auto map = map_of(op)) {
      return make_kernel([map = *map, count](const Run& run) {
        launch_map(map, run.input<T>(0), run.output<T>(0), count, run.stream());
      });
    }
    if (op == OpKind::kScale) {
      const auto factor = static_cast<float>(b.attributes<graph::ScaleAttributes>().factor);
      return make_kernel([factor, count](const Run& run) {
        launch_scale(factor, run.input<T>(0), run.output<T>(0), count, run.stream());
      });
    }
    if (op == OpKind::kPositive) {
      return make_kernel([count](const Run& run) {
        launch_positive(run.input<T>(0), run.output<std::int32_t>(0), count, run.stream());
      });
    }
    const auto map2 = map2_of(op);
    if (!map2) throw b.unsupported("it does not work element by element");
    return make_kernel([map2 = *map2, count](const Run& run) {
      launch_map2(map2, run.input<T>(0), run.input<T>(1), run.output<T>(0), count, run.stream());
    });
  });
}

// x => y
std::unique_ptr<Kernel> plan_cast(Booking& b) {
  const std::int64_t count = graph::element_count(b.output(0).shape);
  return with_element(b, b.input(0), [&]<class In>(std::type_identity<In>) {
    return with_element(b, b.output(0), [&]<class Out>(std::type_identity<Out>) {
      if constexpr (std::is_same_v<In, Out>) {
        return make_kernel([count](const Run& run) {
          copy_to_output(run, 0, 0, count * static_cast<Bytes>(sizeof(In)));
        });
      } else {
        return make_kernel([count](const Run& run) {
          launch_cast(run.input<In>(0), run.output<Out>(0), count, run.stream());
        });
      }
    });
  });
}

}  // namespace reprise::kernels::cuda
