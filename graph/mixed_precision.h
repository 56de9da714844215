#pragma once

// bf16 compute with f32 master weights: a rewrite of a forward graph, before autodiff.

#include "graph/graph.h"

namespace reprise::graph {

// The same network with the numbers of its ops in bf16 where their rows have such a form:
//
//   x[f32] ──cast──▶ x.bf16 ─┐                                              y.f32 ──▶ loss [f32]
//   w[f32] ──cast──▶ w.bf16 ─┴▶ conv2d ▶ batch_norm ▶ relu ▶ ... ▶ y[bf16] ──cast──┘
//
// - Everything that persists stays f32 (the parameters are the master weights), and so do losses
//   and what is computed from them, other scalars, statistics of norms, integers.
// - An op without a bf16 form is an island: it reads and makes f32, behind casts. Ops that only
//   move numbers (reshape, slice, concat) follow what they read.
// - A value is cast at most once, to "<name>.bf16" or "<name>.f32", right before the first reader
//   that wants it so; all others share it. Nothing is cast back.
// - An output that the user fetches stays f32: of a bf16 value it is "<name>.f32".
//
// Names and order of the given nodes stay, ids do not. No loss scale is needed: bf16 has the
// exponents of f32, so what would vanish there is as small here. Throws Error(kInput) for a graph
// that has backward nodes or bf16 values already.
[[nodiscard]] Graph mixed_precision(const Graph& forward);

}  // namespace reprise::graph
