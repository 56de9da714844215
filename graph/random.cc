#include "graph/random.h"

#include <cmath>

namespace reprise::graph {

std::array<std::uint32_t, 4> philox4x32(std::array<std::uint32_t, 4> counter,
                                        std::array<std::uint32_t, 2> key) {
  constexpr std::uint64_t kMultiplier0 = 0xD2511F53;
  constexpr std::uint64_t kMultiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t kWeyl0 = 0x9E3779B9;
  constexpr std::uint32_t kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t product0 = kMultiplier0 * counter[0];
    const std::uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<std::uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<std::uint32_t>(product1),
               static_cast<std::uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<std::uint32_t>(product0)};
    key = {key[0] + kWeyl0, key[1] + kWeyl1};
  }
  return counter;
}

std::uint32_t random_bits(const StepContext& context, std::uint32_t stream, std::uint64_t index) {
  const std::uint64_t block = index / 4;
  const auto step_high = static_cast<std::uint32_t>(context.step >> 32);
  const auto words = philox4x32(
      {static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32),
       static_cast<std::uint32_t>(context.step), stream ^ (step_high << 16)},
      {static_cast<std::uint32_t>(context.seed), static_cast<std::uint32_t>(context.seed >> 32)});
  return words[index % 4];
}

std::uint32_t dropout_threshold(double probability) {
  const double scaled = std::round(probability * 0x1p32);
  return scaled >= 0xFFFFFFFFp0 ? 0xFFFFFFFFu : static_cast<std::uint32_t>(scaled);
}

}  // namespace reprise::graph
