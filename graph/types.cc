#include "graph/types.h"

#include <array>
#include <utility>

#include "base/error.h"
#include "graph/learning_rate.h"

namespace reprise::graph {
namespace {

template <class Enum, std::size_t N>
using Names = std::array<std::pair<Enum, const char*>, N>;

template <class Enum, std::size_t N>
const char* name_of(const Names<Enum, N>& names, Enum value) {
  for (const auto& [candidate, name] : names) {
    if (candidate == value) return name;
  }
  return "?";
}

template <class Enum, std::size_t N>
Enum parse_name(const Names<Enum, N>& names, std::string_view text, const char* what) {
  std::string known;
  for (const auto& [candidate, name] : names) {
    if (text == name) return candidate;
    known += known.empty() ? name : std::string(", ") + name;
  }
  throw base::input_error("unknown {} '{}'; known: {}", what, text, known);
}

constexpr Names<DType, 4> kDTypes{
    {{DType::kF32, "f32"}, {DType::kI32, "i32"}, {DType::kU8, "u8"}, {DType::kBF16, "bf16"}}};
constexpr Names<Role, 7> kRoles{{{Role::kInput, "input"},
                                 {Role::kParameter, "parameter"},
                                 {Role::kOptimizerState, "optimizer_state"},
                                 {Role::kState, "state"},
                                 {Role::kActivation, "activation"},
                                 {Role::kGradient, "gradient"},
                                 {Role::kUpdate, "update"}}};
constexpr Names<Phase, 3> kPhases{
    {{Phase::kForward, "forward"}, {Phase::kBackward, "backward"}, {Phase::kUpdate, "update"}}};
constexpr Names<LearningRate::Kind, 3> kRates{{{LearningRate::Kind::kConstant, "constant"},
                                               {LearningRate::Kind::kStep, "step"},
                                               {LearningRate::Kind::kCosine, "cosine"}}};

}  // namespace

const char* dtype_name(DType dtype) {
  return name_of(kDTypes, dtype);
}
DType parse_dtype(std::string_view name) {
  return parse_name(kDTypes, name, "dtype");
}
const char* role_name(Role role) {
  return name_of(kRoles, role);
}
Role parse_role(std::string_view name) {
  return parse_name(kRoles, name, "role");
}
const char* phase_name(Phase phase) {
  return name_of(kPhases, phase);
}
Phase parse_phase(std::string_view name) {
  return parse_name(kPhases, name, "phase");
}
const char* learning_rate_kind_name(LearningRate::Kind kind) {
  return name_of(kRates, kind);
}
LearningRate::Kind parse_learning_rate_kind(std::string_view name) {
  return parse_name(kRates, name, "learning-rate schedule");
}

Bytes dtype_bytes(DType dtype) {
  switch (dtype) {
    case DType::kF32:
    case DType::kI32:
      return 4;
    case DType::kBF16:
      return 2;
    case DType::kU8:
      return 1;
  }
  return 0;
}

std::string shape_text(const Shape& shape) {
  return fmt::format("[{}]", fmt::join(shape, ","));
}

std::int64_t element_count(const Shape& shape) {
  std::int64_t count = 1;
  for (Dim dim : shape) {
    if (dim < 0) throw base::input_error("shape {} has a negative axis", shape_text(shape));
    if (__builtin_mul_overflow(count, dim, &count)) {
      throw base::input_error("shape {} has more than 2^63 elements", shape_text(shape));
    }
  }
  return count;
}

}  // namespace reprise::graph
