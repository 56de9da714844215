#pragma once

// Copies of whole values.

#include "kernels/cuda/kernel.h"
#include "kernels/cuda/status.h"

namespace reprise::kernels::cuda {

// Output `output` as input `input`; queues nothing where they share their address, as they do in
// place.
inline void copy_to_output(const Run& run, std::size_t input, std::size_t output,
                           std::int64_t bytes) {
  if (run.inputs[input] == run.outputs[output] || bytes == 0) return;
  check(cudaMemcpyAsync(run.outputs[output], run.inputs[input], static_cast<std::size_t>(bytes),
                        cudaMemcpyDeviceToDevice, run.stream()),
        "cudaMemcpyAsync");
}

}  // namespace reprise::kernels::cuda
