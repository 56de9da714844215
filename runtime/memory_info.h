#pragma once

// What the operating system says about memory.

#include "base/bytes.h"

namespace reprise::runtime {

using base::Bytes;

// Resident bytes of this process now and at its highest so far.
[[nodiscard]] Bytes resident_bytes();
[[nodiscard]] Bytes peak_resident_bytes();

// Bytes that this process may still touch before the machine, or the control group it runs in (v1
// or v2, any ancestor), runs out of memory. File cache that can be given back counts as available.
[[nodiscard]] Bytes available_memory_bytes();

}  // namespace reprise::runtime
