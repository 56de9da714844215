#pragma once

// The gates of recurrent layers, one time step a call. B samples of R hidden units; `saved` is that
// of the step: B rows of 5R (lstm: i f g o c) or 4R (gru: u r n q) as graph/op.h says. T is what x,
// h and `saved` are stored in (element.h); bias, c and what is added up from step to step are
// floats.

#include <cstdint>
#include <cuda_runtime.h>

#include "kernels/cuda/element.h"

namespace reprise::kernels::cuda {

struct StepSizes {
  std::int64_t batch = 0;   // B
  std::int64_t hidden = 0;  // R
};

// One row of R for each sample, `stride` elements apart: a state, a part of `saved`, gates.
template <class T>
struct Rows {
  T* data = nullptr;
  std::int64_t stride = 0;
};

// `gates`: i f g o before activation and without bias, R each in a row; they may be the first of
// those of `saved`, which takes i f g o after it, and c. h is the new hidden state; h_n and c,
// where they are not null, take copies of the new state, and c may be that before.
template <class T>
void launch_lstm_gates(const StepSizes& s, const float* bias, const Rows<const float>& gates,
                       const Rows<const float>& c_before, T* saved, T* h, T* h_n, float* c,
                       cudaStream_t stream);

// dh holds the gradient of h from the step behind, dc that of c; dc becomes that of c before.
// dgates[B,4R]: of i f g o before activation. C: T, or float for a state that no step has saved.
template <class T, class C>
void launch_lstm_gate_grads(const StepSizes& s, const T* saved, const Rows<const C>& c_before,
                            const T* dy, const float* dh, float* dc, T* dgates,
                            cudaStream_t stream);

// from_x: u r n of x without bias, R each in a row, and from_h[B,3R] those of h; from_x may be the
// first of those of `saved`, which takes u r n after activation, and q = from_h_n + bias. bias[4R].
// h_n may be null.
template <class T>
void launch_gru_gates(const StepSizes& s, const float* bias, const Rows<const float>& from_x,
                      const float* from_h, const T* h_before, T* saved, T* h, T* h_n,
                      cudaStream_t stream);

// dh, the gradient of h from the step behind, becomes the part of that of h before which does not
// go through the gates. dgates[B,4R]: of n towards x, then of u, r, and of n towards h (q).
template <class T>
void launch_gru_gate_grads(const StepSizes& s, const T* saved, const T* h_before, const T* dy,
                           float* dh, T* dgates, cudaStream_t stream);

// sums[4R] in the order of dgates => dbias[4R] = acc + those in the order of the bias, u r n q. acc
// may be null, or dbias.
void launch_gru_bias_grad(std::int64_t hidden, const float* sums, const float* acc, float* dbias,
                          cudaStream_t stream);

}  // namespace reprise::kernels::cuda
