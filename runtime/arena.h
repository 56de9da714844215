#pragma once

// One reservation of device memory, made once. On the CPU: anonymous pages with an inaccessible
// guard page behind the last byte.

#include <cstddef>

#include "base/bytes.h"

namespace reprise::runtime {

using base::Bytes;

class Arena {
 public:
  // Reserves `bytes` (0 is fine). Pages are touched at once, so that a step never faults and a
  // machine without the memory says so here: Error(kDevice) with requested and available bytes.
  explicit Arena(Bytes bytes);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] Bytes bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  Bytes bytes_ = 0;
  Bytes mapped_bytes_ = 0;
};

// Resident bytes of this process now (VmRSS) and at its highest (VmHWM).
[[nodiscard]] Bytes resident_bytes();
[[nodiscard]] Bytes peak_resident_bytes();

}  // namespace reprise::runtime
