#pragma once

// One child process with its output in pipes.

#include <string>
#include <string_view>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "runtime/comm/socket.h"

namespace reprise::runtime::comm {

// A pipe of which whole lines are taken.
struct LinePipe {
  Socket fd;
  std::string partial;

  // Reads what is there. Each whole line goes to `take` with its line end; at the end of the pipe,
  // which closes it, a last line without one is given one.
  template <class Take>
  void read_lines(Take&& take) {
    const bool ended = read_some();
    std::size_t begin = 0;
    for (std::size_t at = 0; (at = partial.find('\n', begin)) != std::string::npos; begin = at + 1)
      take(std::string_view(partial).substr(begin, at + 1 - begin));
    partial.erase(0, begin);
    if (!ended) return;
    if (!partial.empty()) take(std::string_view(partial += '\n'));
    partial.clear();
    fd.close();
  }

 private:
  [[nodiscard]] bool read_some();  // true at the end
};

struct ChildProcess {
  pid_t pid = -1;
  Socket ended;  // a pidfd: readable once the process has ended
  LinePipe output, error;
};

struct ChildOptions {
  std::vector<std::string> command;
  std::vector<std::pair<std::string, std::string>> variables;  // added to the environment
  int keep = -1;  // a descriptor that the child inherits under the same number
};

// Throws Error(kDevice): no process, no pipes, or the program cannot be run (names it and why).
[[nodiscard]] ChildProcess start_child(const ChildOptions& options);

}  // namespace reprise::runtime::comm
