#include "cli/ranks.h"

#include <cstdlib>
#include <sys/socket.h>

#include "cli/values.h"
#include "fmt/format.h"

#include "base/error.h"
#include "runtime/comm/gloo_communicator.h"
#include "runtime/comm/rank_environment.h"

namespace reprise::cli {
namespace {

// What `reprise launch` made for rank 0, if this process was started by it.
int inherited_store_socket() {
  const char* text = std::getenv("REPRISE_STORE_FD");
  if (text == nullptr) return -1;
  const int fd = static_cast<int>(parse_whole("REPRISE_STORE_FD", text, 0, 1 << 20));
  int listening = 0;
  socklen_t size = sizeof(listening);
  if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) != 0 || listening == 0) {
    throw base::input_error(
        "REPRISE_STORE_FD={} is no listening socket; 'reprise launch' sets it for rank 0 alone, so "
        "leave it out",
        fd);
  }
  return fd;
}

}  // namespace

std::shared_ptr<runtime::comm::Communicator> join_ranks(Context& context,
                                                        std::chrono::milliseconds timeout,
                                                        api::SessionOptions& session) {
  runtime::comm::GlooOptions options;
  options.environment = runtime::comm::read_rank_environment();
  if (options.environment.world_size == 1) return nullptr;
  if (session.threads == 0) {
    if (const char* threads = std::getenv("OMP_NUM_THREADS"))
      session.threads = static_cast<int>(parse_whole("OMP_NUM_THREADS", threads, 1, 1024));
  }
  options.timeout = timeout;
  options.note = [&](const std::string& text) { (context.err << text << "\n").flush(); };
  if (options.environment.rank == 0) options.store_socket = inherited_store_socket();
  return runtime::comm::make_gloo_communicator(options);
}

}  // namespace reprise::cli
