#pragma once

#include <cstdint>

namespace reprise::kernels::cpu {

// y = a + b over plain arrays; y may be a or b.
void add_arrays(const float* a, const float* b, float* y, std::int64_t count);

}  // namespace reprise::kernels::cpu
