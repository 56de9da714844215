// One thread for each hidden unit of each sample; neighbours have neighbouring units. A step is so
// little work that its time is that of the launches: hence all of a step's loops are in one kernel,
// and no wider accesses.

#include <cmath>

#include "kernels/cuda/element.cuh"
#include "kernels/cuda/grid.h"
#include "kernels/cuda/recurrent_kernels.h"
#include "platform/launch.h"

namespace reprise::kernels::cuda {
namespace {

__device__ inline float logistic(float x) {
  return 1.0F / (1.0F + expf(-x));
}

// The sample and unit of this thread.
struct Unit {
  std::int64_t index, sample, unit;
};
__device__ inline Unit this_unit(const StepSizes& s) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  return {i, i / s.hidden, i % s.hidden};
}

dim3 grid_of(const StepSizes& s) {
  return grid_for(s.batch * s.hidden, INT32_MAX);
}
std::size_t state_floats(const StepSizes& s) {
  return static_cast<std::size_t>(s.batch * s.hidden);
}
// From the first unit of the first row to the last one of the last, `width` units a row.
template <class T>
Touched rows_read(const StepSizes& s, const Rows<const T>& rows, std::int64_t width) {
  return reads(rows.data, static_cast<std::size_t>((s.batch - 1) * rows.stride + width));
}
template <class T>
Touched written_if_any(T* data, std::size_t count) {
  return writes(data, data == nullptr ? 0 : count);
}

template <class T>
__global__ void lstm_gates_kernel(StepSizes s, const float* bias, const float* gates,
                                  std::int64_t gates_stride, const float* c_before,
                                  std::int64_t c_stride, T* saved, T* h, T* h_n, float* c_after) {
  const auto [index, b, k] = this_unit(s);
  if (b >= s.batch) return;
  const std::int64_t r = s.hidden;
  const float* before = gates + b * gates_stride + k;
  const float i = logistic(before[0] + bias[k]);
  const float f = logistic(before[r] + bias[r + k]);
  const float g = tanhf(before[2 * r] + bias[2 * r + k]);
  const float o = logistic(before[3 * r] + bias[3 * r + k]);
  const float c = f * c_before[b * c_stride + k] + i * g;
  const T out = stored<T>(o * tanhf(c));
  T* row = saved + b * 5 * r + k;
  row[0] = stored<T>(i);
  row[r] = stored<T>(f);
  row[2 * r] = stored<T>(g);
  row[3 * r] = stored<T>(o);
  row[4 * r] = stored<T>(c);
  h[index] = out;
  if (h_n != nullptr) h_n[index] = out;
  if (c_after != nullptr) c_after[index] = c;
}

template <class T, class C>
__global__ void lstm_gate_grads_kernel(StepSizes s, const T* saved, const C* c_before,
                                       std::int64_t c_stride, const T* dy, const float* dh,
                                       float* dc, T* dgates) {
  const auto [index, b, k] = this_unit(s);
  if (b >= s.batch) return;
  const std::int64_t r = s.hidden;
  const T* row = saved + b * 5 * r + k;
  const float i = number(row[0]), f = number(row[r]);
  const float g = number(row[2 * r]), o = number(row[3 * r]);
  const float tanh_c = tanhf(number(row[4 * r]));
  const float of_h = number(dy[index]) + dh[index];
  const float of_c = dc[index] + of_h * o * (1.0F - tanh_c * tanh_c);
  T* to = dgates + b * 4 * r + k;
  to[0] = stored<T>(of_c * g * i * (1.0F - i));
  to[r] = stored<T>(of_c * number(c_before[b * c_stride + k]) * f * (1.0F - f));
  to[2 * r] = stored<T>(of_c * i * (1.0F - g * g));
  to[3 * r] = stored<T>(of_h * tanh_c * o * (1.0F - o));
  dc[index] = of_c * f;
}

template <class T>
__global__ void gru_gates_kernel(StepSizes s, const float* bias, const float* from_x,
                                 std::int64_t x_stride, const float* from_h, const T* h_before,
                                 T* saved, T* h, T* h_n) {
  const auto [index, b, k] = this_unit(s);
  if (b >= s.batch) return;
  const std::int64_t r = s.hidden;
  const float* input = from_x + b * x_stride + k;
  const float* hidden = from_h + b * 3 * r + k;
  const float u = logistic(input[0] + hidden[0] + bias[k]);
  const float reset = logistic(input[r] + hidden[r] + bias[r + k]);
  const float q = hidden[2 * r] + bias[3 * r + k];
  const float n = tanhf(input[2 * r] + bias[2 * r + k] + reset * q);
  const T out = stored<T>((1.0F - u) * n + u * number(h_before[index]));
  T* row = saved + b * 4 * r + k;
  row[0] = stored<T>(u);
  row[r] = stored<T>(reset);
  row[2 * r] = stored<T>(n);
  row[3 * r] = stored<T>(q);
  h[index] = out;
  if (h_n != nullptr) h_n[index] = out;
}

template <class T>
__global__ void gru_gate_grads_kernel(StepSizes s, const T* saved, const T* h_before, const T* dy,
                                      float* dh, T* dgates) {
  const auto [index, b, k] = this_unit(s);
  if (b >= s.batch) return;
  const std::int64_t r = s.hidden;
  const T* row = saved + b * 4 * r + k;
  const float u = number(row[0]), reset = number(row[r]);
  const float n = number(row[2 * r]), q = number(row[3 * r]);
  const float of_h = number(dy[index]) + dh[index];
  const float of_n = of_h * (1.0F - u) * (1.0F - n * n);
  T* to = dgates + b * 4 * r + k;
  to[0] = stored<T>(of_n);
  to[r] = stored<T>(of_h * (number(h_before[index]) - n) * u * (1.0F - u));
  to[2 * r] = stored<T>(of_n * q * reset * (1.0F - reset));
  to[3 * r] = stored<T>(of_n * reset);
  dh[index] = of_h * u;
}

__global__ void gru_bias_grad_kernel(std::int64_t r, const float* sums, const float* acc,
                                     float* dbias) {
  const std::int64_t i = static_cast<std::int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i >= 4 * r) return;
  const std::int64_t gate = i / r;  // of u r n q
  const std::int64_t from = gate == 3 ? i : gate == 2 ? i - 2 * r : i + r;
  dbias[i] = (acc == nullptr ? 0.0F : acc[i]) + sums[from];
}

}  // namespace

template <class T>
void launch_lstm_gates(const StepSizes& s, const float* bias, const Rows<const float>& gates,
                       const Rows<const float>& c_before, T* saved, T* h, T* h_n, float* c,
                       cudaStream_t stream) {
  const std::size_t state = state_floats(s);
  if (state == 0) return;
  launch("lstm_gates", lstm_gates_kernel<T>, grid_of(s), dim3(kBlock), stream,
         {reads(bias, static_cast<std::size_t>(4 * s.hidden)), rows_read(s, gates, 4 * s.hidden),
          rows_read(s, c_before, s.hidden), writes(saved, 5 * state), writes(h, state),
          written_if_any(h_n, state), written_if_any(c, state)},
         s, bias, gates.data, gates.stride, c_before.data, c_before.stride, saved, h, h_n, c);
}

template <class T, class C>
void launch_lstm_gate_grads(const StepSizes& s, const T* saved, const Rows<const C>& c_before,
                            const T* dy, const float* dh, float* dc, T* dgates,
                            cudaStream_t stream) {
  const std::size_t state = state_floats(s);
  if (state == 0) return;
  launch("lstm_gate_grads", lstm_gate_grads_kernel<T, C>, grid_of(s), dim3(kBlock), stream,
         {reads(saved, 5 * state), rows_read(s, c_before, s.hidden), reads(dy, state),
          reads(dh, state), writes(dc, state), writes(dgates, 4 * state)},
         s, saved, c_before.data, c_before.stride, dy, dh, dc, dgates);
}

template <class T>
void launch_gru_gates(const StepSizes& s, const float* bias, const Rows<const float>& from_x,
                      const float* from_h, const T* h_before, T* saved, T* h, T* h_n,
                      cudaStream_t stream) {
  const std::size_t state = state_floats(s);
  if (state == 0) return;
  launch("gru_gates", gru_gates_kernel<T>, grid_of(s), dim3(kBlock), stream,
         {reads(bias, static_cast<std::size_t>(4 * s.hidden)), rows_read(s, from_x, 3 * s.hidden),
          reads(from_h, 3 * state), reads(h_before, state), writes(saved, 4 * state),
          writes(h, state), written_if_any(h_n, state)},
         s, bias, from_x.data, from_x.stride, from_h, h_before, saved, h, h_n);
}

template <class T>
void launch_gru_gate_grads(const StepSizes& s, const T* saved, const T* h_before, const T* dy,
                           float* dh, T* dgates, cudaStream_t stream) {
  const std::size_t state = state_floats(s);
  if (state == 0) return;
  launch("gru_gate_grads", gru_gate_grads_kernel<T>, grid_of(s), dim3(kBlock), stream,
         {reads(saved, 4 * state), reads(h_before, state), reads(dy, state), writes(dh, state),
          writes(dgates, 4 * state)},
         s, saved, h_before, dy, dh, dgates);
}

void launch_gru_bias_grad(std::int64_t hidden, const float* sums, const float* acc, float* dbias,
                          cudaStream_t stream) {
  const auto count = static_cast<std::size_t>(4 * hidden);
  if (count == 0) return;
  launch("gru_bias_grad", gru_bias_grad_kernel, grid_for(4 * hidden, INT32_MAX), dim3(kBlock),
         stream, {reads(sums, count), reads(acc, acc == nullptr ? 0 : count), writes(dbias, count)},
         hidden, sums, acc, dbias);
}

template void launch_lstm_gates(const StepSizes&, const float*, const Rows<const float>&,
                                const Rows<const float>&, float*, float*, float*, float*,
                                cudaStream_t);
template void launch_lstm_gate_grads(const StepSizes&, const float*, const Rows<const float>&,
                                     const float*, const float*, float*, float*, cudaStream_t);
template void launch_gru_gates(const StepSizes&, const float*, const Rows<const float>&,
                               const float*, const float*, float*, float*, float*, cudaStream_t);
template void launch_gru_gate_grads(const StepSizes&, const float*, const float*, const float*,
                                    float*, float*, cudaStream_t);
template void launch_lstm_gates(const StepSizes&, const float*, const Rows<const float>&,
                                const Rows<const float>&, BFloat16*, BFloat16*, BFloat16*, float*,
                                cudaStream_t);
template void launch_lstm_gate_grads(const StepSizes&, const BFloat16*, const Rows<const BFloat16>&,
                                     const BFloat16*, const float*, float*, BFloat16*,
                                     cudaStream_t);
template void launch_gru_gates(const StepSizes&, const float*, const Rows<const float>&,
                               const float*, const BFloat16*, BFloat16*, BFloat16*, BFloat16*,
                               cudaStream_t);
template void launch_gru_gate_grads(const StepSizes&, const BFloat16*, const BFloat16*,
                                    const BFloat16*, float*, BFloat16*, cudaStream_t);
template void launch_lstm_gate_grads(const StepSizes&, const BFloat16*, const Rows<const float>&,
                                     const BFloat16*, const float*, float*, BFloat16*,
                                     cudaStream_t);

}  // namespace reprise::kernels::cuda
