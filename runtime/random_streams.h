#pragma once

// The random streams (graph/random.h) of everything that is not an op of the graph. Ops count
// theirs up from 0.

#include <cstdint>

namespace reprise::runtime {

inline constexpr std::uint32_t kShuffleStream = 0x8000'0001;       // step: epoch
inline constexpr std::uint32_t kAugmentationStream = 0x8000'0002;  // step: epoch
inline constexpr std::uint32_t kPixelStream = 0x8000'0003;         // step: 0 train, 1 test
inline constexpr std::uint32_t kLabelStream = 0x8000'0004;         // step: 0 train, 1 test
inline constexpr std::uint32_t kPrototypeStream = 0x8000'0005;
inline constexpr std::uint32_t kTokenStream = 0x8000'0006;
inline constexpr std::uint32_t kProfileStream = 0x8000'0007;

}  // namespace reprise::runtime
