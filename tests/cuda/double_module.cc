// The whole backend with the double, as a module that the program opens in place of the real one
// (REPRISE_CUDA_MODULE): training by `reprise` itself, without a GPU.

#include "kernels/cuda/module.h"

namespace reprise::test {
// What the double needs is in the library; this file gives the module a source.
[[maybe_unused]] const kernels::CudaModule& linked_module = kernels::cuda::module_entry();
}  // namespace reprise::test
