// The communication thread's priority: as high as it may be, its own alone, and no fault without.

#include <gtest/gtest.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "runtime/comm/thread_priority.h"

namespace reprise::runtime::comm {
namespace {

// Policy and nice value of the calling thread.
std::pair<int, int> standing() {
  return {sched_getscheduler(0) & ~SCHED_RESET_ON_FORK, getpriority(PRIO_PROCESS, 0)};
}

TEST(ThreadPriority, IsThatOfTheThreadAloneAndNotOfThoseItStarts) {
  const auto before = standing();
  ThreadPriority got{};
  std::pair<int, int> raised, child;
  std::thread([&] {
    got = raise_thread_priority();
    raised = standing();
    std::thread([&] { child = standing(); }).join();
  }).join();
  EXPECT_EQ(standing(), before);
  EXPECT_EQ(child.first, SCHED_OTHER);
  EXPECT_GE(child.second, 0);
  EXPECT_EQ(raised.first, got == ThreadPriority::kRealTime ? SCHED_RR : SCHED_OTHER);
  EXPECT_EQ(raised.second == -20, got == ThreadPriority::kNice);
}

// What a user without rights gets: nothing, and no error.
TEST(ThreadPriority, StaysPlainWhereNothingIsAllowed) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit none{0, 0};
    (void)setrlimit(RLIMIT_RTPRIO, &none);
    (void)setrlimit(RLIMIT_NICE, &none);
    __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
    const __user_cap_data_struct no_capability[2]{};
    if (syscall(SYS_capset, &header, no_capability) != 0) _exit(2);
    const auto before = standing();
    const ThreadPriority got = raise_thread_priority();
    _exit(got == ThreadPriority::kPlain && standing() == before ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

TEST(ThreadPriority, HasAName) {
  EXPECT_EQ(thread_priority_name(ThreadPriority::kRealTime), "real-time");
  EXPECT_EQ(thread_priority_name(ThreadPriority::kNice), "nice -20");
  EXPECT_EQ(thread_priority_name(ThreadPriority::kPlain), "plain");
}

}  // namespace
}  // namespace reprise::runtime::comm
