#include "runtime/comm/reduce.h"

#include <cmath>
#include <cstdint>
#include <type_traits>

namespace reprise::runtime::comm {
namespace {

template <class T>
T sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {  // signed overflow is defined as wrapping
    using U = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<U>(a) + static_cast<U>(b));
  } else {
    return a + b;
  }
}

template <class T>
bool is_nan(T x) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::isnan(x);
  } else {
    return false;
  }
}

template <class T>
T larger(T a, T b) {
  return b > a || is_nan(b) ? b : a;  // a NaN in `a` stays, since no comparison with it holds
}

template <class T>
T smaller(T a, T b) {
  return b < a || is_nan(b) ? b : a;
}

template <class T>
void combine_as(std::byte* into_bytes, const std::byte* with_bytes, std::size_t count,
                Reduction reduction) {
  T* into = reinterpret_cast<T*>(into_bytes);
  const T* with = reinterpret_cast<const T*>(with_bytes);
  switch (reduction) {
    case Reduction::kSum:
      for (std::size_t i = 0; i < count; ++i) into[i] = sum(into[i], with[i]);
      return;
    case Reduction::kMax:
      for (std::size_t i = 0; i < count; ++i) into[i] = larger(into[i], with[i]);
      return;
    case Reduction::kMin:
      for (std::size_t i = 0; i < count; ++i) into[i] = smaller(into[i], with[i]);
      return;
  }
}

}  // namespace

std::size_t element_bytes(ElementType type) {
  return type == ElementType::kF32 || type == ElementType::kI32 ? 4 : 8;
}

std::string_view element_name(ElementType type) {
  switch (type) {
    case ElementType::kF32:
      return "f32";
    case ElementType::kF64:
      return "f64";
    case ElementType::kI32:
      return "i32";
    case ElementType::kI64:
      return "i64";
    case ElementType::kU64:
      return "u64";
  }
  return "?";
}

std::string_view reduction_name(Reduction reduction) {
  switch (reduction) {
    case Reduction::kSum:
      return "sum";
    case Reduction::kMax:
      return "max";
    case Reduction::kMin:
      return "min";
  }
  return "?";
}

void combine(std::byte* into, const std::byte* with, std::size_t count, ElementType type,
             Reduction reduction) {
  switch (type) {
    case ElementType::kF32:
      return combine_as<float>(into, with, count, reduction);
    case ElementType::kF64:
      return combine_as<double>(into, with, count, reduction);
    case ElementType::kI32:
      return combine_as<std::int32_t>(into, with, count, reduction);
    case ElementType::kI64:
      return combine_as<std::int64_t>(into, with, count, reduction);
    case ElementType::kU64:
      return combine_as<std::uint64_t>(into, with, count, reduction);
  }
}

Part part_of(std::size_t count, int parts, int index) {
  const auto n = static_cast<std::size_t>(parts);
  const auto i = static_cast<std::size_t>(index);
  const std::size_t small = count / n;
  const std::size_t larger_parts = count % n;
  const auto begin_of = [&](std::size_t part) {
    return part * small + (part < larger_parts ? part : larger_parts);
  };
  return {begin_of(i), begin_of(i + 1)};
}

}  // namespace reprise::runtime::comm
