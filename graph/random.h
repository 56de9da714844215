#pragma once

// Counter-based random numbers (Philox4x32-10; Salmon et al., "Parallel random numbers: as easy as
// 1, 2, 3", SC 2011). A draw is a pure function of its coordinates, so a recomputed node draws the
// same numbers in whatever order it runs.

#include <array>
#include <cstdint>

namespace reprise::graph {

// What the ops of one training step may depend on beside their inputs.
struct StepContext {
  std::uint64_t seed = 0;
  std::uint64_t step = 0;  // number of the step, from 0
  friend bool operator==(const StepContext&, const StepContext&) = default;
};

// Ten rounds of Philox4x32.
[[nodiscard]] std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                                      std::array<std::uint32_t, 2> key);

// The 32 random bits of element `index` (row-major in the logical shape) of random stream `stream`.
// Block index/4 is philox(counter = {block low, block high, step low, stream xor (step high <<
// 16)}, key = {seed low, seed high}), word index%4.
[[nodiscard]] std::uint32_t random_bits(const StepContext& context, std::uint32_t stream,
                                        std::uint64_t index);

// dropout keeps an element when its bits are at least this threshold: round(p * 2^32), at most 2^32
// - 1.
[[nodiscard]] std::uint32_t dropout_threshold(double probability);

}  // namespace reprise::graph
