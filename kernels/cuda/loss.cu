// A row of logits belongs to a warp, or to a block where it is long. Rows are added up by one
// block.

#include <climits>
#include <cmath>

#include "kernels/cuda/grid.h"
#include "kernels/cuda/loss.h"
#include "kernels/cuda/reduction.cuh"
#include "kernels/cuda/status.h"
#include "platform/launch.h"

namespace reprise::kernels::cuda {
namespace {

constexpr std::int64_t kLongRow = 1024;
constexpr int kOneBlock = 1024;

template <int kLanes>
__device__ inline std::int64_t row_of_thread() {
  return static_cast<std::int64_t>(blockIdx.x) * (kGroupBlock / kLanes) + threadIdx.x / kLanes;
}

struct Softmax {
  float largest;
  double sum;  // of exp(x - largest)
};

template <int kLanes>
__device__ inline Softmax softmax_of(const float* row, std::int64_t classes) {
  const auto lane = static_cast<int>(threadIdx.x % kLanes);
  float largest = -INFINITY;
  for (std::int64_t k = lane; k < classes; k += kLanes) largest = fmaxf(largest, row[k]);
  largest = group_max<kLanes>(largest);
  double sum = 0.0;
  for (std::int64_t k = lane; k < classes; k += kLanes) {
    sum += static_cast<double>(expf(row[k] - largest));
  }
  return {largest, group_sum<kLanes>(sum)};
}

__device__ inline bool in_range(const LabelledRows& r, std::int32_t label) {
  return label >= 0 && label < r.classes;
}

template <int kLanes>
__global__ void row_losses_kernel(LabelledRows r, const float* logits, const std::int32_t* labels,
                                  double* losses) {
  const std::int64_t m = row_of_thread<kLanes>();
  if (m >= r.rows) return;
  const std::int32_t label = labels[m];
  double loss = 0.0;
  if (label != r.ignored) {
    const float* row = logits + m * r.classes;
    const Softmax s = softmax_of<kLanes>(row, r.classes);
    loss = in_range(r, label)
               ? log(s.sum) + static_cast<double>(s.largest) - static_cast<double>(row[label])
               : static_cast<double>(NAN);
  }
  if (threadIdx.x % kLanes == 0) losses[m] = loss;
}

// How many labels count, in every thread of a block of kOneBlock.
__device__ inline std::int32_t counted_labels(const LabelledRows& r, const std::int32_t* labels) {
  std::int32_t counted = 0;
  for (std::int64_t m = threadIdx.x; m < r.rows; m += kOneBlock) {
    if (labels[m] != r.ignored) ++counted;
  }
  return block_sum<kOneBlock>(counted);
}

__global__ void loss_of_rows_kernel(LabelledRows r, const double* losses,
                                    const std::int32_t* labels, float* loss) {
  const std::int32_t counted = counted_labels(r, labels);
  double sum = 0.0;
  for (std::int64_t m = threadIdx.x; m < r.rows; m += kOneBlock) sum += losses[m];
  sum = block_sum<kOneBlock>(sum);
  if (threadIdx.x != 0) return;
  *loss = static_cast<float>(r.mean && counted > 0 ? sum / counted : sum);
}

__global__ void counted_labels_kernel(LabelledRows r, const std::int32_t* labels,
                                      std::int32_t* counted) {
  const std::int32_t count = counted_labels(r, labels);
  if (threadIdx.x == 0) *counted = count;
}

template <int kLanes>
__global__ void row_gradients_kernel(LabelledRows r, const float* logits,
                                     const std::int32_t* labels, const float* dloss,
                                     const std::int32_t* counted, float* dlogits) {
  const std::int64_t m = row_of_thread<kLanes>();
  if (m >= r.rows) return;
  const std::int32_t label = labels[m];
  const float* row = logits + m * r.classes;
  float* out = dlogits + m * r.classes;
  const auto lane = static_cast<int>(threadIdx.x % kLanes);
  if (label == r.ignored) {
    for (std::int64_t k = lane; k < r.classes; k += kLanes) out[k] = 0.0F;
    return;
  }
  const Softmax s = softmax_of<kLanes>(row, r.classes);
  double weight = static_cast<double>(*dloss) / (r.mean && *counted > 0 ? *counted : 1);
  if (!in_range(r, label)) weight = static_cast<double>(NAN);
  const auto of_exponential = static_cast<float>(weight / s.sum);
  for (std::int64_t k = lane; k < r.classes; k += kLanes) {
    const float all = of_exponential * expf(row[k] - s.largest);
    out[k] = k == label ? all - static_cast<float>(weight) : all;
  }
}

// The first largest class of each row.
template <int kLanes>
__global__ void correct_count_kernel(LabelledRows r, const float* logits,
                                     const std::int32_t* labels, std::int32_t* correct) {
  static_assert(kLanes == 32);
  const std::int64_t m = row_of_thread<kLanes>();
  if (m >= r.rows) return;
  const float* row = logits + m * r.classes;
  float best = -INFINITY;
  auto at = static_cast<std::int32_t>(threadIdx.x % kLanes);
  if (at < r.classes) best = row[at];
  for (std::int64_t k = at + kLanes; k < r.classes; k += kLanes) {
    if (row[k] > best) {
      best = row[k];
      at = static_cast<std::int32_t>(k);
    }
  }
  for (int distance = 16; distance > 0; distance /= 2) {
    const float other = __shfl_xor_sync(kAllLanes, best, distance);
    const std::int32_t other_at = __shfl_xor_sync(kAllLanes, at, distance);
    if (other > best || (other == best && other_at < at)) {
      best = other;
      at = other_at;
    }
  }
  if (threadIdx.x % kLanes == 0 && labels[m] != r.ignored && labels[m] == at) {
    atomicAdd(correct, 1);  // whole numbers: the order does not matter
  }
}

__global__ void mean_squared_error_grad_kernel(double divisor, const float* prediction,
                                               const float* target, const float* dloss,
                                               float* dprediction, std::int64_t count) {
  const auto factor = static_cast<float>(2.0 * static_cast<double>(*dloss) / divisor);
  const std::int64_t threads = static_cast<std::int64_t>(gridDim.x) * blockDim.x;
  for (std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < count;
       i += threads) {
    dprediction[i] = factor * (prediction[i] - target[i]);
  }
}

template <int kLanes>
dim3 row_grid(const LabelledRows& r) {
  constexpr std::int64_t kRows = kGroupBlock / kLanes;
  return dim3(static_cast<unsigned>((r.rows + kRows - 1) / kRows));
}

std::size_t size(std::int64_t count) {
  return static_cast<std::size_t>(count);
}

}  // namespace

void launch_softmax_cross_entropy(const LabelledRows& r, const float* logits,
                                  const std::int32_t* labels, float* loss, double* losses,
                                  cudaStream_t stream) {
  const bool wide = r.classes > kLongRow;
  launch("row_losses", wide ? row_losses_kernel<256> : row_losses_kernel<32>,
         wide ? row_grid<256>(r) : row_grid<32>(r), dim3(kGroupBlock), stream,
         {reads(logits, size(r.rows * r.classes)), reads(labels, size(r.rows)),
          writes(losses, size(r.rows))},
         r, logits, labels, losses);
  launch("loss_of_rows", loss_of_rows_kernel, dim3(1), dim3(kOneBlock), stream,
         {reads(losses, size(r.rows)), reads(labels, size(r.rows)), writes(loss, 1)}, r, losses,
         labels, loss);
}

void launch_softmax_cross_entropy_grad(const LabelledRows& r, const float* logits,
                                       const std::int32_t* labels, const float* dloss,
                                       float* dlogits, std::int32_t* counted, cudaStream_t stream) {
  launch("counted_labels", counted_labels_kernel, dim3(1), dim3(kOneBlock), stream,
         {reads(labels, size(r.rows)), writes(counted, 1)}, r, labels, counted);
  const bool wide = r.classes > kLongRow;
  launch("row_gradients", wide ? row_gradients_kernel<256> : row_gradients_kernel<32>,
         wide ? row_grid<256>(r) : row_grid<32>(r), dim3(kGroupBlock), stream,
         {reads(logits, size(r.rows * r.classes)), reads(labels, size(r.rows)), reads(dloss, 1),
          reads(counted, 1), writes(dlogits, size(r.rows * r.classes))},
         r, logits, labels, dloss, counted, dlogits);
}

void launch_correct_count(const LabelledRows& r, const float* logits, const std::int32_t* labels,
                          std::int32_t* correct, cudaStream_t stream) {
  check(cudaMemsetAsync(correct, 0, sizeof(*correct), stream), "cudaMemsetAsync");
  launch("correct_count", correct_count_kernel<32>, row_grid<32>(r), dim3(kGroupBlock), stream,
         {reads(logits, size(r.rows * r.classes)), reads(labels, size(r.rows)), reads(correct, 1),
          writes(correct, 1)},
         r, logits, labels, correct);
}

void launch_mean_squared_error_grad(double divisor, const float* prediction, const float* target,
                                    const float* dloss, float* dprediction, std::int64_t count,
                                    cudaStream_t stream) {
  if (count == 0) return;
  launch("mean_squared_error_grad", mean_squared_error_grad_kernel, grid_for(count), dim3(kBlock),
         stream,
         {reads(prediction, size(count)), reads(target, size(count)), reads(dloss, 1),
          writes(dprediction, size(count))},
         divisor, prediction, target, dloss, dprediction, count);
}

}  // namespace reprise::kernels::cuda
