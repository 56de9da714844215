#include "kernels/backend.h"

#include "fmt/format.h"

#include "base/error.h"
#include "graph/prepared_names.h"
#include "kernels/cuda_module.h"

namespace reprise::kernels {

std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options) {
  return cuda_module().make_backend(options);
}

std::unique_ptr<Backend> make_backend(std::string_view name, const BackendOptions& options) {
  if (name == "cpu") return make_cpu_backend(options);
  if (name == "cuda") return make_cuda_backend(options);
  if (name == "reference") return make_reference_backend();
  throw base::input_error("unknown device '{}'; known: {}", name,
                          fmt::join(graph::kBackendNames, ", "));
}

}  // namespace reprise::kernels
