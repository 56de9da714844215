// The `reprise` program: signals and streams around cli::run().

#include <atomic>
#include <csignal>
#include <iostream>
#include <string>
#include <unistd.h>
#include <vector>

#include "cli/run.h"

namespace {

std::atomic<bool> stop_requested{false};
static_assert(std::atomic<bool>::is_always_lock_free);

void request_stop(int) {
  stop_requested.store(true);
}

// The first signal asks the run to end at the next step; the second one ends the process.
void install(int signal) {
  struct sigaction action = {};
  action.sa_handler = request_stop;
  action.sa_flags = static_cast<int>(SA_RESETHAND) | SA_RESTART;
  sigaction(signal, &action, nullptr);
}

// A job that a script starts in the background has SIGINT ignored. Who sends it one nevertheless
// wants it to end, and not only once it trains.
void heed(int signal) {
  struct sigaction action = {};
  if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) {
    std::signal(signal, SIG_DFL);
  }
}

void catch_signals() {
  install(SIGINT);
  install(SIGTERM);
}

}  // namespace

int main(int argc, char** argv) {
  std::ios::sync_with_stdio(false);
  std::signal(SIGXFSZ, SIG_IGN);  // a file beyond the limit is an error of the write that names it
  heed(SIGINT);
  heed(SIGTERM);
  const std::vector<std::string> args(argv + (argc > 0 ? 1 : 0), argv + argc);
  return reprise::cli::run(args, std::cout, std::cerr,
                           {.err_is_terminal = isatty(STDERR_FILENO) == 1,
                            .stop = &stop_requested,
                            .before_stoppable = catch_signals});
}
