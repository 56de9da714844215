#include "graph/infer.h"

namespace reprise::graph {

void InferContext::require_dtype(std::size_t input, std::string_view what, DType expected) const {
  require(dtype(input) == expected, "{} must be {}, got {}", what, dtype_name(expected),
          dtype_name(dtype(input)));
}

DType InferContext::float_type(std::initializer_list<Operand> operands) const {
  const OpInfo& info = op_info(node_.op);
  const Operand& first = *operands.begin();
  for (const Operand& each : operands) {
    const DType found = dtype(each.input);
    require(is_float(found), "{} must be f32{}, got {}", each.what,
            may_be_bf16(info, each.input) ? " or bf16" : "", dtype_name(found));
    require(found == dtype(first.input), "{} is {}, {} is {}; cast one of them", first.what,
            dtype_name(dtype(first.input)), each.what, dtype_name(found));
  }
  return dtype(first.input);
}

void InferContext::require_operand(std::size_t input, std::string_view what, const Shape& expected,
                                   DType type) const {
  require_dtype(input, what, type);
  require_shape(input, what, expected);
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

std::int64_t InferContext::elements(const Shape& shape, std::string_view what) const {
  std::int64_t count = 1;
  for (Dim dim : shape) {
    require(dim >= 1, "every axis of {} must be at least 1, got {}", what, shape_text(shape));
    count = mul(count, dim, what);
  }
  return count;
}

std::int64_t InferContext::mul(std::int64_t a, std::int64_t b, std::string_view what) const {
  std::int64_t product = 0;
  require(!__builtin_mul_overflow(a, b, &product), "{}: {} * {} is beyond 2^63", what, a, b);
  return product;
}

std::int64_t InferContext::add(std::int64_t a, std::int64_t b, std::string_view what) const {
  std::int64_t sum = 0;
  require(!__builtin_add_overflow(a, b, &sum), "{}: {} + {} is beyond 2^63", what, a, b);
  return sum;
}

}  // namespace reprise::graph
