#pragma once

// The memory of all devices, and pinned memory of the host.
//
//   device addresses  0x2000'0000'0000 ...  never accessible
//   storage           0x3000'0000'0000 ...  the same offset; accessible where allocated
//
// (Under a thread sanitizer, which keeps those for itself, both lie lower.)
// Addresses are never given out twice, so that late use of freed memory is seen.

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "tests/cuda/double/operation.h"

namespace reprise::test::cuda {

constexpr unsigned char kFresh = 0xA5;  // every byte of new memory

struct Allocation {
  std::uintptr_t begin = 0;
  std::size_t bytes = 0;
  int device = 0;           // the device of device memory; of pinned memory, the one at the time
  bool pinned = false;      // memory of the host
  bool registered = false;  // pinned later, not by us
  int number = 0;
};

class Memory {
 public:
  // Of whatever size; the caller checks what the device has.
  void* allocate(std::size_t bytes, int device);
  void* allocate_pinned(std::size_t bytes, int device);
  void pin(void* host, std::size_t bytes, int device);
  // False where no allocation of that kind begins there. Reports bytes written behind its end.
  bool release(void* address, bool pinned);
  void release_all();

  // The allocation that holds all of these bytes; throws BadAddress where there is none.
  [[nodiscard]] Allocation holding(const void* begin, std::size_t bytes) const;
  // The same without an exception: bytes == 0 where there is none.
  [[nodiscard]] Allocation find(const void* begin) const;
  [[nodiscard]] std::size_t used(int device) const;
  struct Usage {
    std::size_t allocations = 0, bytes = 0, peak_bytes = 0;
  };
  [[nodiscard]] Usage usage() const;  // of device memory, all devices together
  void clear_peak();
  // "bytes [16, 32) of allocation 3 (64 bytes)"
  [[nodiscard]] std::string describe(const void* begin, std::size_t bytes) const;

 private:
  [[nodiscard]] const Allocation* lookup(std::uintptr_t address) const;
  void reserve_ranges();

  mutable std::mutex mutex_;
  std::map<std::uintptr_t, Allocation> live_;
  std::map<std::uintptr_t, Allocation> freed_;  // for messages
  std::uintptr_t next_ = 0;
  int numbers_ = 0;
  Usage usage_;
};

[[nodiscard]] Memory& memory();

// Makes a host access to device memory end the process with a message that says so.
void trap_host_accesses();

[[nodiscard]] std::uintptr_t storage_distance();

}  // namespace reprise::test::cuda
