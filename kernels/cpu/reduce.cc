// Sums over axes, and their gradient's broadcast. Neighbouring axes that behave alike are joined,
// so that the common cases are two or three loops.

#include <algorithm>
#include <array>
#include <cstring>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace reprise::kernels::cpu {
namespace {

constexpr std::size_t kMaxRuns = 8;

// Loops over one side of the tensor: sizes and the distance in elements between neighbours.
struct Loops {
  std::size_t count = 0;
  std::array<std::int64_t, kMaxRuns> size{};
  std::array<std::int64_t, kMaxRuns> stride{};

  [[nodiscard]] std::int64_t elements() const {
    std::int64_t product = 1;
    for (std::size_t i = 0; i < count; ++i) product *= size[i];
    return product;
  }
  // Where element number `index` lies, counted row by row.
  [[nodiscard]] std::int64_t offset(std::int64_t index) const {
    std::int64_t at = 0;
    for (std::size_t i = count; i-- > 0;) {
      at += index % size[i] * stride[i];
      index /= size[i];
    }
    return at;
  }
  void add(std::int64_t extent, std::int64_t step) {
    if (extent == 1) return;
    if (count > 0 && stride[count - 1] == extent * step) {
      size[count - 1] *= extent;
      stride[count - 1] = step;
      return;
    }
    size[count] = extent;
    stride[count] = step;
    ++count;
  }
};

// The wide tensor's axes that stay and those that are summed (or repeated).
struct Split {
  Loops kept;
  Loops summed;
};

Split split_axes(const graph::Shape& wide, const std::vector<bool>& summed) {
  Split split;
  std::int64_t stride = graph::element_count(wide);
  for (std::size_t d = 0; d < wide.size(); ++d) {
    stride /= std::max<std::int64_t>(wide[d], 1);
    (summed[d] ? split.summed : split.kept).add(wide[d], stride);
  }
  return split;
}

// Sum of the elements [begin, end) of the summed loops below `base`.
double sum_range(const float* base, const Loops& loops, std::int64_t begin, std::int64_t end) {
  double sum = 0;
  if (loops.count <= 1) {
    const std::int64_t stride = loops.count == 0 ? 0 : loops.stride[0];
    std::array<double, 4> parts{};
    std::int64_t i = begin;
    for (; i + 4 <= end; i += 4) {
      for (std::int64_t lane = 0; lane < 4; ++lane) {
        parts[static_cast<std::size_t>(lane)] += base[(i + lane) * stride];
      }
    }
    for (; i < end; ++i) parts[0] += base[i * stride];
    return parts[0] + parts[1] + parts[2] + parts[3];
  }
  for (std::int64_t i = begin; i < end; ++i) sum += base[loops.offset(i)];
  return sum;
}

}  // namespace

// x => y
std::unique_ptr<Kernel> plan_reduce(Booking& b) {
  const auto& a = b.attributes<graph::ReduceAttributes>();
  const graph::Shape& x = b.input(0).shape;
  std::vector<bool> summed(x.size(), a.axes.empty());
  for (const std::int64_t axis : a.axes) summed[static_cast<std::size_t>(axis)] = true;
  const Split split = split_axes(x, summed);
  b.require_plain(0);
  b.produce_plain(0);
  const std::int64_t outputs = split.kept.elements();
  const std::int64_t terms = split.summed.elements();
  b.flops(static_cast<double>(outputs * terms));
  const double factor =
      b.node().op == graph::OpKind::kReduceMean ? 1.0 / static_cast<double>(terms) : 1.0;
  // Few results over many terms: each is cut into parts, which are added in order.
  const std::int64_t parts =
      outputs >= 16 ? 1 : std::clamp<std::int64_t>(terms / kSerialElements, 1, 64);
  b.workspace(parts == 1 ? 0 : outputs * parts * static_cast<Bytes>(sizeof(double)));
  return make_kernel([=](const Run& run) {
    const float* from = run.input<float>(0);
    float* to = run.output<float>(0);
    if (parts == 1) {
      parallel_ranges(outputs, outputs * terms, [&](std::int64_t begin, std::int64_t end) {
        for (std::int64_t i = begin; i < end; ++i) {
          const double sum = sum_range(from + split.kept.offset(i), split.summed, 0, terms);
          to[i] = static_cast<float>(factor * sum);
        }
      });
      return;
    }
    auto* sums = run.scratch<double>();
    for (std::int64_t i = 0; i < outputs; ++i) {
      parallel_parts(parts, terms, [&](std::int64_t part, std::int64_t begin, std::int64_t end) {
        sums[part] = sum_range(from + split.kept.offset(i), split.summed, begin, end);
      });
      double sum = 0;
      for (std::int64_t part = 0; part < parts; ++part) sum += sums[part];
      to[i] = static_cast<float>(factor * sum);
    }
  });
}

// x => y of attributes.shape; axes aligned at the right
std::unique_ptr<Kernel> plan_broadcast(Booking& b) {
  const graph::Shape& x = b.input(0).shape;
  const graph::Shape& y = b.output(0).shape;
  b.require_plain(0);
  b.produce_plain(0);
  Loops loops;             // of y, with strides in x
  std::int64_t inner = 1;  // trailing elements that x has as well, or that repeat one element
  std::int64_t stride = 1;
  std::vector<std::int64_t> strides(y.size(), 0);
  for (std::size_t d = 0; d < x.size(); ++d) {
    const std::size_t from_right = x.size() - 1 - d;
    const std::int64_t size = x[from_right];
    if (size != 1) strides[y.size() - 1 - d] = stride;
    stride *= size;
  }
  for (std::size_t d = 0; d < y.size(); ++d) loops.add(y[d], strides[d]);
  std::int64_t inner_stride = 0;
  if (loops.count > 0) {
    --loops.count;
    inner = loops.size[loops.count];
    inner_stride = loops.stride[loops.count];
  }
  const std::int64_t rows = loops.elements();
  return make_kernel([=](const Run& run) {
    const float* from = run.input<float>(0);
    float* to = run.output<float>(0);
    parallel_ranges(rows, rows * inner, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t row = begin; row < end; ++row) {
        const float* source = from + loops.offset(row);
        if (inner_stride == 0) {
          std::fill_n(to + row * inner, inner, *source);
        } else if (inner_stride == 1) {
          std::copy_n(source, inner, to + row * inner);
        } else {
          for (std::int64_t i = 0; i < inner; ++i) to[row * inner + i] = source[i * inner_stride];
        }
      }
    });
  });
}

}  // namespace reprise::kernels::cpu
