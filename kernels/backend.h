#pragma once

// What a device backend offers: layouts and bytes for a graph at plan time, kernels at run time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/prepared.h"
#include "graph/random.h"
#include "kernels/device_memory.h"
#include "kernels/device_sums.h"

namespace reprise::kernels {

using graph::NodeId;
using graph::ValueId;

// Addresses of one run of one node, in the order of its inputs and outputs. An output that shares
// its address with an input is computed in place.
struct Call {
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* workspace =
      nullptr;  // PreparedNode::workspace_of(algorithm), aligned to graph::kArenaAlignment
  std::int32_t algorithm = 0;  // of the node's
};

// What a device recorded of one executor's step, to play it again (Program::run_step).
class Tape {
 public:
  virtual ~Tape() = default;
};

// The kernels of one prepared graph. run() never allocates and never blocks; it is not thread-safe.
// On a device with memory of its own it queues the work and returns.
class Program {
 public:
  virtual ~Program() = default;

  [[nodiscard]] virtual const graph::PreparedGraph& prepared() const = 0;

  // Runs one node. Throws Error(kInput) for data out of range (an embedding id, a label),
  // Error(kDevice) when the library fails; both name the node.
  virtual void run(NodeId node, const Call& call, const graph::StepContext& context) = 0;

  // run(), and the time that it took on the device, in nanoseconds. Waits for it.
  [[nodiscard]] virtual std::int64_t timed_run(NodeId node, const Call& call,
                                               const graph::StepContext& context);

  // A whole step: calls `instructions`, which calls run() with the same context for each
  // instruction. A device that can record what these queue does so on `tape`, and in later steps
  // plays the tape instead; so one tape belongs to one sequence of instructions and addresses.
  // `tape` may be null: then nothing is recorded.
  virtual void run_step(const graph::StepContext& context, Tape* tape,
                        const std::function<void(const graph::StepContext&)>& instructions) {
    (void)tape;
    instructions(context);
  }
  // An empty tape; null where the device records nothing.
  [[nodiscard]] virtual std::unique_ptr<Tape> make_tape() { return nullptr; }

  // For devices that copy beside a step. mark() is a point among the calls of run() that numbers
  // tell apart; begin_import() copies once the newest mark with that number has been reached, may
  // return before, and what run_step() queues comes behind it. `plain` may go away at once.
  virtual void mark(std::size_t /*number*/) {}
  virtual void begin_import(ValueId value, std::span<const std::byte> plain, std::byte* stored,
                            std::size_t /*mark*/) {
    import_value(value, plain, stored);
  }

  // Between the plain row-major form (of the value's dtype) on the host and the value's layout in
  // the arena. Sizes are checked: Error(kInput) names the value and both. May allocate; not for use
  // inside a step.
  virtual void import_value(ValueId value, std::span<const std::byte> plain, std::byte* stored) = 0;
  virtual void export_value(ValueId value, const std::byte* stored, std::span<std::byte> plain) = 0;
};

struct BackendOptions {
  int threads = 0;  // of a CPU; 0: all cores the process may use
  // The rest is for GPUs.
  int ordinal = 0;             // which of several
  bool tensor_floats = false;  // products of f32 may round their factors to TF32
  bool record_steps = true;    // as a CUDA graph, where that works
};

class Backend {
 public:
  virtual ~Backend() = default;
  [[nodiscard]] virtual std::string_view name() const = 0;    // "cpu"
  [[nodiscard]] virtual std::string description() const = 0;  // "oneDNN 2.6.3, 2 threads, AVX-512"
  // Where its programs' addresses lie; null: in the host's memory.
  [[nodiscard]] virtual std::shared_ptr<DeviceMemory> memory() const { return nullptr; }
  // Of the device's memory, what context and libraries hold beside every arena.
  [[nodiscard]] virtual base::Bytes overhead_bytes() const { return 0; }
  // Chooses layouts and kernels, inserts reorder nodes, books workspaces. Node and value ids of the
  // input graph stay valid only by name. With `like`, persistent values take the layouts that
  // values of the same name have there, so that both programs work on the same bytes (evaluation
  // beside training). Throws Error(kInput) naming a node it has no kernel for, and why.
  [[nodiscard]] virtual std::unique_ptr<Program> prepare(const graph::Graph& graph,
                                                         const Program* like = nullptr) const = 0;

  // Sums over ranks in this device's memory. One rank makes the id of a group; each then joins,
  // which returns when all have. `patience` is asked then and, by the group, while it lives. A
  // backend whose arena lies in the host's memory has none (the communicator adds up there).
  // Error(kDevice) says why a group cannot be made.
  [[nodiscard]] virtual std::string make_group_id() const;
  [[nodiscard]] virtual std::unique_ptr<DeviceSums> join_group(const std::string& id, int rank,
                                                               int world_size,
                                                               const Patience& patience) const;
};

// Truth for tests: every op by plain loops in double precision. Each float is stored as f64
// (the stored form is a row-major array of double; i32 and u8 stay as they are), so bytes are twice
// the CPU's. Results that are bf16 are rounded to it.
[[nodiscard]] std::unique_ptr<Backend> make_reference_backend();

// oneDNN, with blocked layouts. Throws Error(kDevice) saying why when this build has no oneDNN.
[[nodiscard]] std::unique_ptr<Backend> make_cpu_backend(const BackendOptions& options);

// cuDNN, cuBLAS and own kernels, in a module of its own (kernels/cuda_module.h). Throws
// Error(kDevice) saying why there is no module, driver or GPU.
[[nodiscard]] std::unique_ptr<Backend> make_cuda_backend(const BackendOptions& options);

// "cpu", "reference", "cuda". Throws Error(kInput) listing the names.
[[nodiscard]] std::unique_ptr<Backend> make_backend(std::string_view name,
                                                    const BackendOptions& options);

}  // namespace reprise::kernels
