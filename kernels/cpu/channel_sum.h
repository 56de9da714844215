#pragma once

#include "kernels/cpu/layout.h"

namespace reprise::kernels::cpu {

// sum[c] = (initial[c]) + the sum of x over batch and spatial axes, in f64; `initial` may be null
// or be `sum`. The order of the terms does not depend on the number of threads.
void channel_sums(const ChannelView& view, const float* x, const float* initial, float* sum);

// sum[n, c] = factor * the sum of x over the spatial axes.
void image_sums(const ChannelView& view, const float* x, double factor, float* sum);

}  // namespace reprise::kernels::cpu
