#include "cli/waiting.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "fmt/format.h"

#include "runtime/progress.h"

namespace reprise::cli {
namespace {

using Clock = std::chrono::steady_clock;

}  // namespace

struct Waiting::Impl {
  Impl(const Context& run_context, std::string text, Times given)
      : context(run_context),
        times(given),
        begin(Clock::now()),
        what(std::move(text)),
        thread([this] { run(); }) {}

  void run() {
    auto next = context.err_is_terminal ? times.first_drawn : times.first_line;
    std::unique_lock lock(mutex);
    while (!ended.wait_until(lock, begin + next, [this] { return stopped; })) {
      say();
      next = context.err_is_terminal ? next + times.redrawn : next * 2;
    }
    if (drawn) context.err << "\r\x1b[K" << std::flush;  // the line is wiped
  }

  void say() {
    const double seconds = std::chrono::duration<double>(Clock::now() - begin).count();
    std::string line = fmt::format("{}: {}", what, runtime::duration_text(seconds));
    if (context.err_is_terminal) {
      const int room = runtime::terminal_width() - 1;  // the last column may wrap
      line.resize(std::min(line.size(), static_cast<std::size_t>(std::max(room, 0))));
      context.err << fmt::format("\r{}\x1b[K", line) << std::flush;
      drawn = true;
    } else {
      context.err << line << "\n" << std::flush;
    }
  }

  const Context& context;
  const Times times;
  const Clock::time_point begin;
  std::mutex mutex;
  std::string what;
  std::condition_variable ended;
  bool stopped = false;
  bool drawn = false;
  std::thread thread;  // last: it reads the others
};

Waiting::Waiting(const Context& context, std::string what, Times times)
    : impl_(std::make_unique<Impl>(context, std::move(what), times)) {}

Waiting::~Waiting() {
  stop();
}

void Waiting::tell(std::string what) {
  const std::lock_guard lock(impl_->mutex);
  impl_->what = std::move(what);
}

void Waiting::stop() {
  if (!impl_->thread.joinable()) return;
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->stopped = true;
  }
  impl_->ended.notify_all();
  impl_->thread.join();
}

}  // namespace reprise::cli
