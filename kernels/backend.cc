#include "kernels/backend.h"

#include "base/error.h"

namespace reprise::kernels {

std::unique_ptr<Backend> make_backend(std::string_view name, const BackendOptions& options) {
  if (name == "cpu") return make_cpu_backend(options);
  if (name == "reference") return make_reference_backend();
  throw base::input_error("unknown device '{}'; known: cpu, reference", name);
}

}  // namespace reprise::kernels
