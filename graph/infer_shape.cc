// Ops that move, repeat or sum elements.

#include <algorithm>

#include "graph/infer.h"
#include "graph/prepared_names.h"

namespace reprise::graph {

Inferred infer_reshape(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const Shape& y = c.attributes<ShapeAttributes>().shape;
  const std::int64_t before = c.elements(c.shape(0), "x");
  const std::int64_t after = c.elements(y, "the new shape");
  c.require(before == after, "x {} has {} elements, the new shape {} has {}",
            shape_text(c.shape(0)), before, shape_text(y), after);
  return {{y, c.dtype(0)}};
}

Inferred infer_concat(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto axis =
      static_cast<std::size_t>(c.axis(c.attributes<AxisAttributes>().axis, c.shape(0)));
  Shape y = c.shape(0);
  for (std::size_t i = 1; i < c.inputs(); ++i) {
    c.require(c.dtype(i) == c.dtype(0), "input {} is {}, input 0 is {}", i, dtype_name(c.dtype(i)),
              dtype_name(c.dtype(0)));
    Shape aligned = c.shape(i);
    c.require(aligned.size() == y.size(), "input {} has shape {}, input 0 has {}", i,
              shape_text(aligned), shape_text(c.shape(0)));
    y[axis] = c.add(y[axis], aligned[axis], "axis of the output");
    aligned[axis] = c.shape(0)[axis];
    c.require(aligned == c.shape(0), "input {} has shape {}, which differs from {} beyond axis {}",
              i, shape_text(c.shape(i)), shape_text(c.shape(0)), axis);
  }
  return {{y, c.dtype(0)}};
}

Inferred infer_slice(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto& a = c.attributes<AxisAttributes>();
  const auto axis = static_cast<std::size_t>(c.axis(a.axis, c.shape(0)));
  Shape y = c.shape(0);
  c.require(a.begin >= 0 && a.begin < a.end && a.end <= y[axis],
            "[{}, {}) is no range of axis {} of x {}", a.begin, a.end, axis, shape_text(y));
  y[axis] = a.end - a.begin;
  return {{y, c.dtype(0)}};
}

Inferred infer_slice_grad(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto& a = c.attributes<AxisAttributes>();
  const DType type = c.float_type({{0, "dy"}});
  const auto axis = static_cast<std::size_t>(c.axis(a.axis, c.shape(0)));
  Shape x = c.shape(0);
  c.require(a.begin >= 0 && a.end >= a.begin && a.end - a.begin == x[axis] && a.end <= a.full,
            "[{}, {}) of an axis of {} does not hold dy {} along axis {}", a.begin, a.end, a.full,
            shape_text(x), axis);
  x[axis] = a.full;
  return {{x, type}};
}

Inferred infer_broadcast(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const Shape& x = c.shape(0);
  const Shape& y = c.attributes<ShapeAttributes>().shape;
  c.require_dtype(0, "x", DType::kF32);
  (void)c.elements(y, "the new shape");
  c.require(x.size() <= y.size(), "x {} has more axes than {}", shape_text(x), shape_text(y));
  for (std::size_t i = 0; i < x.size(); ++i) {
    const Dim from = x[x.size() - 1 - i];
    const Dim to = y[y.size() - 1 - i];
    c.require(from == to || from == 1, "x {} does not broadcast to {}: {} against {}",
              shape_text(x), shape_text(y), from, to);
  }
  return {{y}};
}

Inferred infer_reduce(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const auto& a = c.attributes<ReduceAttributes>();
  c.require_dtype(0, "x", DType::kF32);
  c.require(std::is_sorted(a.axes.begin(), a.axes.end()) &&
                std::adjacent_find(a.axes.begin(), a.axes.end()) == a.axes.end(),
            "axes {} must be sorted and unique", shape_text(a.axes));
  for (std::int64_t axis : a.axes) (void)c.axis(axis, c.shape(0));
  Shape y;
  for (std::size_t i = 0; i < c.shape(0).size(); ++i) {
    const bool reduced = a.axes.empty() || std::binary_search(a.axes.begin(), a.axes.end(),
                                                              static_cast<std::int64_t>(i));
    if (!reduced) y.push_back(c.shape(0)[i]);
    if (reduced && a.keep_axes) y.push_back(1);
  }
  return {{y}};
}

Inferred infer_fill(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const Shape& y = c.attributes<ShapeAttributes>().shape;
  (void)c.elements(y, "the shape");
  return {{y}};
}

Inferred infer_reorder(const Graph& graph, const Node& node) {
  const InferContext c(graph, node);
  const std::string& layout = c.attributes<ReorderAttributes>().layout;
  c.require(is_layout_name(layout), "'{}' is no layout; expected plain or axes like aBcd16b",
            layout);
  return {{c.shape(0), c.dtype(0)}};
}

}  // namespace reprise::graph
