#pragma once

// The communication thread before the ones that compute. It works for microseconds between long
// waits; where every core computes, it would else get its turn a time slice late, at each
// operation, and computation then waits in vain for sums that could be there.

#include <cstdint>
#include <string_view>

namespace reprise::runtime::comm {

enum class ThreadPriority : std::uint8_t {
  kRealTime,  // SCHED_RR, the lowest of its priorities
  kNice,      // nice -20
  kPlain,     // neither is allowed: that takes CAP_SYS_NICE, or limits of rtprio or nice
};
[[nodiscard]] std::string_view thread_priority_name(ThreadPriority priority);  // "real-time"

// Raises the calling thread as far as it may be; threads that it starts are plain again. Never
// fails.
ThreadPriority raise_thread_priority() noexcept;

}  // namespace reprise::runtime::comm
