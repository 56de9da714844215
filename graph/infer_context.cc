#include "graph/infer.h"

namespace reprise::graph {

void InferContext::require_dtype(std::size_t input, std::string_view what, DType expected) const {
  require(dtype(input) == expected, "{} must be {}, got {}", what, dtype_name(expected),
          dtype_name(dtype(input)));
}

void InferContext::require_rank(std::size_t input, std::string_view what, std::size_t rank) const {
  require(shape(input).size() == rank, "{} must have {} axes, got shape {}", what, rank,
          shape_text(shape(input)));
}

void InferContext::require_shape(std::size_t input, std::string_view what,
                                 const Shape& expected) const {
  require(shape(input) == expected, "{} must have shape {}, got {}", what, shape_text(expected),
          shape_text(shape(input)));
}

void InferContext::require_float(std::size_t input, std::string_view what,
                                 const Shape& expected) const {
  require_dtype(input, what, DType::kF32);
  require_shape(input, what, expected);
}

void InferContext::require_pair(const Ints& pair, std::string_view what,
                                std::int64_t minimum) const {
  require(pair.size() == 2, "{} needs two numbers (height, width), got {}", what, pair.size());
  for (std::int64_t number : pair)
    require(number >= minimum, "{} must be at least {}, got {}", what, minimum, number);
}

std::int64_t InferContext::axis(std::int64_t axis, const Shape& shape) const {
  require(axis >= 0 && axis < static_cast<std::int64_t>(shape.size()),
          "axis {} is outside of shape {}", axis, shape_text(shape));
  return axis;
}

}  // namespace reprise::graph
