#pragma once

// Sums over ranks in the memory of devices, queued beside the step.

#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>

#include "graph/types.h"

namespace reprise::kernels {

// Called again and again while the host has to wait for other ranks, with how long it has waited by
// now. What it throws ends the wait.
using Patience = std::function<void(std::chrono::nanoseconds waited)>;

// One rank's end of a group of devices. All ranks start the same sums in the same order, and record
// the same of them. One thread uses it, but abort() may come from any. Tapes on which its sums are
// recorded go before it.
class DeviceSums {
 public:
  virtual ~DeviceSums() = default;

  [[nodiscard]] virtual std::string description() const = 0;  // "NCCL 2.28.9, 4 ranks"
  // Device memory that it holds beside every arena.
  [[nodiscard]] virtual base::Bytes reserved_bytes() const = 0;

  // Queues the sum of the pieces over all ranks, in place, behind what the device's step has queued
  // so far, as sum `number` (small, the caller's choice; an earlier one of that number must have
  // been waited for). `pieces` are whole numbers of elements, of the same sizes on all ranks, and
  // may go away. Like wait(), may be recorded with the step.
  virtual void start(std::size_t number, std::span<const std::span<std::byte>> pieces,
                     graph::DType type) = 0;
  // What the step queues from here on waits for that sum; the host does not.
  virtual void wait(std::size_t number) = 0;

  // Whether everything that was queued has run. Throws Error(kDevice) when the group has failed:
  // a step that waits for a dead rank never ends by itself, so the host asks again and again.
  [[nodiscard]] virtual bool idle() = 0;
  // Ends what is under way, soon after it returned; the group is of no more use.
  virtual void abort() noexcept = 0;
};

}  // namespace reprise::kernels
