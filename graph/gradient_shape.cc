// Gradients of ops that move, repeat or sum elements.

#include <algorithm>

#include "fmt/format.h"

#include "graph/gradient.h"
#include "graph/gradient_rules.h"

namespace reprise::graph {
namespace {

// dy of a reduction times `factor`, spread over the shape of x again.
ValueId spread(GradientContext& c, double factor) {
  const auto& attributes = c.attributes<ReduceAttributes>();
  const Shape x = c.shape(c.input(0));
  Shape kept = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (attributes.axes.empty() ||
        std::binary_search(attributes.axes.begin(), attributes.axes.end(),
                           static_cast<std::int64_t>(i))) {
      kept[i] = 1;
    }
  }
  ValueId dy = c.gradient();
  // Scaled while it is small.
  if (factor != 1.0) dy = c.append(OpKind::kScale, {dy}, ScaleAttributes{factor}, "dy_scaled")[0];
  // A scalar broadcasts as it is.
  if (c.shape(dy) != kept && !c.shape(dy).empty())
    dy = c.append(OpKind::kReshape, {dy}, ShapeAttributes{kept, 0.0}, "dy_kept")[0];
  return c.append(OpKind::kBroadcast, {dy}, ShapeAttributes{x, 0.0}, "spread")[0];
}

}  // namespace

void gradient_reshape(GradientContext& c) {
  const ShapeAttributes back{c.shape(c.input(0)), 0.0};
  c.contribute(0, c.append(OpKind::kReshape, {c.gradient()}, back, "dx")[0]);
}

void gradient_concat(GradientContext& c) {
  AxisAttributes part{.axis = c.attributes<AxisAttributes>().axis};
  const ValueId dy = c.gradient();
  for (std::size_t i = 0; i < c.node().inputs.size(); ++i) {
    part.begin = part.end;
    part.end += c.shape(c.input(i))[static_cast<std::size_t>(part.axis)];
    if (c.wants(i))
      c.contribute(i, c.append(OpKind::kSlice, {dy}, part, fmt::format("dx{}", i))[0]);
  }
}

void gradient_slice(GradientContext& c) {
  auto attributes = c.attributes<AxisAttributes>();
  attributes.full = c.shape(c.input(0))[static_cast<std::size_t>(attributes.axis)];
  c.contribute(0, c.append(OpKind::kSliceGrad, {c.gradient()}, attributes, "dx")[0]);
}

void gradient_broadcast(GradientContext& c) {
  const Shape x = c.shape(c.input(0));
  const Shape y = c.shape(c.output(0));
  ReduceAttributes reduce;
  const std::size_t added = y.size() - x.size();
  for (std::size_t i = 0; i < y.size(); ++i) {
    if (i < added || x[i - added] != y[i]) reduce.axes.push_back(static_cast<std::int64_t>(i));
  }
  ValueId dx = c.gradient();
  // An empty list of axes would mean all of them.
  if (!reduce.axes.empty()) dx = c.append(OpKind::kReduceSum, {dx}, reduce, "sum")[0];
  if (c.shape(dx) != x) dx = c.append(OpKind::kReshape, {dx}, ShapeAttributes{x, 0.0}, "dx")[0];
  c.contribute(0, dx);
}

void gradient_reduce_sum(GradientContext& c) {
  c.contribute(0, spread(c, 1.0));
}

void gradient_reduce_mean(GradientContext& c) {
  const double count =
      static_cast<double>(element_count(c.shape(c.input(0)))) /
      static_cast<double>(std::max<std::int64_t>(1, element_count(c.shape(c.output(0)))));
  c.contribute(0, spread(c, 1.0 / count));
}

}  // namespace reprise::graph
