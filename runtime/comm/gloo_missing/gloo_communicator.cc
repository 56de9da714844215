// Without Gloo: a world of one, and the reason why there is no larger one.

#include "runtime/comm/gloo_communicator.h"

#include "base/error.h"
#include "runtime/comm/thread_communicator.h"

namespace reprise::runtime::comm {

std::unique_ptr<Communicator> make_gloo_communicator(const GlooOptions& options) {
  if (options.environment.world_size > 1) (void)gloo_version();
  return std::move(make_thread_group({.timeout = options.timeout, .name = options.name}).front());
}

std::string gloo_version() {
  throw base::device_error(
      "this build has no Gloo, which carries gradients between processes; install libgloo-dev and "
      "build again");
}

}  // namespace reprise::runtime::comm
