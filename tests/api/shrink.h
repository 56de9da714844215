#pragma once

// Makes a failing graph small: what is printed should show the fault and little else.

#include <functional>

#include "models/model.h"

namespace reprise::api {

// Takes nodes and fetched outputs away, many at a time and then one by one, as long as `fails` says
// that what is left still fails. A node that goes is bridged by an input of its shape and dtype, or
// else by a new input of the graph ("cut.<name>"). No single node or output can be taken away from
// the result. `fails(model)` must hold.
[[nodiscard]] models::Model shrink(models::Model model,
                                   const std::function<bool(const models::Model&)>& fails);

}  // namespace reprise::api
