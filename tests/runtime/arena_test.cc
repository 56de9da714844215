#include "runtime/arena.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <sys/resource.h>
#include <unistd.h>

#include "gtest/gtest.h"

#include "base/error.h"

namespace reprise::runtime {
namespace {

std::string message_of_arena(Bytes bytes) {
  try {
    Arena arena(bytes);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kDevice);
    return error.what();
  }
  return "";
}

TEST(Arena, IsZeroedAlignedAndWritableToTheLastByte) {
  Arena arena(100'000);
  EXPECT_EQ(arena.bytes(), 100'000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(arena.data()) % 4096, 0u);
  EXPECT_TRUE(std::all_of(arena.data(), arena.data() + 100'000,
                          [](std::byte byte) { return byte == std::byte{0}; }));
  arena.data()[99'999] = std::byte{7};
  EXPECT_EQ(arena.data()[99'999], std::byte{7});
}

TEST(Arena, OfZeroBytesIsFine) {
  Arena arena(0);
  EXPECT_NE(arena.data(), nullptr);
  EXPECT_EQ(arena.bytes(), 0);
}

TEST(ArenaDeathTest, ReachingBehindTheLastPageIsFatal) {
  const Bytes page = sysconf(_SC_PAGESIZE);
  Arena arena(3 * page);
  arena.data()[3 * page - 1] = std::byte{1};
  EXPECT_DEATH({ *static_cast<volatile std::byte*>(arena.data() + 3 * page) = std::byte{1}; }, "");
}

TEST(ArenaDeathTest, AnArenaOfZeroBytesHasNoWritableByte) {
  Arena arena(0);
  EXPECT_DEATH({ *static_cast<volatile std::byte*>(arena.data()) = std::byte{1}; }, "");
}

TEST(Arena, TouchesItsPagesAtOnceAndGivesThemBack) {
  const Bytes before = resident_bytes();
  {
    Arena arena(64 * base::kMiB);
    // 64 MiB more, give or take what else the process does.
    EXPECT_GE(resident_bytes() - before, 63 * base::kMiB);
#if !defined(__SANITIZE_THREAD__)  // which writes notes about each byte written
    EXPECT_LE(resident_bytes() - before, 72 * base::kMiB);
#endif
    EXPECT_GE(peak_resident_bytes(), before + 63 * base::kMiB);
  }
  EXPECT_LE(resident_bytes() - before, 8 * base::kMiB);
}

TEST(Arena, BeyondTheMachineIsAnErrorWithBothNumbers) {
  const Bytes available = available_memory_bytes();
  ASSERT_GT(available, 0);
  const Bytes asked = available + base::kGiB;
  const std::string message = message_of_arena(asked);
  EXPECT_NE(message.find(std::to_string(asked) + " bytes"), std::string::npos) << message;
  EXPECT_NE(message.find("are available"), std::string::npos) << message;
  EXPECT_NE(message_of_arena(Bytes{1} << 50).find("1125899906842624 bytes (1024.0 TiB)"),
            std::string::npos);
}

TEST(Arena, RefusalByTheAddressSpaceLimitIsAnError) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers map memory of their own";
#endif
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  // The limit is below what the process maps already, so that any new mapping is refused.
  rlimit tiny = before;
  tiny.rlim_cur = 16u << 20;
  if (setrlimit(RLIMIT_AS, &tiny) != 0) GTEST_SKIP() << "cannot lower RLIMIT_AS";
  std::string message;
  try {
    Arena arena(32 * base::kMiB);
  } catch (const base::Error& error) {
    message = error.what();
  }
  ASSERT_EQ(setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_NE(message.find("33554432 bytes (32.0 MiB)"), std::string::npos) << message;
  EXPECT_NE(message.find("Cannot allocate memory"), std::string::npos) << message;
}

}  // namespace
}  // namespace reprise::runtime
