// Updates of persistent values, and what comes before them: sums over ranks, the common norm.

#include <cmath>

#include "graph/infer.h"

namespace reprise::graph {
namespace {

void require_rate(const InferContext& c, const LearningRate& rate) {
  c.require(rate.base >= 0 && std::isfinite(rate.base), "the rate must be at least 0, got {}",
            rate.base);
  c.require(rate.final_rate >= 0 && std::isfinite(rate.final_rate),
            "the final rate must be at least 0, got {}", rate.final_rate);
  c.require(std::isfinite(rate.factor), "the factor must be finite, got {}", rate.factor);
  c.require(rate.warmup_steps >= 0, "warmup_steps must be at least 0, got {}", rate.warmup_steps);
  c.require(rate.kind == LearningRate::Kind::kConstant || rate.period_steps >= 1,
            "a {} schedule needs period_steps of at least 1, got {}",
            learning_rate_kind_name(rate.kind), rate.period_steps);
}

void require_decay(const InferContext& c, double decay) {
  c.require(decay >= 0 && std::isfinite(decay), "weight_decay must be at least 0, got {}", decay);
}

void require_fraction(const InferContext& c, std::string_view what, double number) {
  c.require(number >= 0 && number < 1, "{} must lie in [0, 1), got {}", what, number);
}

// The number of inputs before the norm, which comes last where the attributes ask for it.
template <class A>
std::size_t without_norm(const InferContext& c, const A& attributes) {
  if (!takes_norm(attributes)) return c.inputs();
  c.require_float(c.inputs() - 1, "norm", {});
  return c.inputs() - 1;
}

void require_clip(const InferContext& c, double clip_norm) {
  c.require(clip_norm >= 0 && std::isfinite(clip_norm), "clip_norm must be at least 0, got {}",
            clip_norm);
}

// The parameter, its gradient and its optimizer state all have the parameter's shape; each but the
// gradient has a next version.
Inferred next_versions(const InferContext& c, std::size_t inputs) {
  for (std::size_t i = 0; i < inputs; ++i) {
    c.require_float(i, i == 0 ? "parameter" : i == 1 ? "gradient" : "optimizer state", c.shape(0));
  }
  return Inferred(inputs - 1, InferredValue{c.shape(0)});
}

}  // namespace

Inferred infer_global_norm(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  for (std::size_t i = 0; i < c.inputs(); ++i) c.require_dtype(i, "x", DType::kF32);
  return {{Shape{}}};
}

Inferred infer_sgd(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto& a = c.attributes<SgdAttributes>();
  require_rate(c, a.rate);
  require_decay(c, a.weight_decay);
  require_fraction(c, "momentum", a.momentum);
  require_clip(c, a.clip_norm);
  const std::size_t inputs = without_norm(c, a);
  c.require(inputs == 2 || inputs == 3,
            "takes a parameter, a gradient and perhaps a momentum{}, got {} inputs",
            takes_norm(a) ? " before the norm" : "", c.inputs());
  c.require(a.momentum == 0 || inputs == 3, "momentum {} needs a third input to live in",
            a.momentum);
  c.require(!a.nesterov || a.momentum > 0, "nesterov needs a momentum above 0, got {}", a.momentum);
  return next_versions(c, inputs);
}

Inferred infer_adam(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto& a = c.attributes<AdamAttributes>();
  require_rate(c, a.rate);
  require_decay(c, a.weight_decay);
  require_fraction(c, "beta1", a.beta1);
  require_fraction(c, "beta2", a.beta2);
  c.require(a.epsilon >= 0 && std::isfinite(a.epsilon), "epsilon must be at least 0, got {}",
            a.epsilon);
  require_clip(c, a.clip_norm);
  const std::size_t inputs = without_norm(c, a);
  c.require(inputs == 4, "takes a parameter, a gradient, m and v{}, got {} inputs",
            takes_norm(a) ? " before the norm" : "", c.inputs());
  return next_versions(c, inputs);
}

Inferred infer_assign(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  c.require_dtype(1, "x", c.dtype(0));
  c.require_shape(1, "x", c.shape(0));
  if (c.inputs() == 3) c.require_float(2, "norm", {});
  return {{c.shape(0), c.dtype(0)}};
}

Inferred infer_all_reduce(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  c.require_dtype(0, "x", DType::kF32);
  return {{c.shape(0), c.dtype(0)}};
}

Inferred infer_await(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const Value& x = graph.values[node.inputs[0]];
  c.require(x.producer.valid() && graph.nodes[x.producer].op == OpKind::kAllReduce,
            "'{}' is made by no all_reduce", x.name);
  return {{c.shape(0), c.dtype(0)}};
}

}  // namespace reprise::graph
