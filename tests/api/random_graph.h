#pragma once

// Random trainable networks for property tests: a pure function of the seed.

#include <cstdint>

#include "models/model.h"

namespace reprise::api {

// A network of up to `ops` random ops on small images: convolutions, norms, pointwise ops, pooling,
// skips, shared weights, dropout, frozen and unused parameters, fetched activations. Inputs
// "images", "labels".
[[nodiscard]] models::Model make_random_model(std::uint64_t seed, int ops);

}  // namespace reprise::api
