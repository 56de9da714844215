#pragma once

// Initial values of parameters and states: a pure function of (seed, name, element), so that
// neither the order of the model's parameters nor the device changes them.

#include <cstdint>
#include <string_view>
#include <vector>

#include "models/model.h"

namespace reprise::api {

// `count` f32 values for the parameter or state `name`.
[[nodiscard]] std::vector<float> initial_values(const models::Model::Initializer& initializer,
                                                std::string_view name, std::int64_t count,
                                                std::uint64_t seed);

}  // namespace reprise::api
