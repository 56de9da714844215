// One thread for each hidden unit of each sample; neighbours have neighbouring units. A step is so
// little work that its time is that of the launches: hence all of a step's loops are in one kernel,
// and no wider accesses.

#include <cmath>

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
// From the first unit of the first row to the last one of the last.
Touched rows_read(const StepSizes& s, const StateRows& rows) {
  return reads(rows.data, static_cast<std::size_t>((s.batch - 1) * rows.stride + s.hidden));
}
Touched written_if_any(float* data, std::size_t count) {
  return writes(data, data == nullptr ? 0 : count);
}

__global__ void lstm_gates_kernel(StepSizes s, const float* bias, const float* c_before,
                                  std::int64_t c_stride, float* saved, float* h, float* h_n,
                                  float* c_n) {
  const auto [index, b, k] = this_unit(s);
  if (b >= s.batch) return;
  const std::int64_t r = s.hidden;
  float* row = saved + b * 5 * r + k;
  const float i = logistic(row[0] + bias[k]);
  const float f = logistic(row[r] + bias[r + k]);
  const float g = tanhf(row[2 * r] + bias[2 * r + k]);
  const float o = logistic(row[3 * r] + bias[3 * r + k]);
  const float c = f * c_before[b * c_stride + k] + i * g;
  const float out = o * tanhf(c);
  row[0] = i;
  row[r] = f;
  row[2 * r] = g;
  row[3 * r] = o;
  row[4 * r] = c;
  h[index] = out;
  if (h_n != nullptr) h_n[index] = out;
  if (c_n != nullptr) c_n[index] = c;
}

__global__ void lstm_gate_grads_kernel(StepSizes s, const float* saved, const float* c_before,
                                       std::int64_t c_stride, const float* dy, const float* dh,
                                       float* dc, float* dgates) {
  const auto [index, b, k] = this_unit(s);
  if (b >= s.batch) return;
  const std::int64_t r = s.hidden;
  const float* row = saved + b * 5 * r + k;
  const float i = row[0], f = row[r], g = row[2 * r], o = row[3 * r];
  const float tanh_c = tanhf(row[4 * r]);
  const float of_h = dy[index] + dh[index];
  const float of_c = dc[index] + of_h * o * (1.0F - tanh_c * tanh_c);
  float* to = dgates + b * 4 * r + k;
  to[0] = of_c * g * i * (1.0F - i);
  to[r] = of_c * c_before[b * c_stride + k] * f * (1.0F - f);
  to[2 * r] = of_c * i * (1.0F - g * g);
  to[3 * r] = of_h * tanh_c * o * (1.0F - o);
  dc[index] = of_c * f;
}

__global__ void gru_gates_kernel(StepSizes s, const float* bias, const float* from_h,
                                 const float* h_before, float* saved, float* h, float* h_n) {
  const auto [index, b, k] = this_unit(s);
  if (b >= s.batch) return;
  const std::int64_t r = s.hidden;
  float* row = saved + b * 4 * r + k;
  const float* hidden = from_h + b * 3 * r + k;
  const float u = logistic(row[0] + hidden[0] + bias[k]);
  const float reset = logistic(row[r] + hidden[r] + bias[r + k]);
  const float q = hidden[2 * r] + bias[3 * r + k];
  const float n = tanhf(row[2 * r] + bias[2 * r + k] + reset * q);
  const float out = (1.0F - u) * n + u * h_before[index];
  row[0] = u;
  row[r] = reset;
  row[2 * r] = n;
  row[3 * r] = q;
  h[index] = out;
  if (h_n != nullptr) h_n[index] = out;
}

__global__ void gru_gate_grads_kernel(StepSizes s, const float* saved, const float* h_before,
                                      const float* dy, float* dh, float* dgates) {
  const auto [index, b, k] = this_unit(s);
  if (b >= s.batch) return;
  const std::int64_t r = s.hidden;
  const float* row = saved + b * 4 * r + k;
  const float u = row[0], reset = row[r], n = row[2 * r], q = row[3 * r];
  const float of_h = dy[index] + dh[index];
  const float of_n = of_h * (1.0F - u) * (1.0F - n * n);
  float* to = dgates + b * 4 * r + k;
  to[0] = of_n;
  to[r] = of_h * (h_before[index] - n) * u * (1.0F - u);
  to[2 * r] = of_n * q * reset * (1.0F - reset);
  to[3 * r] = of_n * reset;
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

void launch_lstm_gates(const StepSizes& s, const float* bias, const StateRows& c_before,
                       float* saved, float* h, float* h_n, float* c_n, cudaStream_t stream) {
  const std::size_t state = state_floats(s);
  if (state == 0) return;
  launch("lstm_gates", lstm_gates_kernel, grid_of(s), dim3(kBlock), stream,
         {reads(bias, static_cast<std::size_t>(4 * s.hidden)), rows_read(s, c_before),
          writes(saved, 5 * state), writes(h, state), written_if_any(h_n, state),
          written_if_any(c_n, state)},
         s, bias, c_before.data, c_before.stride, saved, h, h_n, c_n);
}

void launch_lstm_gate_grads(const StepSizes& s, const float* saved, const StateRows& c_before,
                            const float* dy, const float* dh, float* dc, float* dgates,
                            cudaStream_t stream) {
  const std::size_t state = state_floats(s);
  if (state == 0) return;
  launch("lstm_gate_grads", lstm_gate_grads_kernel, grid_of(s), dim3(kBlock), stream,
         {reads(saved, 5 * state), rows_read(s, c_before), reads(dy, state), reads(dh, state),
          writes(dc, state), writes(dgates, 4 * state)},
         s, saved, c_before.data, c_before.stride, dy, dh, dc, dgates);
}

void launch_gru_gates(const StepSizes& s, const float* bias, const float* from_h,
                      const float* h_before, float* saved, float* h, float* h_n,
                      cudaStream_t stream) {
  const std::size_t state = state_floats(s);
  if (state == 0) return;
  launch("gru_gates", gru_gates_kernel, grid_of(s), dim3(kBlock), stream,
         {reads(bias, static_cast<std::size_t>(4 * s.hidden)), reads(from_h, 3 * state),
          reads(h_before, state), writes(saved, 4 * state), writes(h, state),
          written_if_any(h_n, state)},
         s, bias, from_h, h_before, saved, h, h_n);
}

void launch_gru_gate_grads(const StepSizes& s, const float* saved, const float* h_before,
                           const float* dy, float* dh, float* dgates, cudaStream_t stream) {
  const std::size_t state = state_floats(s);
  if (state == 0) return;
  launch("gru_gate_grads", gru_gate_grads_kernel, grid_of(s), dim3(kBlock), stream,
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

}  // namespace reprise::kernels::cuda
