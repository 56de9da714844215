#pragma once

// One reservation of device memory, made once. On the CPU: anonymous pages with an inaccessible
// guard page behind the last byte.

#include <cstddef>

#include "base/bytes.h"
#include "runtime/memory_info.h"

namespace reprise::runtime {

class Arena {
 public:
  // Reserves `bytes` (0 is fine), all zero. Pages are touched at once, so that a step never faults,
  // and only after a comparison with what is available: a machine without the memory says so here
  // with Error(kDevice), requested and available bytes, instead of killing the process.
  explicit Arena(Bytes bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  Bytes bytes_ = 0;
  void* mapping_ = nullptr;  // address space: alignment slack, the pages, the guard page
  std::size_t mapping_bytes_ = 0;
};

}  // namespace reprise::runtime
