// The counter replaces malloc and operator new of the test program, and looks up the caller's
// library.

#include "allocation_counter.h"

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <new>
#include <vector>

namespace reprise::kernels {
namespace {

std::atomic<bool> counting{false};
std::atomic<long> ours{0};
std::atomic<long> libraries{0};
std::atomic<long> largest{0};

[[maybe_unused]] void count(std::size_t bytes, const void* caller) {
  if (!counting.load(std::memory_order_relaxed)) return;
  Dl_info info{};
  const bool found = dladdr(caller, &info) != 0 && info.dli_fname != nullptr;
  const bool library = found && (std::strstr(info.dli_fname, "libdnnl") != nullptr ||
                                 std::strstr(info.dli_fname, "libgomp") != nullptr);
  if (!library) {
    ++ours;
    return;
  }
  ++libraries;
  long known = largest.load();
  while (static_cast<long>(bytes) > known &&
         !largest.compare_exchange_weak(known, static_cast<long>(bytes))) {
  }
}

}  // namespace

void AllocationCounter::start() {
  ours = libraries = largest = 0;
  counting = true;
}
void AllocationCounter::stop() {
  counting = false;
}
AllocationCounter::Counts AllocationCounter::counts() {
  return {ours, libraries, largest};
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
bool AllocationCounter::works() {
  return false;
}
#else
bool AllocationCounter::works() {
  return true;
}

TEST(AllocationCounter, SeesOurAllocations) {
  AllocationCounter::start();
  std::vector<char> data(100);
  void* plain = std::malloc(10);
  AllocationCounter::stop();
  std::free(plain);
  EXPECT_EQ(AllocationCounter::counts().ours, 2);
  EXPECT_EQ(AllocationCounter::counts().libraries, 0);
  EXPECT_EQ(data.size(), 100u);
}
#endif

}  // namespace reprise::kernels

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t bytes) {
  reprise::kernels::count(bytes, __builtin_return_address(0));
  return __libc_malloc(bytes);
}
void* calloc(std::size_t number, std::size_t bytes) {
  reprise::kernels::count(number * bytes, __builtin_return_address(0));
  return __libc_calloc(number, bytes);
}
void* realloc(void* old, std::size_t bytes) {
  reprise::kernels::count(bytes, __builtin_return_address(0));
  return __libc_realloc(old, bytes);
}
int posix_memalign(void** out, std::size_t alignment, std::size_t bytes) {
  reprise::kernels::count(bytes, __builtin_return_address(0));
  *out = __libc_memalign(alignment, bytes);
  return *out == nullptr ? ENOMEM : 0;
}
void* aligned_alloc(std::size_t alignment, std::size_t bytes) {
  reprise::kernels::count(bytes, __builtin_return_address(0));
  return __libc_memalign(alignment, bytes);
}
}

void* operator new(std::size_t bytes) {
  reprise::kernels::count(bytes, __builtin_return_address(0));
  void* memory = __libc_malloc(bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

#endif
