#pragma once

// Names that a prepared graph (graph/prepared.h) may hold: backends, memory layouts.

#include <array>
#include <string_view>

namespace reprise::graph {

// Who can have prepared a graph. A build may lack some of them; kernels::make_backend() says so.
inline constexpr std::array<std::string_view, 3> kBackendNames = {"cpu", "reference", "cuda"};

// A layout is "plain" (row-major), "workspace" (a form of a kernel's own), or the axes of a blocked
// one from the outermost to the innermost. An axis is a letter, a for the first. A split axis is a
// capital where it is outermost, and its inner parts stand behind it with their sizes: "aBcd16b"
// has channels in blocks of 16 innermost. Where axes leave gaps each is followed by its stride:
// "a.64.b.1.".
[[nodiscard]] bool is_layout_name(std::string_view text);

}  // namespace reprise::graph
