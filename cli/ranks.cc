#include "cli/ranks.h"

#include <algorithm>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <string>
#include <sys/socket.h>
#include <thread>

#include "cli/report.h"
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

// A rank that plans or saves hears of a failure in its next operation only. It says at once what it
// knows, and ends within the time-out even so. In the middle of a step it ends by itself.
class EndInTime {
 public:
  EndInTime(Context& context, int rank, std::chrono::milliseconds timeout)
      : context_(context), rank_(rank), patience_(timeout / 5) {}
  ~EndInTime() {
    end();
    if (thread_.joinable()) thread_.join();
  }

  // The run is over, whatever it was at.
  void end() {
    {
      const std::lock_guard lock(mutex_);
      over_ = true;
    }
    changed_.notify_all();
  }

  void begin(const runtime::comm::Failure& failure) {
    if (failure.rank == rank_) return;
    const std::lock_guard lock(mutex_);
    if (!over_ && !thread_.joinable()) thread_ = std::thread([this, failure] { watch(failure); });
  }

 private:
  void watch(const runtime::comm::Failure& failure) {
    using std::chrono::milliseconds;
    std::unique_lock lock(mutex_);
    const auto over = [this] { return over_; };
    const milliseconds first = std::min(milliseconds(1000), patience_ / 2);
    if (changed_.wait_for(lock, first, over)) return;
    const std::string text =
        runtime::comm::CommError(rank_, "busy with its own work", failure).what();
    (context_.err << text << "; it ends soon\n").flush();
    if (changed_.wait_for(lock, patience_ - first, over)) return;
    report_error(context_, base::error_kind_name(base::ErrorKind::kDevice), text);
    context_.out.flush();
    context_.err.flush();
    std::_Exit(kOtherRankFailed);
  }

  Context& context_;
  const int rank_;
  const std::chrono::milliseconds patience_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool over_ = false;
  std::thread thread_;
};

}  // namespace

std::shared_ptr<runtime::comm::Communicator> join_ranks(Context& context,
                                                        std::chrono::milliseconds timeout,
                                                        bool gpu_given,
                                                        api::SessionOptions& session) {
  runtime::comm::GlooOptions options;
  options.environment = runtime::comm::read_rank_environment();
  if (options.environment.world_size == 1) return nullptr;
  if (session.threads == 0) {
    if (const char* threads = std::getenv("OMP_NUM_THREADS"))
      session.threads = static_cast<int>(parse_whole("OMP_NUM_THREADS", threads, 1, 1024));
  }
  if (!gpu_given) session.ordinal = options.environment.local_rank;
  options.timeout = timeout;
  options.note = [&](const std::string& text) { (context.err << text << "\n").flush(); };
  if (options.environment.rank == 0) options.store_socket = inherited_store_socket();
  const auto watch = std::make_shared<EndInTime>(context, options.environment.rank, timeout);
  options.failed = [watch](const runtime::comm::Failure& failure) { watch->begin(failure); };
  return {runtime::comm::make_gloo_communicator(options).release(),
          [watch](runtime::comm::Communicator* ranks) {
            watch->end();
            delete ranks;
          }};
}

void require_one_rank(std::string_view flag) {
  const auto environment = runtime::comm::read_rank_environment();
  if (environment.world_size == 1) return;
  throw base::input_error(
      "{}: this process is rank {} of {} already, as its environment says; several processes with "
      "several devices each are not supported, start as many more ranks instead",
      flag, environment.rank, environment.world_size);
}

}  // namespace reprise::cli
