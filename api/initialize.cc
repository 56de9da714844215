#include "api/initialize.h"

#include <cmath>
#include <numbers>

#include "api/hash.h"
#include "graph/random.h"

namespace reprise::api {
namespace {

// A uniform number in (0, 1) from 32 random bits; never 0, so that its logarithm is finite.
double unit(std::uint32_t bits) {
  return (static_cast<double>(bits) + 0.5) * 0x1p-32;
}

// Box and Muller 1958: two uniform numbers make one normal one here.
double normal(std::uint32_t first, std::uint32_t second) {
  return std::sqrt(-2.0 * std::log(unit(first))) * std::cos(2.0 * std::numbers::pi * unit(second));
}

}  // namespace

std::vector<float> initial_values(const models::Model::Initializer& initializer,
                                  std::string_view name, std::int64_t count, std::uint64_t seed) {
  using Kind = models::Model::Initializer::Kind;
  std::vector<float> values(static_cast<std::size_t>(count),
                            initializer.kind == Kind::kOnes ? 1.0f : 0.0f);
  if (initializer.kind == Kind::kZeros || initializer.kind == Kind::kOnes) return values;
  // Steps never reach 2^64 - 1, so these draws meet those of no training step.
  Fnv1a hash;
  hash.add(name);
  const graph::StepContext context{.seed = seed ^ hash.value(), .step = ~std::uint64_t{0}};
  for (std::size_t i = 0; i < values.size(); ++i) {
    const std::uint32_t first = graph::random_bits(context, 0, 2 * i);
    if (initializer.kind == Kind::kUniform) {
      values[i] = static_cast<float>(initializer.scale * (2.0 * unit(first) - 1.0));
    } else {
      values[i] = static_cast<float>(initializer.scale *
                                     normal(first, graph::random_bits(context, 0, 2 * i + 1)));
    }
  }
  return values;
}

}  // namespace reprise::api
