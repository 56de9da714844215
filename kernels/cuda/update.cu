#include <cmath>

#include "kernels/cuda/grid.h"
#include "kernels/cuda/reduction.cuh"
#include "kernels/cuda/update.h"
#include "platform/launch.h"

namespace reprise::kernels::cuda {
namespace {

struct Guard {
  float scale;  // of the gradient, as PyTorch's clip_grad_norm_ has it
  bool skip;
};

__device__ inline bool finite(float x) {
  return fabsf(x) <= 3.402823466e+38F;  // false for NaN
}

__device__ inline Guard guard_of(const GuardSettings& s, const float* norm) {
  Guard guard{1.0F, false};
  if (norm == nullptr) return guard;
  if (s.clip_norm > 0.0) {
    const double scale = s.clip_norm / (static_cast<double>(*norm) + 1e-6);
    if (scale < 1.0) guard.scale = static_cast<float>(scale);
  }
  guard.skip = s.skip_nonfinite && !finite(*norm);
  return guard;
}

__device__ inline std::int64_t first_index() {
  return static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline std::int64_t all_threads() {
  return static_cast<std::int64_t>(gridDim.x) * blockDim.x;
}

// Arrays of one allocation that one launch updates. What an update reads and writes of array k
// lies at[0][k], at[1][k], ... floats from a common base; kRoles of them.
constexpr int kTableArrays = 48;
template <int kRoles>
struct UpdateTable {
  std::int64_t at[kRoles][kTableArrays];
  std::int64_t count[kTableArrays];
  int blocks[kTableArrays];  // that work on it
};
constexpr std::int64_t kElementsPerBlock = 4096;

// What this block works on: of one array the elements [begin, end).
struct Part {
  int array;
  std::int64_t begin, end;
};
template <int kRoles>
__device__ inline Part part_of_block(const UpdateTable<kRoles>& table) {
  int block = static_cast<int>(blockIdx.x);
  int array = 0;
  while (block >= table.blocks[array]) block -= table.blocks[array++];
  const std::int64_t begin = block * kElementsPerBlock;
  const std::int64_t end = begin + kElementsPerBlock;
  return {array, begin, end < table.count[array] ? end : table.count[array]};
}

// SGD with momentum as PyTorch has it (dampening 0). Roles: p, g, p', m, m'.
template <bool kMomentum>
__global__ void sgd_kernel(SgdSettings s, UpdateTable<5> table, const double* scalars,
                           const float* norm, float* base) {
  const auto rate = static_cast<float>(scalars[0]);
  const Guard guard = guard_of(s.guard, norm);
  const Part part = part_of_block(table);
  const float* p = base + table.at[0][part.array];
  const float* g = base + table.at[1][part.array];
  float* p_out = base + table.at[2][part.array];
  const float* m = base + table.at[3][part.array];
  float* m_out = base + table.at[4][part.array];
  for (std::int64_t i = part.begin + threadIdx.x; i < part.end; i += kBlock) {
    const float parameter = p[i];
    float velocity = kMomentum ? m[i] : 0.0F;
    float next = parameter;
    if (!guard.skip) {
      float step = guard.scale * g[i] + s.weight_decay * parameter;
      if (kMomentum) {
        velocity = s.momentum * velocity + step;
        step = s.nesterov ? step + s.momentum * velocity : velocity;
      }
      next = parameter - rate * step;
    }
    p_out[i] = next;
    if (kMomentum) m_out[i] = velocity;
  }
}

// Adam (Kingma and Ba 2015), and AdamW (Loshchilov and Hutter 2019) when decoupled. Roles: p, g, m,
// v, p', m', v'.
__global__ void adam_kernel(AdamSettings s, UpdateTable<7> table, const double* scalars,
                            AdamScalars at, const float* norm, float* base) {
  const auto rate = static_cast<float>(scalars[at.rate]);
  const auto root_correction = static_cast<float>(scalars[at.root_correction]);
  const auto shrink = static_cast<float>(scalars[at.shrink]);
  const Guard guard = guard_of(s.guard, norm);
  const Part part = part_of_block(table);
  const float* p = base + table.at[0][part.array];
  const float* g = base + table.at[1][part.array];
  const float* m = base + table.at[2][part.array];
  const float* v = base + table.at[3][part.array];
  float* p_out = base + table.at[4][part.array];
  float* m_out = base + table.at[5][part.array];
  float* v_out = base + table.at[6][part.array];
  for (std::int64_t i = part.begin + threadIdx.x; i < part.end; i += kBlock) {
    float parameter = p[i];
    float first = m[i];
    float second = v[i];
    if (!guard.skip) {
      const float gradient = guard.scale * g[i] + s.coupled_decay * parameter;
      first = s.beta1 * first + s.rest1 * gradient;
      second = s.beta2 * second + s.rest2 * gradient * gradient;
      const float root = sqrtf(second) * root_correction + s.epsilon;
      parameter = shrink * parameter - rate * first / root;
    }
    p_out[i] = parameter;
    m_out[i] = first;
    v_out[i] = second;
  }
}

__global__ void guarded_assign_kernel(const float* norm, const std::int32_t* variable,
                                      const std::int32_t* x, std::int32_t* out,
                                      std::int64_t words) {
  const std::int32_t* from = finite(*norm) ? x : variable;
  for (std::int64_t i = first_index(); i < words; i += all_threads()) out[i] = from[i];
}

constexpr std::int64_t kNormPart = 16384;
constexpr std::int64_t kMostNormParts = 256;

struct NormCounts {
  std::int64_t count[kNormArrays];
  std::int64_t parts[kNormArrays];
};

// Block b makes part b of all arrays' parts, counted array by array.
__global__ void sums_of_squares_kernel(NormCounts n, const float* x0, const float* x1,
                                       const float* x2, const float* x3, const float* x4,
                                       const float* x5, const float* x6, const float* x7,
                                       double* partial) {
  const float* const arrays[kNormArrays] = {x0, x1, x2, x3, x4, x5, x6, x7};
  std::int64_t part = blockIdx.x;
  int array = 0;
  while (part >= n.parts[array]) part -= n.parts[array++];
  const std::int64_t length = (n.count[array] + n.parts[array] - 1) / n.parts[array];
  const std::int64_t begin = part * length;
  const std::int64_t end = begin + length < n.count[array] ? begin + length : n.count[array];
  double sum = 0.0;
  for (std::int64_t i = begin + threadIdx.x; i < end; i += kBlock) {
    const auto value = static_cast<double>(arrays[array][i]);
    sum += value * value;
  }
  sum = block_sum<kBlock>(sum);
  if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

__global__ void root_of_sum_kernel(const double* partial, std::int64_t parts, float* norm) {
  double sum = 0.0;
  for (std::int64_t i = threadIdx.x; i < parts; i += kBlock) sum += partial[i];
  sum = block_sum<kBlock>(sum);
  if (threadIdx.x == 0) *norm = static_cast<float>(sqrt(sum));
}

}  // namespace

namespace {

// Fills a table, and what its launch touches.
template <int kRoles>
class Tabulated {
 public:
  explicit Tabulated(float* base) : base_(base) {}

  void reads(int role, const float* data, std::int64_t count) {
    table_.at[role][arrays_] = data - base_;
    touched_.push_back(cuda::reads(data, static_cast<std::size_t>(count)));
  }
  void writes(int role, float* data, std::int64_t count) {
    table_.at[role][arrays_] = data - base_;
    touched_.push_back(cuda::writes(data, static_cast<std::size_t>(count)));
  }
  void next(std::int64_t count) {
    table_.count[arrays_] = count;
    table_.blocks[arrays_] = static_cast<int>((count + kElementsPerBlock - 1) / kElementsPerBlock);
    blocks_ += table_.blocks[arrays_++];
  }
  void touch(Touched touched) { touched_.push_back(touched); }

  [[nodiscard]] float* base() const { return base_; }
  [[nodiscard]] const UpdateTable<kRoles>& table() const { return table_; }
  [[nodiscard]] dim3 grid() const { return dim3(static_cast<unsigned>(blocks_)); }
  [[nodiscard]] std::span<const Touched> touched() const { return touched_.all(); }

 private:
  struct List {
    std::array<Touched, kRoles * kTableArrays + 4> items;
    std::size_t size = 0;
    void push_back(const Touched& item) { items[size++] = item; }
    [[nodiscard]] std::span<const Touched> all() const { return std::span(items).first(size); }
  };
  float* base_;
  UpdateTable<kRoles> table_{};
  List touched_;
  int arrays_ = 0;
  std::int64_t blocks_ = 0;
};

// `launch_some` for as many arrays as a table takes, again and again.
template <class Arrays, class F>
void launch_in_tables(std::span<const Arrays> arrays, F&& launch_some) {
  while (!arrays.empty()) {
    const auto some = arrays.first(std::min<std::size_t>(arrays.size(), kTableArrays));
    launch_some(some);
    arrays = arrays.subspan(some.size());
  }
}

}  // namespace

void launch_sgd(const SgdSettings& s, const double* scalars, const float* norm,
                std::span<const SgdArrays> arrays, cudaStream_t stream) {
  launch_in_tables(arrays, [&](std::span<const SgdArrays> some) {
    Tabulated<5> t(some.front().p_out);
    const bool momentum = some.front().m != nullptr;
    for (const SgdArrays& a : some) {
      t.reads(0, a.p, a.count);
      t.reads(1, a.g, a.count);
      t.writes(2, a.p_out, a.count);
      if (momentum) t.reads(3, a.m, a.count);
      if (momentum) t.writes(4, a.m_out, a.count);
      t.next(a.count);
    }
    t.touch(reads(scalars, 1));
    if (norm != nullptr) t.touch(reads(norm, 1));
    launch("sgd", momentum ? sgd_kernel<true> : sgd_kernel<false>, t.grid(), dim3(kBlock), stream,
           t.touched(), s, t.table(), scalars, norm, t.base());
  });
}

void launch_adam(const AdamSettings& s, const double* scalars, const AdamScalars& at,
                 const float* norm, std::span<const AdamArrays> arrays, cudaStream_t stream) {
  launch_in_tables(arrays, [&](std::span<const AdamArrays> some) {
    Tabulated<7> t(some.front().p_out);
    for (const AdamArrays& a : some) {
      t.reads(0, a.p, a.count);
      t.reads(1, a.g, a.count);
      t.reads(2, a.m, a.count);
      t.reads(3, a.v, a.count);
      t.writes(4, a.p_out, a.count);
      t.writes(5, a.m_out, a.count);
      t.writes(6, a.v_out, a.count);
      t.next(a.count);
    }
    t.touch(reads(scalars + at.rate, 1));
    t.touch(reads(scalars + at.root_correction, 1));
    t.touch(reads(scalars + at.shrink, 1));
    if (norm != nullptr) t.touch(reads(norm, 1));
    launch("adam", adam_kernel, t.grid(), dim3(kBlock), stream, t.touched(), s, t.table(), scalars,
           at, norm, t.base());
  });
}

void launch_guarded_assign(const float* norm, const std::int32_t* variable, const std::int32_t* x,
                           std::int32_t* out, std::int64_t words, cudaStream_t stream) {
  if (words == 0) return;
  const auto n = static_cast<std::size_t>(words);
  launch("assign", guarded_assign_kernel, grid_for(words), dim3(kBlock), stream,
         {reads(norm, 1), reads(variable, n), reads(x, n), writes(out, n)}, norm, variable, x, out,
         words);
}

std::int64_t norm_parts(std::int64_t count) {
  return std::clamp<std::int64_t>(count / kNormPart, count > 0 ? 1 : 0, kMostNormParts);
}

void launch_sums_of_squares(const NormArrays& arrays, double* partial, cudaStream_t stream) {
  NormCounts n{};
  std::array<Touched, kNormArrays> touched;
  std::int64_t parts = 0;
  for (int i = 0; i < kNormArrays; ++i) {
    const auto k = static_cast<std::size_t>(i);
    n.count[i] = arrays.count[k];
    n.parts[i] = norm_parts(arrays.count[k]);
    parts += n.parts[i];
    touched[k] = reads(arrays.x[k], static_cast<std::size_t>(arrays.count[k]));
  }
  if (parts == 0) return;
  const auto& x = arrays.x;
  launch("sums_of_squares", sums_of_squares_kernel, dim3(static_cast<unsigned>(parts)),
         dim3(kBlock), stream,
         {touched[0], touched[1], touched[2], touched[3], touched[4], touched[5], touched[6],
          touched[7], writes(partial, static_cast<std::size_t>(parts))},
         n, x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7], partial);
}

void launch_root_of_sum(const double* partial, std::int64_t parts, float* norm,
                        cudaStream_t stream) {
  launch("root_of_sum", root_of_sum_kernel, dim3(1), dim3(kBlock), stream,
         {reads(partial, static_cast<std::size_t>(parts)), writes(norm, 1)}, partial, parts, norm);
}

}  // namespace reprise::kernels::cuda
