// Sums and means over axes. Axes of one kind side by side are one axis; what then alternates is cut
// into steps of the form that channel_sums.h knows, the innermost first, with the sums of each step
// in the workspace.

#include <algorithm>
#include <optional>
#include <vector>

#include "kernels/cuda/broadcast.h"
#include "kernels/cuda/channel_sums.h"
#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {
namespace {

struct Axis {
  std::int64_t size;
  bool reduced;
};

// Without axes of size 1, neighbours of one kind joined, outermost first.
std::vector<Axis> joined_axes(const graph::Shape& x, const graph::Ints& reduced_axes) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == 1) continue;
    const bool reduced =
        reduced_axes.empty() ||
        std::binary_search(reduced_axes.begin(), reduced_axes.end(), static_cast<std::int64_t>(i));
    if (!axes.empty() && axes.back().reduced == reduced) {
      axes.back().size *= x[i];
    } else {
      axes.push_back({x[i], reduced});
    }
  }
  return axes;
}

// Takes the innermost [outer, channels, inner] off `axes`, which end with a reduced one or with a
// kept one behind a reduced one; what is left in front is the batch. Its kept axes come back as
// the innermost of `axes`.
SumSizes take_step(std::vector<Axis>& axes) {
  SumSizes s;
  if (axes.back().reduced) {
    s.inner = axes.back().size;
    axes.pop_back();
  }
  if (!axes.empty()) {
    s.channels = axes.back().size;
    axes.pop_back();
  }
  if (!axes.empty()) {
    s.outer = axes.back().size;
    axes.pop_back();
  }
  for (const Axis& axis : axes) s.batch *= axis.size;
  if (s.channels == 1) return s;
  if (!axes.empty() && !axes.back().reduced) {
    axes.back().size *= s.channels;
  } else {
    axes.push_back({s.channels, false});
  }
  return s;
}

// Null where the axes alternate between repeated and not more often than there is room for.
std::optional<BroadcastSizes> broadcast_sizes(const graph::Shape& x, const graph::Shape& y) {
  BroadcastSizes s{.from_count = graph::element_count(x), .to_count = graph::element_count(y)};
  std::int64_t next = 1;  // stride of the next axis of x
  for (std::size_t k = 0; k < y.size(); ++k) {
    const std::int64_t size = y[y.size() - 1 - k];
    const std::int64_t own = k < x.size() ? x[x.size() - 1 - k] : 1;
    if (size == 1) continue;
    const std::int64_t stride = own == 1 ? 0 : next;
    next *= own;
    const bool joins = s.axes > 0 && (s.stride[s.axes - 1] == 0) == (stride == 0);
    if (joins) {
      s.size[s.axes - 1] *= size;
      continue;
    }
    if (s.axes == BroadcastSizes::kMostAxes) return std::nullopt;
    s.size[s.axes] = size;
    s.stride[s.axes] = stride;
    ++s.axes;
  }
  return s;
}

bool left_to_reduce(const std::vector<Axis>& axes) {
  return std::any_of(axes.begin(), axes.end(), [](const Axis& axis) { return axis.reduced; });
}

}  // namespace

// x => y
std::unique_ptr<Kernel> plan_reduce(Booking& b) {
  const std::int64_t count = graph::element_count(b.input(0).shape);
  const std::int64_t results = graph::element_count(b.output(0).shape);
  std::vector<Axis> axes =
      joined_axes(b.input(0).shape, b.attributes<graph::ReduceAttributes>().axes);
  if (axes.empty() || !left_to_reduce(axes)) axes.push_back({1, true});
  struct Step {
    SumPlan plan;
    std::size_t partial_at, result_at;
  };
  std::vector<Step> steps;
  while (left_to_reduce(axes)) {
    const SumPlan plan(take_step(axes));
    const std::size_t partial = b.workspace(static_cast<Bytes>(plan.scratch_bytes()));
    const bool last = !left_to_reduce(axes);
    const std::size_t result =
        last ? 0 : b.workspace(plan.sizes.sums() * static_cast<Bytes>(sizeof(float)));
    steps.push_back({plan, partial, result});
  }
  const bool mean = b.node().op == graph::OpKind::kReduceMean;
  const double terms =
      static_cast<double>(count) / static_cast<double>(std::max<std::int64_t>(1, results));
  // The mean of nothing is the reference's: 0 / 0.
  const auto factor = static_cast<float>(mean ? 1.0 / terms : 1.0);
  b.flops(static_cast<double>(count));
  return make_kernel([steps, factor](const Run& run) {
    const float* from = run.input(0);
    for (const Step& step : steps) {
      const bool last = &step == &steps.back();
      float* to = last ? run.output(0) : run.scratch<float>(step.result_at);
      launch_sums(step.plan, last ? factor : 1.0F, from, nullptr, to,
                  run.scratch<double>(step.partial_at), run.stream());
      from = to;
    }
  });
}

// x => y of a larger shape
std::unique_ptr<Kernel> plan_broadcast(Booking& b) {
  const graph::Shape& x = b.input(0).shape;
  const graph::Shape& y = b.output(0).shape;
  const std::optional<BroadcastSizes> sizes = broadcast_sizes(x, y);
  if (!sizes) throw b.unsupported("its shapes alternate too often");
  return make_kernel([sizes = *sizes](const Run& run) {
    launch_broadcast(sizes, run.input(0), run.output(0), run.stream());
  });
}

}  // namespace reprise::kernels::cuda
