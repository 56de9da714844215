#pragma once

// Workspace that a library asks for: it starts at a multiple of 256, as cudaMalloc's memory does.
// The arena's base is a multiple of 256 and its addresses are multiples of 64: hence the slack.

#include <algorithm>
#include <cstdint>

#include "kernels/cuda/booking.h"

namespace reprise::kernels::cuda {

class LibraryWorkspace {
 public:
  LibraryWorkspace() = default;
  LibraryWorkspace(Booking& booking, Bytes bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    if (bytes > 0) at_ = booking.workspace(bytes + kAlignment - graph::kArenaAlignment);
  }
  [[nodiscard]] std::size_t bytes() const { return bytes_; }
  // Null without bytes.
  [[nodiscard]] std::byte* in(const Run& run) const {
    if (bytes_ == 0) return nullptr;
    std::byte* start = run.workspace + at_;
    const auto over = static_cast<Bytes>(reinterpret_cast<std::uintptr_t>(start) % kAlignment);
    return over == 0 ? start : start + (kAlignment - over);
  }

 private:
  static constexpr Bytes kAlignment = 256;
  std::size_t at_ = 0;
  std::size_t bytes_ = 0;
};

}  // namespace reprise::kernels::cuda
