#include "runtime/comm/child_process.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <string_view>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"

extern char** environ;

namespace reprise::runtime::comm {
namespace {

std::pair<Socket, Socket> make_pipe() {
  int fds[2] = {-1, -1};
  if (::pipe2(fds, O_CLOEXEC) != 0)
    throw base::device_error("no pipe for a rank: {}", std::strerror(errno));
  return {Socket(fds[0]), Socket(fds[1])};
}

// Everything that the child needs, made before the fork: after it only system calls are allowed.
struct Prepared {
  std::vector<std::string> environment;
  std::vector<char*> arguments, variables;
};

Prepared prepare(const ChildOptions& options) {
  Prepared prepared;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view set(*at);
    const std::string_view name = set.substr(0, set.find('='));
    const bool replaced = std::any_of(options.variables.begin(), options.variables.end(),
                                      [&](const auto& each) { return each.first == name; });
    if (!replaced) prepared.environment.emplace_back(set);
  }
  for (const auto& [name, value] : options.variables)
    prepared.environment.push_back(fmt::format("{}={}", name, value));
  for (const std::string& each : options.command)
    prepared.arguments.push_back(const_cast<char*>(each.c_str()));
  for (const std::string& each : prepared.environment)
    prepared.variables.push_back(const_cast<char*>(each.c_str()));
  prepared.arguments.push_back(nullptr);
  prepared.variables.push_back(nullptr);
  return prepared;
}

// In the child. What fails is told through `report`, which closes by itself when exec succeeds.
[[noreturn]] void become(const Prepared& prepared, pid_t parent, int out, int err, int keep,
                         int report) {
  const auto give_up = [&](int code) {
    (void)!::write(report, &code, sizeof(code));
    ::_exit(127);
  };
  ::setpgid(0, 0);
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) give_up(errno);
  if (::getppid() != parent) ::_exit(127);  // it ended before the line above
  for (const int signal : {SIGINT, SIGTERM, SIGPIPE, SIGXFSZ}) ::signal(signal, SIG_DFL);
  const int null = ::open("/dev/null", O_RDONLY);
  if (::dup2(null, STDIN_FILENO) < 0 || ::dup2(out, STDOUT_FILENO) < 0 ||
      ::dup2(err, STDERR_FILENO) < 0)
    give_up(errno);
  if (keep >= 0) ::fcntl(keep, F_SETFD, 0);
  ::execvpe(prepared.arguments[0], prepared.arguments.data(), prepared.variables.data());
  give_up(errno);
  ::_exit(127);
}

}  // namespace

bool LinePipe::read_some() {
  char bytes[65536];
  const ssize_t got = ::read(fd.fd(), bytes, sizeof(bytes));
  if (got > 0) partial.append(bytes, static_cast<std::size_t>(got));
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR);
}

ChildProcess start_child(const ChildOptions& options) {
  const Prepared prepared = prepare(options);
  auto [out_read, out_write] = make_pipe();
  auto [err_read, err_write] = make_pipe();
  auto [report_read, report_write] = make_pipe();
  const pid_t parent = ::getpid();
  const pid_t pid = ::fork();
  if (pid < 0) throw base::device_error("no process for a rank: {}", std::strerror(errno));
  if (pid == 0) {
    become(prepared, parent, out_write.fd(), err_write.fd(), options.keep, report_write.fd());
  }
  ::setpgid(pid, pid);  // whoever comes first
  report_write.close();
  int code = 0;
  ssize_t got = 0;
  do {
    got = ::read(report_read.fd(), &code, sizeof(code));
  } while (got < 0 && errno == EINTR);
  if (got > 0) {
    ::waitpid(pid, nullptr, 0);
    throw base::device_error("'{}' cannot be run: {}", options.command[0], std::strerror(code));
  }
  ChildProcess child;
  child.pid = pid;
  child.ended = Socket(static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));
  set_nonblocking(out_read.fd());
  set_nonblocking(err_read.fd());
  child.output.fd = std::move(out_read);
  child.error.fd = std::move(err_read);
  return child;
}

}  // namespace reprise::runtime::comm
