#pragma once

// What the CUDA backend offers to a program that opened it at run time, or that is linked with it.

#include "kernels/cuda_module.h"

namespace reprise::kernels::cuda {

[[nodiscard]] const CudaModule& module_entry();

}  // namespace reprise::kernels::cuda
