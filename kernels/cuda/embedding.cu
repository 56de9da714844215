// The gradient, without sorting and without atomics on floats: a block owns a tile of the table,
// kTileRows rows by kThreads columns, and keeps its sums in shared memory, where thread k alone
// adds to column k. The block reads all ids, kChunk at a time; of those it lists the ones that name
// its rows, in their order, and then adds the rows of dy that they stand for:
//
//   ids    7 3 9 3 ...      rows 0 to 31 are ours: list = (7, dy 0) (3, dy 1) (9, dy 2) (3, dy 3)
//
// So every sum is made in the order of the ids, as the plain loop makes it. Each id is read once by
// every block, V/32 * D/128 times: for a table of 50,000 by 512 and 32,000 ids, 0.8 GB out of the
// second-level cache.

#include "kernels/cuda/embedding.h"
#include "kernels/cuda/grid.h"
#include "platform/launch.h"

namespace reprise::kernels::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kWarps = kThreads / 32;
constexpr int kTileRows = 32;
constexpr int kOfThread = 4;  // ids that a thread looks at in a row
constexpr int kChunk = kThreads * kOfThread;

__global__ void embedding_kernel(EmbeddingSizes s, const float* table, const std::int32_t* ids,
                                 float* y) {
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  const std::int64_t first = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  for (std::int64_t i = first; i < s.ids * s.width; i += threads) {
    const std::int64_t id = ids[i / s.width];
    const bool in_range = id >= 0 && id < s.rows;
    y[i] = in_range ? table[id * s.width + i % s.width] : nanf("");
  }
}

// Number of `count`s in the threads of the block before this one; in `total` that of all.
__device__ inline int count_before(int count, int* total) {
  __shared__ int of_warp[kWarps];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  int sum = count;
  for (int distance = 1; distance < 32; distance *= 2) {
    const int below = __shfl_up_sync(0xffffffffU, sum, static_cast<unsigned>(distance));
    if (lane >= distance) sum += below;
  }
  if (lane == 31) of_warp[warp] = sum;
  __syncthreads();
  int before = sum - count;
  *total = 0;
  for (int w = 0; w < kWarps; ++w) {
    if (w < warp) before += of_warp[w];
    *total += of_warp[w];
  }
  return before;
}

__global__ void embedding_grad_kernel(EmbeddingSizes s, const std::int32_t* ids, const float* dy,
                                      bool accumulate, float* dtable) {
  __shared__ float sums[kTileRows][kThreads];
  __shared__ int listed_row[kChunk];  // within the tile
  __shared__ int listed_id[kChunk];   // within the chunk
  const int t = static_cast<int>(threadIdx.x);
  const std::int64_t first_row = static_cast<std::int64_t>(blockIdx.x) * kTileRows;
  const std::int64_t column = static_cast<std::int64_t>(blockIdx.y) * kThreads + t;
  const std::int64_t left = s.rows - first_row;
  const int tile_rows = left < kTileRows ? static_cast<int>(left) : kTileRows;
  const bool has_column = column < s.width;

  for (int row = 0; row < tile_rows; ++row) {
    const bool load = accumulate && has_column;
    sums[row][t] = load ? dtable[(first_row + row) * s.width + column] : 0.0F;
  }
  for (std::int64_t chunk = 0; chunk < s.ids; chunk += kChunk) {
    std::int64_t row[kOfThread];
    int count = 0;
    for (int j = 0; j < kOfThread; ++j) {
      const std::int64_t i = chunk + t * kOfThread + j;
      row[j] = i < s.ids ? ids[i] - first_row : -1;
      count += row[j] >= 0 && row[j] < tile_rows ? 1 : 0;
    }
    int listed = 0;
    int at = count_before(count, &listed);  // its barrier: all have read the last chunk's list
    for (int j = 0; j < kOfThread; ++j) {
      if (row[j] < 0 || row[j] >= tile_rows) continue;
      listed_row[at] = static_cast<int>(row[j]);
      listed_id[at] = t * kOfThread + j;
      ++at;
    }
    __syncthreads();
    if (has_column) {
      for (int n = 0; n < listed; ++n) {
        sums[listed_row[n]][t] += dy[(chunk + listed_id[n]) * s.width + column];
      }
    }
  }
  if (!has_column) return;
  for (int row = 0; row < tile_rows; ++row) {
    dtable[(first_row + row) * s.width + column] = sums[row][t];
  }
}

std::size_t floats(std::int64_t rows, std::int64_t width) {
  return static_cast<std::size_t>(rows * width);
}

}  // namespace

void launch_embedding(const EmbeddingSizes& s, const float* table, const std::int32_t* ids,
                      float* y, cudaStream_t stream) {
  if (s.ids * s.width == 0) return;
  launch("embedding", embedding_kernel, grid_for(s.ids * s.width), dim3(kBlock), stream,
         {reads(table, floats(s.rows, s.width)), reads(ids, static_cast<std::size_t>(s.ids)),
          writes(y, floats(s.ids, s.width))},
         s, table, ids, y);
}

void launch_embedding_grad(const EmbeddingSizes& s, const std::int32_t* ids, const float* dy,
                           bool accumulate, float* dtable, cudaStream_t stream) {
  if (s.rows * s.width == 0) return;
  const dim3 grid(static_cast<unsigned>((s.rows + kTileRows - 1) / kTileRows),
                  static_cast<unsigned>((s.width + kThreads - 1) / kThreads));
  launch("embedding_grad", embedding_grad_kernel, grid, dim3(kThreads), stream,
         {reads(ids, static_cast<std::size_t>(s.ids)), reads(dy, floats(s.ids, s.width)),
          writes(dtable, floats(s.rows, s.width))},
         s, ids, dy, accumulate, dtable);
}

}  // namespace reprise::kernels::cuda
