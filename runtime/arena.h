#pragma once

// One reservation of device memory, made once. In the host's memory: anonymous pages with an
// inaccessible guard page behind the last byte.

#include <cstddef>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "kernels/device_memory.h"
#include "runtime/memory_info.h"

namespace reprise::runtime {

class Arena {
 public:
  // Reserves `bytes` (0 is fine), all zero. Pages are touched at once, so that a step never faults,
  // and only after a comparison with what is available: a machine without the memory says so here
  // with Error(kDevice), requested and available bytes, instead of killing the process.
  // With `device` the bytes are reserved there.
  explicit Arena(Bytes bytes, std::shared_ptr<kernels::DeviceMemory> device = nullptr);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }

  // The host's way to addresses in data()[0, bytes()), wherever the arena lies. Not inside a step.
  void read(const std::byte* from, std::span<std::byte> to) const;
  void write(std::byte* to, std::span<const std::byte> from);
  void fill(std::byte* to, std::byte value, Bytes bytes);

 private:
  void reserve_pages();

  std::byte* data_ = nullptr;
  Bytes bytes_ = 0;
  std::shared_ptr<kernels::DeviceMemory> device_;  // null: the host's
  void* mapping_ = nullptr;  // address space: alignment slack, the pages, the guard page
  std::size_t mapping_bytes_ = 0;
};

}  // namespace reprise::runtime
