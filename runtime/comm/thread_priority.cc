#include "runtime/comm/thread_priority.h"

#include <sched.h>
#include <sys/resource.h>

namespace reprise::runtime::comm {

std::string_view thread_priority_name(ThreadPriority priority) {
  switch (priority) {
    case ThreadPriority::kRealTime:
      return "real-time";
    case ThreadPriority::kNice:
      return "nice -20";
    case ThreadPriority::kPlain:
      return "plain";
  }
  return "?";
}

ThreadPriority raise_thread_priority() noexcept {
  sched_param lowest{};
  lowest.sched_priority = sched_get_priority_min(SCHED_RR);
  if (sched_setscheduler(0, SCHED_RR | SCHED_RESET_ON_FORK, &lowest) == 0)
    return ThreadPriority::kRealTime;
  constexpr int kMost = -20;
  sched_param plain{};
  if (setpriority(PRIO_PROCESS, 0, kMost) == 0) {  // of this thread alone, on Linux
    (void)sched_setscheduler(0, SCHED_OTHER | SCHED_RESET_ON_FORK, &plain);
    return ThreadPriority::kNice;
  }
  return ThreadPriority::kPlain;
}

}  // namespace reprise::runtime::comm
