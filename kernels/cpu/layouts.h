#pragma once

// The layout pass: walks a graph in order, asks each node's kernel which layouts it wants, and
// inserts reorder nodes where a value lies otherwise.
//
// - A parameter takes the layout that its first reader prefers; optimizer state that of its
//   parameter (whose update is its first reader). `like` fixes persistent values beforehand.
// - A value is reordered into one layout at most once per phase, right before the first reader. The
//   backward pass makes its own copy rather than keeping the forward one alive.
// - Ids of values stay those of the given graph; values made by reorders come after them.

#include <memory>
#include <optional>
#include <string_view>

#include "kernels/cpu/booking.h"

namespace reprise::kernels::cpu {

struct LaidOut {
  graph::PreparedGraph prepared;
  LayoutTable table;
  base::IdVector<graph::ValueId, LayoutId> layouts;
  base::IdVector<graph::NodeId, std::shared_ptr<Kernel>> kernels;
};

// Layouts of another program's persistent values, by name.
class PersistentLayouts {
 public:
  virtual ~PersistentLayouts() = default;
  [[nodiscard]] virtual const Layout* persistent_layout(std::string_view name) const = 0;
};

// Throws Error(kInput) naming a node without a kernel, and why.
[[nodiscard]] LaidOut choose_layouts(const graph::Graph& graph, const PersistentLayouts* like);

}  // namespace reprise::kernels::cpu
