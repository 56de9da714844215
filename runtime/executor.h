#pragma once

// Runs a schedule: a loop without opinions.

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "graph/buckets.h"
#include "graph/random.h"
#include "kernels/backend.h"
#include "runtime/arena.h"
#include "runtime/comm/communicator.h"
#include "runtime/step_record.h"
#include "schedule/schedule.h"

namespace reprise::runtime {

using graph::ValueId;

struct ExecutorOptions {
  // Debug mode: a stretched arena of its own, in which at least 64 sentinel bytes lie between any
  // two neighbours; freed bytes are filled with 0xFF (NaN); after every instruction each byte that
  // it does not write, sentinel, freed or live, must be what it was. A changed one is
  // Error(kInternal) naming node, slot and byte. Every instruction then costs a pass over the
  // arena, and the process holds the arena two more times.
  bool debug = false;
  // Runs all_reduce and await nodes; null: there are no other ranks. Must outlive the executor. In
  // debug mode a sum is waited for at once, so that no byte changes under way.
  comm::Communicator* communicator = nullptr;
  base::Bytes bucket_bytes = graph::kDefaultBucketBytes;  // schedule/buckets.h
  // Where arena and program live; null: in the host's memory. A step there has been queued when
  // run() returns, and is waited for by what reads or writes.
  std::shared_ptr<kernels::DeviceMemory> device{};
  // With `communicator` and `device`: sums up there, and must outlive the executor. A step with
  // sums has run when run() returns; so a rank that is gone is an error, and no wait without end.
  kernels::DeviceSums* device_sums = nullptr;
};

class Executor {
 public:
  // `program` and `arena` must outlive the executor. Several executors may share one arena when
  // their persistent values lie at the same offsets (not in debug mode: then each has an arena of
  // its own, and what they share is carried over by read() and write()). Throws Error(kInput) when
  // the arena is smaller than the schedule's (names both), or when the schedule is not one of the
  // program's graph; in debug mode also when schedule::verify() finds a fault.
  Executor(kernels::Program& program, schedule::Schedule schedule, Arena& arena,
           const ExecutorOptions& options = {});
  ~Executor();

  // One step. No allocation, no lock, no policy. Every input must have been written since the last
  // step, whose later instructions took its bytes.
  //
  // An exception out of a kernel leaves as the same kind of Error, naming the node, and the
  // executor stays usable. The instructions before it have run, though: parameters, optimizer state
  // and statistics may already be updated in part. A caller that wants to try the step again (or to
  // keep what was before it) captures the entry first and restores it afterwards; the retry then
  // equals a clean run bit for bit.
  //
  // With `record` the step says when each instruction and each sum over ranks ran; then it may
  // allocate, and takes some tens of nanoseconds longer for each. Filled when run() returns.
  void run(const graph::StepContext& context, StepRecord* record = nullptr);

  // Whether the last run() threw after (or while) it wrote over a persistent value. When not, all
  // of them are what they were, and only the inputs have to be written again.
  [[nodiscard]] bool state_lost() const;

  // The stored bytes of all entry slots, inputs and persistent values, one after the other.
  // Allocates nothing where `captured` has that size already.
  void capture_entry(std::vector<std::byte>& captured) const;
  void restore_entry(std::span<const std::byte> captured);  // Error(kInput) when the size differs

  // Plain row-major bytes into the entry slot of an input or persistent value (of its first
  // version).
  void write(ValueId value, std::span<const std::byte> plain);
  // Into the entry slot of an input, for the next step: like write(), but on a device it may go on
  // beside the step that is under way, from when on nobody there needs the bytes any more.
  void write_ahead(ValueId input, std::span<const std::byte> plain);
  // ... and out of the exit slot: fetched outputs and persistent values (first version's id; reads
  // the last).
  void read(ValueId value, std::span<std::byte> plain) const;

  // Highest byte of the arena handed to a kernel (in the steps so far) or to write() and read(),
  // rounded up to the arena alignment. In debug mode in offsets of the schedule, not of the
  // stretched arena.
  [[nodiscard]] base::Bytes peak_bytes_measured() const;
  [[nodiscard]] const schedule::Schedule& schedule() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::runtime
