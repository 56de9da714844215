#pragma once

// Runs a schedule: a loop without opinions.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "graph/random.h"
#include "kernels/backend.h"
#include "runtime/arena.h"
#include "schedule/schedule.h"

namespace reprise::runtime {

using graph::ValueId;

struct ExecutorOptions {
  // Debug mode: the arena is stretched so that sentinel bytes lie between all slots, freed bytes
  // are filled with NaN, and after every instruction the sentinels around what it wrote are
  // checked. A broken sentinel or an instruction that changes what it does not write is
  // Error(kInternal) naming node, slot and byte.
  bool debug = false;
};

class Executor {
 public:
  // `program` and `arena` must outlive the executor. Several executors may share one arena when
  // their persistent values lie at the same offsets (not in debug mode: then each has its own
  // stretched arena, and share_with() copies). Throws Error(kInput) when the arena is smaller than
  // the schedule's (names both).
  Executor(kernels::Program& program, schedule::Schedule schedule, Arena& arena,
           const ExecutorOptions& options = {});
  ~Executor();

  // One step. No allocation, no lock, no policy.
  void run(const graph::StepContext& context);

  // Plain row-major bytes into the entry slot of an input or persistent value (of its first
  // version).
  void write(ValueId value, std::span<const std::byte> plain);
  // ... and out of the exit slot: fetched outputs and persistent values (first version's id; reads
  // the last).
  void read(ValueId value, std::span<std::byte> plain) const;

  // Highest byte of the arena handed to a kernel in the steps so far, rounded up to the arena
  // alignment.
  [[nodiscard]] base::Bytes peak_bytes_measured() const;
  [[nodiscard]] const schedule::Schedule& schedule() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::runtime
