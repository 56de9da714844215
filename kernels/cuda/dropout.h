#pragma once

// Dropout on the device.

#include <cstdint>
#include <cuda_runtime.h>

#include "kernels/cuda/element.h"
#include "kernels/cuda/step_values.h"

namespace reprise::kernels::cuda {

struct Dropping {
  std::uint32_t threshold = 0;  // of the random bits that keep an element (graph/random.h)
  std::uint32_t stream = 0;     // of random numbers
  float scale = 1.0F;           // of what is kept
};

// y = scale * x where it is kept, 0 elsewhere; y may be x. Seed and step are read from `step`, in
// the device's memory. T: element.h.
template <class T>
void launch_dropout(const Dropping& d, const StepValues* step, const T* x, T* y, std::int64_t count,
                    cudaStream_t stream);

}  // namespace reprise::kernels::cuda
