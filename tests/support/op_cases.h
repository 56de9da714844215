#pragma once

// One object per configuration of an op: a small forward graph, how its inputs are filled, and what
// is differentiable. The same list serves central differences, comparisons of backends and (later)
// the speed and support tables.

#include <cstdint>
#include <functional>
#include <optional>
#include <ostream>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/autodiff.h"
#include "graph/builder.h"
#include "tests/support/interpreter.h"

namespace reprise::test {

using graph::Shape;

// Values of one input, parameter or state.
struct Fill {
  enum class Kind : std::uint8_t {
    kUniform,       // in [low, high)
    kAwayFromZero,  // like kUniform, but at least 0.05 from 0: away from the kink of relu
    kDistinct,      // a permutation of equidistant values: no ties, for max_pool
    kIntegers,      // i32 in [low, high)
    kGiven,         // `given`, repeated
  };
  Kind kind = Kind::kUniform;
  double low = -1.0;
  double high = 1.0;
  std::vector<double> given{};
};

[[nodiscard]] inline Fill away_from_zero() {
  return {.kind = Fill::Kind::kAwayFromZero};
}
[[nodiscard]] inline Fill distinct() {
  return {.kind = Fill::Kind::kDistinct};
}
[[nodiscard]] inline Fill between(double low, double high) {
  return {.low = low, .high = high};
}
[[nodiscard]] inline Fill given(std::vector<double> values) {
  return {.kind = Fill::Kind::kGiven, .given = std::move(values)};
}

// A case in the making. The loss is the sum, over all outputs, of the output times fixed random
// weights, so that every element of every output matters.
class CaseBuilder {
 public:
  explicit CaseBuilder(std::string name) : builder_(std::move(name)) {}

  [[nodiscard]] graph::Builder& b() { return builder_; }
  [[nodiscard]] graph::Builder* operator->() { return &builder_; }

  // Differentiable: an f32 input, or a trainable parameter.
  ValueId x(std::string_view name, Shape shape, Fill fill = {});
  ValueId w(std::string_view name, Shape shape, Fill fill = {});
  // Not differentiated: an f32 input, a state, i32 in [low, high), and i32 as listed.
  ValueId constant(std::string_view name, Shape shape, Fill fill = {});
  ValueId state(std::string_view name, Shape shape, Fill fill = {});
  ValueId ids(std::string_view name, Shape shape, int low, int high);
  ValueId ids(std::string_view name, Shape shape, std::vector<double> values);

  void out(ValueId y);    // part of the loss, and compared
  void fetch(ValueId y);  // compared only (integers, statistics)

  struct Built {
    graph::Graph graph;  // forward, with the loss
    std::vector<ValueId> differentiable;
    std::unordered_map<std::string, Fill> fills;
  };
  [[nodiscard]] Built finish();

 private:
  ValueId filled(ValueId value, Fill fill);

  graph::Builder builder_;
  std::vector<ValueId> outputs_;
  std::vector<ValueId> differentiable_;
  std::unordered_map<std::string, Fill> fills_;
};

struct OpCase {
  std::string name;  // "conv2d/stride2_padding1"
  std::function<void(CaseBuilder&)> build;
  // Set: the case is about updates; three steps with this optimizer.
  std::optional<graph::Optimizer> optimizer{};

  // How googletest shows it.
  friend void PrintTo(const OpCase& c, std::ostream* out) { *out << c.name; }
};

using BuiltCase = CaseBuilder::Built;
[[nodiscard]] BuiltCase build(const OpCase& op_case);
// Gradients of all differentiable values, fetched as "grad/<value>"; with updates when the case
// names an optimizer.
[[nodiscard]] graph::Graph training_graph(const OpCase& op_case, const BuiltCase& built);

// Every op and attribute; small networks; updates by optimizers.
[[nodiscard]] const std::vector<OpCase>& op_cases();
[[nodiscard]] const std::vector<OpCase>& network_cases();
[[nodiscard]] const std::vector<OpCase>& update_cases();

// The same case with the numbers of its ops in bf16 where they have such a form; nullopt where none
// has.
[[nodiscard]] std::optional<BuiltCase> in_bf16(const BuiltCase& built);

// Fills the inputs and persistent values of `interpreter` as the case says; a pure function of
// (case, seed). Optimizer state starts as zeros.
void fill_sources(const BuiltCase& built, std::uint64_t seed, Interpreter& interpreter);

// The parts of op_cases(), one file a family.
void add_dense_cases(std::vector<OpCase>& cases);
void add_norm_cases(std::vector<OpCase>& cases);
void add_pointwise_cases(std::vector<OpCase>& cases);
void add_pool_cases(std::vector<OpCase>& cases);
void add_shape_cases(std::vector<OpCase>& cases);
void add_sequence_cases(std::vector<OpCase>& cases);
void add_loss_cases(std::vector<OpCase>& cases);

}  // namespace reprise::test
