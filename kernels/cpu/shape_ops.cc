// Moving bytes: concat, slice, fill. Blocked layouts are cut as they lie where the cut falls
// between two blocks; else the values are made plain first.

#include <algorithm>
#include <cstring>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/primitive.h"

namespace reprise::kernels::cpu {
namespace {

using graph::AxisAttributes;

// A tensor as outer x axis x inner bytes around the axis that is cut, in units of the layout
// (blocks where the channels are cut).
struct Cut {
  std::int64_t outer = 1;
  std::int64_t unit = 1;   // elements of the axis in one step
  std::int64_t inner = 1;  // bytes of one step
};

// How `layout` is cut along `axis`; lanes as in ChannelView.
Cut cut_along(const graph::Shape& shape, std::int64_t axis, std::int64_t lanes, Bytes element) {
  Cut cut{.inner = element};
  const auto at = static_cast<std::size_t>(axis);
  const bool blocked = lanes > 1;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    // The channel axis of a blocked layout counts blocks; its lanes are the innermost axis.
    const std::int64_t size = blocked && d == 1 ? (shape[d] + lanes - 1) / lanes : shape[d];
    if (d < at) cut.outer *= size;
    if (d > at) cut.inner *= size;
  }
  if (blocked) {
    cut.inner *= lanes;
    if (at == 1) cut.unit = lanes;
  }
  return cut;
}

// Lanes of a blocked layout that can be cut along `axis` at the places `begin` and `end` of `size`;
// 1 when it has to be made plain.
std::int64_t lanes_for_cut(const Layout& layout, std::int64_t axis, std::int64_t begin,
                           std::int64_t end, std::int64_t size) {
  ChannelView view;
  if (layout.is_plain || !channel_view(layout, view) || view.lanes > 16) return 1;
  if (view.lanes != 8 && view.lanes != 16) return 1;
  const bool between_blocks = begin % view.lanes == 0 && (end % view.lanes == 0 || end == size);
  return axis != 1 || between_blocks ? view.lanes : 1;
}

std::int64_t steps(const Cut& cut, std::int64_t elements) {
  return (elements + cut.unit - 1) / cut.unit;
}

// Copies outer rows of `row` bytes from one pitch to another.
void copy_rows(const std::byte* from, std::int64_t from_pitch, std::byte* to, std::int64_t to_pitch,
               std::int64_t row, std::int64_t rows) {
  if (rows == 1) {  // one long run: cut into lines so that all threads copy
    constexpr std::int64_t kLine = 64;
    parallel_ranges(row / kLine + 1, row / 4, [&](std::int64_t begin, std::int64_t end) {
      const std::int64_t first = begin * kLine;
      const std::int64_t last = std::min(row, end * kLine);
      if (last > first)
        std::memcpy(to + first, from + first, static_cast<std::size_t>(last - first));
    });
    return;
  }
  parallel_ranges(rows, rows * row / 4, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      std::memcpy(to + i * to_pitch, from + i * from_pitch, static_cast<std::size_t>(row));
    }
  });
}

}  // namespace

std::unique_ptr<Kernel> plan_reshape(Booking& b) {
  b.require_plain(0);
  b.produce_plain(0);
  const auto bytes = static_cast<std::size_t>(b.layout(0).bytes);
  return make_kernel([bytes](const Run& run) {
    // Executors hand the bytes on; a caller with two buffers gets a copy.
    if (run.inputs[0] != run.outputs[0]) std::memcpy(run.outputs[0], run.inputs[0], bytes);
  });
}

// Lanes of the blocked layout in which the inputs of a concat are joined; 1 when they have to be
// made plain: when none is blocked, or when a part but the last ends inside of a block of channels.
std::int64_t lanes_for_concat(const Booking& b, std::int64_t axis) {
  std::int64_t lanes = 1;
  for (std::size_t i = 0; i < b.inputs() && lanes == 1; ++i) {
    ChannelView view;
    if (b.layout(i).is_plain || !channel_view(b.layout(i), view)) continue;
    if (view.lanes == 8 || view.lanes == 16) lanes = view.lanes;
  }
  if (axis != 1) return lanes;
  for (std::size_t i = 0; i + 1 < b.inputs(); ++i) {
    if (b.input(i).shape[1] % lanes != 0) return 1;
  }
  return lanes;
}

// x1 x2 ... => y
std::unique_ptr<Kernel> plan_concat(Booking& b) {
  const std::int64_t axis = b.attributes<AxisAttributes>().axis;
  const auto at = static_cast<std::size_t>(axis);
  const Bytes element = graph::dtype_bytes(b.output(0).dtype);
  const std::int64_t lanes = lanes_for_concat(b, axis);
  // The parts differ in shape, so each gets the blocked layout of its own shape.
  for (std::size_t i = 0; i < b.inputs(); ++i) {
    if (lanes == 1) {
      b.require_plain(i);
    } else {
      b.require(i, channel_desc(b.input(i).shape, lanes, b.input(i).dtype));
    }
  }
  if (lanes == 1) {
    b.produce_plain(0);
  } else {
    b.produce(0, channel_desc(b.output(0).shape, lanes, b.output(0).dtype));
  }
  const Cut cut = cut_along(b.output(0).shape, axis, lanes, element);
  std::vector<std::int64_t> rows;
  for (std::size_t i = 0; i < b.inputs(); ++i) {
    rows.push_back(steps(cut, b.input(i).shape[at]) * cut.inner);
  }
  const std::int64_t pitch = steps(cut, b.output(0).shape[at]) * cut.inner;
  return make_kernel([=](const Run& run) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < rows.size(); ++i) {
      copy_rows(run.inputs[i], rows[i], run.outputs[0] + offset, pitch, rows[i], cut.outer);
      offset += rows[i];
    }
  });
}

// x => y = x[begin, end)
std::unique_ptr<Kernel> plan_slice(Booking& b) {
  const auto& a = b.attributes<AxisAttributes>();
  const std::int64_t size = b.input(0).shape[static_cast<std::size_t>(a.axis)];
  const std::int64_t lanes = lanes_for_cut(b.layout(0), a.axis, a.begin, a.end, size);
  if (lanes == 1) {
    b.require_plain(0);
    b.produce_plain(0);
  } else {
    b.produce(0, channel_desc(b.output(0).shape, lanes, b.output(0).dtype));
  }
  const Cut cut = cut_along(b.input(0).shape, a.axis, lanes, graph::dtype_bytes(b.input(0).dtype));
  const std::int64_t pitch = steps(cut, size) * cut.inner;
  const std::int64_t offset = a.begin / cut.unit * cut.inner;
  const std::int64_t row = steps(cut, a.end - a.begin) * cut.inner;
  return make_kernel([=](const Run& run) {
    copy_rows(run.inputs[0] + offset, pitch, run.outputs[0], row, row, cut.outer);
  });
}

// dy => dx: dy at [begin, end), zeros elsewhere
std::unique_ptr<Kernel> plan_slice_grad(Booking& b) {
  const auto& a = b.attributes<AxisAttributes>();
  const std::int64_t part = b.input(0).shape[static_cast<std::size_t>(a.axis)];
  const std::int64_t lanes = lanes_for_cut(b.layout(0), a.axis, a.begin, a.begin + part, a.full);
  if (lanes == 1) {
    b.require_plain(0);
    b.produce_plain(0);
  } else {
    b.produce(0, channel_desc(b.output(0).shape, lanes, b.output(0).dtype));
  }
  const Cut cut =
      cut_along(b.output(0).shape, a.axis, lanes, graph::dtype_bytes(b.output(0).dtype));
  const std::int64_t pitch = steps(cut, a.full) * cut.inner;
  const std::int64_t offset = a.begin / cut.unit * cut.inner;
  const std::int64_t row = steps(cut, part) * cut.inner;
  return make_kernel([=](const Run& run) {
    parallel_ranges(cut.outer, cut.outer * pitch / 4, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::byte* to = run.outputs[0] + i * pitch;
        std::memset(to, 0, static_cast<std::size_t>(offset));
        std::memcpy(to + offset, run.inputs[0] + i * row, static_cast<std::size_t>(row));
        std::memset(to + offset + row, 0, static_cast<std::size_t>(pitch - offset - row));
      }
    });
  });
}

// => y
std::unique_ptr<Kernel> plan_fill(Booking& b) {
  b.produce_plain(0);
  const auto value = static_cast<float>(b.attributes<graph::ShapeAttributes>().value);
  const std::int64_t count = graph::element_count(b.output(0).shape);
  return make_kernel([=](const Run& run) {
    float* y = run.output<float>(0);
    parallel_ranges(count, count, [&](std::int64_t begin, std::int64_t end) {
      std::fill(y + begin, y + end, value);
    });
  });
}

// Only the layout pass makes reorders; one that a graph brings along is undone by the next reader.
std::unique_ptr<Kernel> plan_reorder(Booking& b) {
  if (b.attributes<graph::ReorderAttributes>().layout != "plain") {
    throw b.unsupported("a given reorder may only ask for the plain layout");
  }
  b.require_plain(0);
  b.produce_plain(0);
  const auto bytes = static_cast<std::size_t>(b.layout(0).bytes);
  return make_kernel(
      [bytes](const Run& run) { std::memcpy(run.outputs[0], run.inputs[0], bytes); });
}

}  // namespace reprise::kernels::cpu
