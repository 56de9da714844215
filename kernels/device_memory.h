#pragma once

// Memory of a device that the host cannot address. A backend whose arena lies in host memory has
// none of this.

#include <cstddef>
#include <span>

#include "base/bytes.h"

namespace reprise::kernels {

// Addresses are the device's: the host hands them on and never looks behind them. Every call that
// moves bytes first waits for all that runs on the device, and is over on return; none is for use
// inside a step. All throw Error(kDevice) naming the call and the bytes when the device fails.
class DeviceMemory {
 public:
  virtual ~DeviceMemory() = default;

  // At least `bytes` (0 is fine), at a multiple of 256, all zero. Error(kDevice) names what was
  // asked for and what is free.
  [[nodiscard]] virtual std::byte* reserve(base::Bytes bytes) = 0;
  virtual void release(std::byte* reserved) noexcept = 0;
  [[nodiscard]] virtual base::Bytes available_bytes() const = 0;

  virtual void read(const std::byte* from, std::span<std::byte> to) = 0;
  virtual void write(std::byte* to, std::span<const std::byte> from) = 0;
  virtual void fill(std::byte* to, std::byte value, base::Bytes bytes) = 0;
  // Until everything that was queued has run. Throws what went wrong meanwhile.
  virtual void wait() = 0;
};

}  // namespace reprise::kernels
