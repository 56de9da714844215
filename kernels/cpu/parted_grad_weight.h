#pragma once

// The gradient of a convolution's weights in bf16. oneDNN's threads meet at barriers many times
// within one such primitive, and spin there: on a machine shared with others each wait can take a
// time slice, and the primitive fifty times as long. Here every thread runs a primitive of its own
// over its part of the images, and the parts are added in their order.

#include <functional>
#include <memory>

#include "kernels/cpu/booking.h"

namespace reprise::kernels::cpu {

using GradWeightDesc = dnnl::convolution_backward_weights::primitive_desc;

// x dy acc? => dw with weights of these axes. `describe` makes the descriptor for so many images.
// Null where the parts would not lie side by side in one layout.
[[nodiscard]] std::unique_ptr<Kernel> plan_parted_grad_weight(
    Booking& b, const Dims& weight_axes,
    const std::function<GradWeightDesc(std::int64_t images)>& describe);

}  // namespace reprise::kernels::cpu
