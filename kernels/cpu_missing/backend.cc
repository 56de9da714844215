// Stands in for kernels/cpu where oneDNN is missing.

#include "kernels/backend.h"

#include "base/error.h"

namespace reprise::kernels {

std::unique_ptr<Backend> make_cpu_backend(const BackendOptions&) {
  throw base::device_error(
      "this build has no CPU backend: oneDNN was not found when it was configured "
      "(Debian: apt install libdnnl-dev, then configure again)");
}

}  // namespace reprise::kernels
