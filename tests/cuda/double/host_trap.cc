// A SIGSEGV at a device address says what happened; any other goes on to who handled it before.

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <unistd.h>

#include "tests/cuda/double/memory.h"

namespace reprise::test::cuda {
namespace {

struct sigaction handler_before;

[[noreturn]] void end(const std::string& text) {
  // Not safe in a handler in general; this one interrupts a plain load or store of a test.
  const std::string line = "double of CUDA: " + text + "\n";
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) std::_Exit(99);
  std::abort();
}

void on_access(int signal, siginfo_t* info, void* context) {
  if (is_device_address(info->si_addr))
    end("the host dereferenced device memory: " + memory().describe(info->si_addr, 1));
  const auto at = reinterpret_cast<std::uintptr_t>(info->si_addr);
  const void* const meant = reinterpret_cast<const void*>(at - storage_distance());
  if (at > storage_distance() && is_device_address(meant))
    end("an operation left its memory: " + memory().describe(meant, 1));
  sigaction(SIGSEGV, &handler_before, nullptr);
  if (handler_before.sa_flags & SA_SIGINFO) {
    if (handler_before.sa_sigaction != nullptr) handler_before.sa_sigaction(signal, info, context);
  }  // else the access is tried again, under the handler of before
}

}  // namespace

void trap_host_accesses() {
  struct sigaction action;
  std::memset(&action, 0, sizeof action);
  action.sa_sigaction = on_access;
  action.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &handler_before);
}

}  // namespace reprise::test::cuda
