#pragma once

// A schedule with its addresses filled in: what the executor's loop reads, in one block.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "base/bytes.h"
#include "kernels/backend.h"
#include "schedule/schedule.h"

namespace reprise::runtime {

// One instruction, ready to be called. The addresses lie in Binding::addresses.
struct BoundInstruction {
  graph::NodeId node;
  std::uint32_t input_count = 0;
  std::uint32_t output_count = 0;
  std::byte* const* addresses = nullptr;  // inputs, then outputs
  std::byte* workspace = nullptr;         // null when the node books none
  std::int32_t algorithm = 0;
  std::int32_t mark = -1;  // Program::mark() after it, where there is one
  base::Bytes reach =
      0;  // highest end, in schedule offsets, of what this or an earlier one touches
};

struct Binding {
  std::vector<BoundInstruction> instructions;
  std::vector<std::byte*> addresses;
};

// `address` turns an offset of the schedule into a pointer. Throws Error(kInput) naming the
// instruction when the schedule does not fit the graph in form: unknown ids, arity, another value's
// slot, bytes outside the arena. (Whether it is correct is for schedule::verify() to say.)
[[nodiscard]] Binding bind_schedule(const graph::PreparedGraph& prepared,
                                    const schedule::Schedule& schedule,
                                    const std::function<std::byte*(base::Bytes)>& address);

}  // namespace reprise::runtime
