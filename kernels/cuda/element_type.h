#pragma once

// From the dtype of a value to the type that kernels are templates over.

#include <type_traits>

#include "kernels/cuda/booking.h"
#include "kernels/cuda/element.h"

namespace reprise::kernels::cuda {

// Calls f(std::type_identity<T>{}) with what `value` of the booked node stores, float or BFloat16.
template <class F>
[[nodiscard]] auto with_element(const Booking& b, const graph::Value& value, F&& f) {
  switch (value.dtype) {
    case graph::DType::kF32:
      return f(std::type_identity<float>{});
    case graph::DType::kBF16:
      return f(std::type_identity<BFloat16>{});
    default:
      throw b.unsupported(fmt::format("'{}' is {}, neither f32 nor bf16", value.name,
                                      graph::dtype_name(value.dtype)));
  }
}

}  // namespace reprise::kernels::cuda
