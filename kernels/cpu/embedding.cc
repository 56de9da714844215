// Rows of a table by id, and their gradient.

#include <algorithm>
#include <cstring>

#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"

namespace reprise::kernels::cpu {
namespace {

void check_ids(const Run& run, const std::int32_t* ids, std::int64_t count, std::int64_t rows) {
  for (std::int64_t i = 0; i < count; ++i) {
    if (ids[i] < 0 || ids[i] >= rows) {
      throw base::input_error("node '{}': id {} at position {} is outside of [0, {})", run.node,
                              ids[i], i, rows);
    }
  }
}

REPRISE_VECTOR void add_row(const float* from, float* to, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

}  // namespace

// table[V,D] ids[..] => y[..,D]
std::unique_ptr<Kernel> plan_embedding(Booking& b) {
  b.require_plain(0);
  b.require_plain(1);
  b.produce_plain(0);
  const std::int64_t rows = b.input(0).shape[0];
  const std::int64_t width = b.input(0).shape[1];
  const std::int64_t count = graph::element_count(b.input(1).shape);
  b.moves(static_cast<double>(2 * count * width) * sizeof(float));  // only the rows that are named
  return make_kernel([=](const Run& run) {
    const float* table = run.input<float>(0);
    const auto* ids = run.input<std::int32_t>(1);
    float* y = run.output<float>(0);
    check_ids(run, ids, count, rows);
    parallel_ranges(count, count * width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i) {
        std::copy_n(table + ids[i] * width, width, y + i * width);
      }
    });
  });
}

// ids dy acc? => dtable[V,D]. Threads share the columns out, so that each element is summed by one
// thread in the order of the ids.
std::unique_ptr<Kernel> plan_embedding_grad(Booking& b) {
  for (std::size_t i = 0; i < b.inputs(); ++i) b.require_plain(i);
  b.produce_plain(0);
  const std::int64_t rows = b.output(0).shape[0];
  const std::int64_t width = b.output(0).shape[1];
  const std::int64_t count = graph::element_count(b.input(0).shape);
  const bool accumulate = b.node().accumulate;
  b.flops(static_cast<double>(count * width));
  const std::int64_t zeroed = accumulate ? 0 : rows * width;
  b.moves(static_cast<double>(3 * count * width + zeroed) * sizeof(float));
  return make_kernel([=](const Run& run) {
    const auto* ids = run.input<std::int32_t>(0);
    const float* dy = run.input<float>(1);
    float* table = run.output<float>(0);
    check_ids(run, ids, count, rows);
    const std::int64_t all = rows * width;
    if (!accumulate) {
      parallel_ranges(all, all, [&](std::int64_t begin, std::int64_t end) {
        std::fill(table + begin, table + end, 0.0f);
      });
    } else if (run.inputs[2] != run.outputs[0]) {
      std::copy_n(run.input<float>(2), all, table);
    }
    parallel_ranges(width, count * width, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = 0; i < count; ++i) {
        add_row(dy + i * width + begin, table + ids[i] * width + begin, end - begin);
      }
    });
  });
}

}  // namespace reprise::kernels::cpu
