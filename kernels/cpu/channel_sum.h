#pragma once

#include "kernels/cpu/layout.h"
#include "kernels/cpu/storage.h"

namespace reprise::kernels::cpu {

// sum[c] = (initial[c]) + the sum of x over batch and spatial axes, in f64; `initial` may be null
// or be `sum`. The order of the terms does not depend on the number of threads. T: float or
// Bf16.
template <class T>
void channel_sums(const ChannelView& view, const T* x, const float* initial, float* sum);

// sum[n, c] = factor * the sum of x over the spatial axes.
template <class T>
void image_sums(const ChannelView& view, const T* x, double factor, T* sum);

}  // namespace reprise::kernels::cpu
