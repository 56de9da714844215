#pragma once

// The attributes of each family of ops. Plain data with defaulted ==; `visit(attributes, f)` calls
// f("name", field) for each field, which is how attributes are printed, parsed, compared and
// hashed. Allowed field types: std::int64_t, double, bool, std::vector<std::int64_t>, std::string,
// DType, Reduction, LearningRate::Kind.

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "graph/learning_rate.h"
#include "graph/types.h"

namespace reprise::graph {

using Ints = std::vector<std::int64_t>;

enum class Reduction : std::uint8_t { kMean, kSum };

struct NoAttributes {
  friend bool operator==(const NoAttributes&, const NoAttributes&) = default;
};

// Two numbers each: height, width. `input_size` (H, W of x) and `kernel` (KH, KW) are filled in for
// the gradient ops, which cannot see those shapes otherwise.
struct Conv2dAttributes {
  Ints stride{1, 1};
  Ints padding{0, 0};  // symmetric
  Ints dilation{1, 1};
  std::int64_t groups = 1;
  Ints input_size{};
  Ints kernel{};
  friend bool operator==(const Conv2dAttributes&, const Conv2dAttributes&) = default;
};

struct Pool2dAttributes {
  Ints kernel{1, 1};
  Ints stride{1, 1};
  Ints padding{0, 0};          // symmetric; for max_pool padding never wins
  bool count_padding = false;  // avg_pool: divide by the whole kernel also at the border
  Ints input_size{};           // gradient ops: H, W of x
  friend bool operator==(const Pool2dAttributes&, const Pool2dAttributes&) = default;
};

struct MatmulAttributes {
  bool transpose_a = false;
  bool transpose_b = false;
  bool f32_result = false;  // of two bf16 operands: y is not rounded to bf16 (gradients of weights)
  friend bool operator==(const MatmulAttributes&, const MatmulAttributes&) = default;
};

struct NormAttributes {
  double epsilon = 1e-5;
  friend bool operator==(const NormAttributes&, const NormAttributes&) = default;
};

struct RunningUpdateAttributes {
  double rate = 0.1;            // running' = (1 - rate) * running + rate * batch
  std::int64_t count = 0;       // values per channel in the batch; > 1
  bool unbiased = true;         // store the sample variance (batch variance * count / (count - 1))
  bool skip_nonfinite = false;  // as for sgd
  friend bool operator==(const RunningUpdateAttributes&, const RunningUpdateAttributes&) = default;
};

struct CombineAttributes {
  std::int64_t values = 1;  // of one item in one channel
  friend bool operator==(const CombineAttributes&, const CombineAttributes&) = default;
};

struct CastAttributes {
  DType dtype = DType::kF32;  // of the output
  friend bool operator==(const CastAttributes&, const CastAttributes&) = default;
};

struct ScaleAttributes {
  double factor = 1.0;
  friend bool operator==(const ScaleAttributes&, const ScaleAttributes&) = default;
};

struct AxisAttributes {  // concat, slice, slice_grad, bias_grad
  std::int64_t axis = 0;
  std::int64_t begin = 0;  // slice, slice_grad
  std::int64_t end = 0;    // slice: half-open range; slice_grad: begin + size of dy
  std::int64_t full = 0;   // slice_grad: size of the axis in x
  friend bool operator==(const AxisAttributes&, const AxisAttributes&) = default;
};

struct ShapeAttributes {  // reshape, broadcast, fill: the shape of the output
  Ints shape{};
  double value = 0.0;  // fill only
  friend bool operator==(const ShapeAttributes&, const ShapeAttributes&) = default;
};

struct ReduceAttributes {  // reduce_sum, reduce_mean
  Ints axes{};             // sorted, unique, non-negative; empty means all
  bool keep_axes = false;
  friend bool operator==(const ReduceAttributes&, const ReduceAttributes&) = default;
};

struct UpsampleAttributes {
  std::int64_t factor = 2;
  friend bool operator==(const UpsampleAttributes&, const UpsampleAttributes&) = default;
};

struct DropoutAttributes {
  double probability = 0.5;  // of dropping; kept values are scaled by 1 / (1 - probability)
  std::int64_t stream = 0;   // which random stream: unique per dropout op, shared with its gradient
  friend bool operator==(const DropoutAttributes&, const DropoutAttributes&) = default;
};

struct EmbeddingAttributes {
  std::int64_t rows = 0;  // embedding_grad: rows of the table
  friend bool operator==(const EmbeddingAttributes&, const EmbeddingAttributes&) = default;
};

struct LossAttributes {
  Reduction reduction = Reduction::kMean;
  std::int64_t ignore_index = -100;  // labels with this value do not count (softmax_cross_entropy)
  friend bool operator==(const LossAttributes&, const LossAttributes&) = default;
};

struct SgdAttributes {
  LearningRate rate{};
  double momentum = 0.0;
  bool nesterov = false;
  double weight_decay = 0.0;  // coupled: added to the gradient
  // > 0: the gradient counts min(1, clip_norm / (norm + 1e-6)) times. The norm is that of all
  // gradients together (global_norm), the last input of each update that has one of these two.
  double clip_norm = 0.0;
  bool skip_nonfinite = false;  // a norm that is not finite leaves everything as it was
  friend bool operator==(const SgdAttributes&, const SgdAttributes&) = default;
};

struct AdamAttributes {
  LearningRate rate{};
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0.0;
  bool decoupled = false;  // AdamW: param -= rate * weight_decay * param
  double clip_norm = 0.0;  // both as for sgd
  bool skip_nonfinite = false;
  friend bool operator==(const AdamAttributes&, const AdamAttributes&) = default;
};

// Whether an update with these attributes has a norm as its last input.
[[nodiscard]] inline bool takes_norm(const SgdAttributes& a) {
  return a.clip_norm > 0 || a.skip_nonfinite;
}
[[nodiscard]] inline bool takes_norm(const AdamAttributes& a) {
  return a.clip_norm > 0 || a.skip_nonfinite;
}
[[nodiscard]] inline bool takes_norm(const RunningUpdateAttributes& a) {
  return a.skip_nonfinite;
}

struct ReorderAttributes {
  std::string layout{};  // the backend's name for the target layout; "plain" is row-major
  friend bool operator==(const ReorderAttributes&, const ReorderAttributes&) = default;
};

using Attributes =
    std::variant<NoAttributes, Conv2dAttributes, Pool2dAttributes, MatmulAttributes, NormAttributes,
                 RunningUpdateAttributes, CombineAttributes, ScaleAttributes, AxisAttributes,
                 ShapeAttributes, ReduceAttributes, UpsampleAttributes, DropoutAttributes,
                 EmbeddingAttributes, LossAttributes, SgdAttributes, AdamAttributes,
                 ReorderAttributes, CastAttributes>;

// visit(attributes, f) calls f("name", field) in declaration order; works on const and non-const.
template <class A, class F>
void visit_rate(A& rate, F&& f) {
  f("schedule", rate.kind);
  f("rate", rate.base);
  f("warmup_steps", rate.warmup_steps);
  f("period_steps", rate.period_steps);
  f("factor", rate.factor);
  f("final_rate", rate.final_rate);
}

template <class A, class F>
void visit_fields(A& a, F&& f) {
  using T = std::remove_const_t<A>;
  if constexpr (std::is_same_v<T, Conv2dAttributes>) {
    f("stride", a.stride), f("padding", a.padding), f("dilation", a.dilation),
        f("groups", a.groups);
    f("input_size", a.input_size), f("kernel", a.kernel);
  } else if constexpr (std::is_same_v<T, Pool2dAttributes>) {
    f("kernel", a.kernel), f("stride", a.stride), f("padding", a.padding);
    f("count_padding", a.count_padding), f("input_size", a.input_size);
  } else if constexpr (std::is_same_v<T, MatmulAttributes>) {
    f("transpose_a", a.transpose_a), f("transpose_b", a.transpose_b);
    f("f32_result", a.f32_result);
  } else if constexpr (std::is_same_v<T, NormAttributes>) {
    f("epsilon", a.epsilon);
  } else if constexpr (std::is_same_v<T, RunningUpdateAttributes>) {
    f("rate", a.rate), f("count", a.count), f("unbiased", a.unbiased);
    f("skip_nonfinite", a.skip_nonfinite);
  } else if constexpr (std::is_same_v<T, CombineAttributes>) {
    f("values", a.values);
  } else if constexpr (std::is_same_v<T, ScaleAttributes>) {
    f("factor", a.factor);
  } else if constexpr (std::is_same_v<T, AxisAttributes>) {
    f("axis", a.axis), f("begin", a.begin), f("end", a.end), f("full", a.full);
  } else if constexpr (std::is_same_v<T, ShapeAttributes>) {
    f("shape", a.shape), f("value", a.value);
  } else if constexpr (std::is_same_v<T, ReduceAttributes>) {
    f("axes", a.axes), f("keep_axes", a.keep_axes);
  } else if constexpr (std::is_same_v<T, UpsampleAttributes>) {
    f("factor", a.factor);
  } else if constexpr (std::is_same_v<T, DropoutAttributes>) {
    f("probability", a.probability), f("stream", a.stream);
  } else if constexpr (std::is_same_v<T, EmbeddingAttributes>) {
    f("rows", a.rows);
  } else if constexpr (std::is_same_v<T, LossAttributes>) {
    f("reduction", a.reduction), f("ignore_index", a.ignore_index);
  } else if constexpr (std::is_same_v<T, SgdAttributes>) {
    visit_rate(a.rate, f);
    f("momentum", a.momentum), f("nesterov", a.nesterov), f("weight_decay", a.weight_decay);
    f("clip_norm", a.clip_norm), f("skip_nonfinite", a.skip_nonfinite);
  } else if constexpr (std::is_same_v<T, AdamAttributes>) {
    visit_rate(a.rate, f);
    f("beta1", a.beta1), f("beta2", a.beta2), f("epsilon", a.epsilon);
    f("weight_decay", a.weight_decay), f("decoupled", a.decoupled);
    f("clip_norm", a.clip_norm), f("skip_nonfinite", a.skip_nonfinite);
  } else if constexpr (std::is_same_v<T, ReorderAttributes>) {
    f("layout", a.layout);
  } else if constexpr (std::is_same_v<T, CastAttributes>) {
    f("dtype", a.dtype);
  } else {
    static_assert(std::is_same_v<T, NoAttributes>, "list the fields of the new attributes here");
  }
}

template <class F>
void visit(const Attributes& attributes, F&& f) {
  std::visit([&f](const auto& a) { visit_fields(a, f); }, attributes);
}
template <class F>
void visit(Attributes& attributes, F&& f) {
  std::visit([&f](auto& a) { visit_fields(a, f); }, attributes);
}

}  // namespace reprise::graph
