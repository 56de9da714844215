#pragma once

// The names of values and nodes.

#include <cstddef>
#include <string>
#include <string_view>

#include "graph/op.h"

namespace reprise::graph {

// One or more of A-Z a-z 0-9 _ . / -
[[nodiscard]] bool is_name(std::string_view text);

// The name of one output of a node: the first has the node's own, further ones follow it
// ("bn1.mean", "pool.indices").
[[nodiscard]] std::string output_name(OpKind op, std::string_view node, std::size_t output);

}  // namespace reprise::graph
