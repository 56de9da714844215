#pragma once

// A word on standard error while something long says nothing itself, such as the search for a plan:
//
//   planning resnet164: 0:07
//
// On a terminal one line, from the second second on, drawn anew each second and wiped at the end;
// elsewhere a line of its own after 10 seconds, and again each time the wait has doubled.

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "cli/command.h"

namespace reprise::cli {

class Waiting {
 public:
  struct Times {
    std::chrono::milliseconds first_drawn{2'000}, redrawn{1'000};
    std::chrono::milliseconds first_line{10'000};
  };
  // From here to stop() nothing else may write to `context.err`.
  Waiting(const Context& context, std::string what, Times times);
  Waiting(const Context& context, std::string what) : Waiting(context, std::move(what), Times()) {}
  ~Waiting();
  Waiting(const Waiting&) = delete;
  Waiting& operator=(const Waiting&) = delete;

  void tell(std::string what);  // from the next line on
  void stop();                  // returns when nothing more is written; again, does nothing

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

// What `work` returns, with a word in between should it take long.
template <class Work>
auto while_waiting(const Context& context, std::string what, Work&& work) {
  const Waiting waiting(context, std::move(what));
  return work();
}

}  // namespace reprise::cli
