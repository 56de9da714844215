// Rows of a table by id, and their gradient.

#include "kernels/cuda/embedding.h"

#include "kernels/cuda/copy.h"
#include "kernels/cuda/ops.h"

namespace reprise::kernels::cuda {
namespace {

constexpr std::int64_t kMostWidth = std::int64_t{65535} * 128;  // blocks along y of the gradient

}  // namespace

// table[V,D] ids[..] => y[..,D]
std::unique_ptr<Kernel> plan_embedding(Booking& b) {
  const EmbeddingSizes s{.rows = b.input(0).shape[0],
                         .width = b.input(0).shape[1],
                         .ids = graph::element_count(b.input(1).shape)};
  // Only the rows that are named.
  b.moves(static_cast<double>(2 * s.ids * s.width) * sizeof(float));
  return make_kernel([s](const Run& run) {
    launch_embedding(s, run.input(0), run.input<std::int32_t>(1), run.output(0), run.stream());
  });
}

// ids dy acc? => dtable[V,D]
std::unique_ptr<Kernel> plan_embedding_grad(Booking& b) {
  const EmbeddingSizes s{.rows = b.output(0).shape[0],
                         .width = b.output(0).shape[1],
                         .ids = graph::element_count(b.input(0).shape)};
  if (s.width > kMostWidth) throw b.unsupported("its rows are longer than 8388480");
  const bool accumulates = b.accumulates();
  b.flops(static_cast<double>(s.ids * s.width));
  return make_kernel([s, accumulates](const Run& run) {
    if (accumulates)
      copy_to_output(run, 2, 0, s.rows * s.width * static_cast<Bytes>(sizeof(float)));
    launch_embedding_grad(s, run.input<std::int32_t>(0), run.input(1), accumulates, run.output(0),
                          run.stream());
  });
}

}  // namespace reprise::kernels::cuda
