#pragma once

// The gates of recurrent layers, one time step a call. B samples of R hidden units; `saved` is that
// of the step: B rows of 5R (lstm: i f g o c) or 4R (gru: u r n q) as graph/op.h says.

#include <cstdint>
#include <cuda_runtime.h>

namespace reprise::kernels::cuda {

struct StepSizes {
  std::int64_t batch = 0;   // B
  std::int64_t hidden = 0;  // R
};

// One row of R for each sample, `stride` floats apart: a state, or a part of `saved`.
struct StateRows {
  const float* data = nullptr;
  std::int64_t stride = 0;
};

// saved: i f g o before activation and without bias become those after it, and c is made. h is the
// new hidden state; h_n and c_n, where they are not null, take copies of the new state.
void launch_lstm_gates(const StepSizes& s, const float* bias, const StateRows& c_before,
                       float* saved, float* h, float* h_n, float* c_n, cudaStream_t stream);

// dh holds the gradient of h from the step behind, dc that of c; dc becomes that of c before.
// dgates[B,4R]: of i f g o before activation.
void launch_lstm_gate_grads(const StepSizes& s, const float* saved, const StateRows& c_before,
                            const float* dy, const float* dh, float* dc, float* dgates,
                            cudaStream_t stream);

// saved: u r n of x without bias become those after activation, and q = from_h_n + bias is made.
// from_h[B,3R]: u r n of h without bias; bias[4R]. h_n may be null.
void launch_gru_gates(const StepSizes& s, const float* bias, const float* from_h,
                      const float* h_before, float* saved, float* h, float* h_n,
                      cudaStream_t stream);

// dh, the gradient of h from the step behind, becomes the part of that of h before which does not
// go through the gates. dgates[B,4R]: of n towards x, then of u, r, and of n towards h (q).
void launch_gru_gate_grads(const StepSizes& s, const float* saved, const float* h_before,
                           const float* dy, float* dh, float* dgates, cudaStream_t stream);

// sums[4R] in the order of dgates => dbias[4R] = acc + those in the order of the bias, u r n q. acc
// may be null, or dbias.
void launch_gru_bias_grad(std::int64_t hidden, const float* sums, const float* acc, float* dbias,
                          cudaStream_t stream);

}  // namespace reprise::kernels::cuda
