#pragma once

// Batch norm over ranks: statistics of the items of all of them.
//
//     x ─▶ moments ─▶ all_reduce ─▶ await ─▶ combine ─▶ mean, var ─▶ apply ─▶ y
//     └──────────────────────────────────────────────────────────────▲
//
// Each rank writes mean and variance of its own items into its own row of zeros, so that the sum
// over the ranks gathers them, and all combine the rows in the order of the ranks as Chan, Golub
// and LeVeque (1979) do: the bits are the same everywhere, and a large mean cancels nothing. Which
// rows of x are items is an input of the step, the same graph on all ranks; padding counts nowhere,
// and its gradient is zero.

#include <cstdint>
#include <string_view>

#include "graph/graph.h"

namespace reprise::graph {

// "parts" of graph/op.h: i32[ranks + 1].
inline constexpr std::string_view kBatchParts = "batch_parts";

// Every batch norm of a forward graph over `ranks` ranks (at least 1). All values but those that
// assign nodes make keep their ids; nodes and values are added, among them the input kBatchParts
// when there is a batch norm at all. Running statistics are made from those of all ranks. Throws
// Error(kInput) when gamma or beta is made by a node, or when names are taken.
[[nodiscard]] Graph synchronise_batch_norm(const Graph& forward, std::int64_t ranks);

}  // namespace reprise::graph
