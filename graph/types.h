#pragma once

// Element types, shapes and roles of the values of a graph.

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/ids.h"

namespace reprise::graph {

using base::Bytes;

enum class DType : std::uint8_t {
  kF32,
  kI32,
  kU8,
  kBF16,  // the upper half of an f32: its exponents, 8 bits of precision (graph/bf16.h)
};

[[nodiscard]] const char* dtype_name(DType dtype);       // "f32", "i32", "u8", "bf16"
[[nodiscard]] DType parse_dtype(std::string_view name);  // throws Error(kInput)
[[nodiscard]] Bytes dtype_bytes(DType dtype);            // bytes of one element

// Real numbers: what gradients flow through.
[[nodiscard]] constexpr bool is_float(DType dtype) {
  return dtype == DType::kF32 || dtype == DType::kBF16;
}

// Sizes of the axes, outermost first; row-major. A scalar has no axes and one element.
using Dim = std::int64_t;
using Shape = std::vector<Dim>;

[[nodiscard]] std::string shape_text(const Shape& shape);  // "[8,3,224,224]", scalar "[]"
// Product of the axes. Throws Error(kInput) when an axis is negative or the product exceeds 2^63.
[[nodiscard]] std::int64_t element_count(const Shape& shape);

// What a value is to the training step.
enum class Role : std::uint8_t {
  kInput,           // batch data, written by the host before each step
  kParameter,       // a weight: lives across steps
  kOptimizerState,  // momentum and moments: lives across steps
  kState,           // running statistics, carried recurrent state: lives across steps
  kActivation,      // made by a forward node
  kGradient,        // made by a backward node
  kUpdate,          // the next version of a parameter, optimizer state or state
};

[[nodiscard]] const char* role_name(Role role);        // "input", "parameter", ...
[[nodiscard]] Role parse_role(std::string_view name);  // throws Error(kInput)

// True for the roles whose bytes outlive a step (parameter, optimizer state, state).
[[nodiscard]] constexpr bool is_persistent(Role role) {
  return role == Role::kParameter || role == Role::kOptimizerState || role == Role::kState;
}

enum class Phase : std::uint8_t { kForward, kBackward, kUpdate };

[[nodiscard]] const char* phase_name(Phase phase);       // "forward", "backward", "update"
[[nodiscard]] Phase parse_phase(std::string_view name);  // throws Error(kInput)

using ValueId = base::Id<struct ValueTag>;
using NodeId = base::Id<struct NodeTag>;

}  // namespace reprise::graph
