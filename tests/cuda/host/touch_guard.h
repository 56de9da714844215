#pragma once

// Whether a kernel touches only what it declared at its launch. While it runs, all other bytes of
// the allocations that its arguments point into hold 0xA5: reading them spoils its results, and
// writing to them, or to what it only reads, is a KernelFault. Costs two copies of the allocations
// for each launch, so it is off until a test turns it on.

#include <cstddef>
#include <string>
#include <vector>

#include "double/operation.h"

namespace reprise::test::cuda {

void set_touch_guard(bool on);  // for all threads of the host
[[nodiscard]] bool touch_guard_is_on();

class TouchGuard {
 public:
  // `pointers` are the arguments of the kernel; those that are no device addresses are left out.
  TouchGuard(std::string kernel, const std::vector<Range>& touched,
             const std::vector<const void*>& pointers);
  // Puts back what was there.
  ~TouchGuard();
  TouchGuard(const TouchGuard&) = delete;
  TouchGuard& operator=(const TouchGuard&) = delete;

  // Throws KernelFault naming the first byte that changed and should not have.
  void check() const;

 private:
  enum class Use : unsigned char { kNone, kRead, kWritten };
  struct Guarded {
    std::byte* bytes = nullptr;  // in storage
    const std::byte* address = nullptr;
    std::vector<std::byte> before;
    std::vector<Use> uses;  // of each byte
  };
  void guard(const void* pointer, const std::vector<Range>& touched);

  std::string kernel_;
  std::vector<Guarded> guarded_;
};

}  // namespace reprise::test::cuda
