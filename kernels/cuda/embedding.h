#pragma once

// Rows of a table by id, and their gradient, on the device.

#include <cstdint>
#include <cuda_runtime.h>

namespace reprise::kernels::cuda {

// table[V,D] ids[N] y[N,D]. The host checks ids when it imports them; one that is out of range all
// the same reads and writes nothing but makes NaN of its row of y.
struct EmbeddingSizes {
  std::int64_t rows = 0;   // V
  std::int64_t width = 0;  // D
  std::int64_t ids = 0;    // N
};

void launch_embedding(const EmbeddingSizes& s, const float* table, const std::int32_t* ids,
                      float* y, cudaStream_t stream);

// dtable[id] = the sum of dy[i] over all i with ids[i] == id, in the order of i; or that added to
// what dtable holds.
void launch_embedding_grad(const EmbeddingSizes& s, const std::int32_t* ids, const float* dy,
                           bool accumulate, float* dtable, cudaStream_t stream);

}  // namespace reprise::kernels::cuda
