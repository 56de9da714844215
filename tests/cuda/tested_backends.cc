// The CUDA backend that is linked with this program takes the module's place.

#include "kernels/cuda/module.h"
#include "tests/support/interpreter.h"

namespace reprise::test {
namespace {

const bool linked = [] {
  kernels::use_cuda_module(kernels::cuda::module_entry());
  return true;
}();

}  // namespace

std::vector<std::string> tested_backends() {
  return {"cuda"};
}

}  // namespace reprise::test
