#pragma once

// What other trainers embed: a graph, a budget and a device become a step that can be run.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/costs.h"
#include "api/plan.h"
#include "api/shared_plan.h"
#include "graph/autodiff.h"
#include "kernels/backend.h"
#include "models/model.h"
#include "planner/strategy.h"
#include "runtime/comm/communicator.h"
#include "runtime/executor.h"
#include "schedule/schedule.h"

namespace reprise::api {

struct SessionOptions {
  std::string device = "cpu";  // "cpu", "reference", "cuda"
  int threads = 0;
  // For GPUs: which of those the process sees, whether products of f32 may round their factors to
  // TF32, and whether the step is recorded as a CUDA graph where that works.
  int ordinal = 0;
  bool tensor_floats = false;
  bool record_steps = true;
  PlanOptions plan{};
  CostChoice costs{};  // analytic, unless asked for otherwise: a library reads no cache by itself
  std::shared_ptr<SharedPlan> shared_plan{};  // with other sessions of the same step; null: none
  std::uint64_t seed = 1;                     // of initial values and random ops
  bool debug = false;                         // executor's debug mode
  // A step that fails leaves everything as it was, inputs included: just call step() again. Costs a
  // copy of persistent values and inputs in host memory, PlanReport::persistent_bytes and the batch
  // beyond the budget, and the time to make it before each step.
  bool recoverable = false;
  // The ranks that train together, each with a session of its own; null: this one alone. Gradients
  // are then sums over the ranks, each loss times that rank's weight (set_gradient_weight), random
  // ops draw differently on each rank, and all sessions must be created and stepped alike. Rank 0's
  // initial values are everybody's.
  std::shared_ptr<runtime::comm::Communicator> ranks{};
  // Batch norm takes its statistics from the items of all ranks, as one rank with all of them would
  // (set_batch_parts); else each rank from its own. Alone it changes nothing.
  bool synchronise_batch_norm = false;
  Bytes bucket_bytes = graph::kDefaultBucketBytes;    // most that one sum over the ranks takes; > 0
  std::shared_ptr<const kernels::Backend> backend{};  // takes the place of what names the device
};

// The one that the options name; Error(kInput) or Error(kDevice) say why there is none.
[[nodiscard]] std::shared_ptr<const kernels::Backend> make_backend(const SessionOptions& options);

// One training step (and, with an evaluation model, one evaluation step) over one arena within the
// budget. One thread at a time uses it, for reads as well.
//
// A step that fails is an Error naming the op; the step counter, and with it the random draws, stay
// where they were. Without `recoverable` it may have updated some of the persistent values before:
// then steps, evaluations and reads of those values are refused until all of them are written again
// (from a snapshot). When it had updated none, only the inputs have to be set again.
class Session {
 public:
  // `evaluations` are inference forms of the same model in order of preference (say, at falling
  // batch sizes): the first whose forward-only schedule fits into the arena of training is taken.
  // May be empty. Throws Error(kInput) for faulty graphs, and when no evaluation form fits (names
  // the bytes); returns the infeasible answer as a value.
  [[nodiscard]] static std::variant<std::unique_ptr<Session>, planner::Infeasible> create(
      const models::Model& training, const std::vector<models::Model>& evaluations,
      const graph::TrainingOptions& options, const SessionOptions& session);
  ~Session();

  // Inputs by name, plain row-major; Error(kInput) names input, bytes expected and given.
  void set_input(std::string_view name, std::span<const std::byte> plain);
  // With ranks or micro-batches, before each step: the share of this rank's loss, that of the
  // micro-batch, in that of all (say, its items over all items). Has no effect without.
  void set_gradient_weight(float weight, std::int64_t micro_batch = 0);
  // With batch norm over ranks, before each step: the items of each rank in the micro-batch, in
  // order. Of its rows each has so many; those behind them are padding. Has no effect without.
  void set_batch_parts(std::span<const std::int64_t> items, std::int64_t micro_batch = 0);
  // Runs one training step and returns its loss (with ranks, that of this rank's items; with
  // micro-batches, the sum over them of weight times loss). The step
  // counter advances. A step takes the bytes of its inputs: Error(kInput) names one that was not
  // set since the last step or evaluation. `record` is told when what ran (api/trace.h draws it).
  float step(runtime::StepRecord* record = nullptr);
  // step() in two halves. In between, a device works while the host sets the next step's inputs
  // (where works_ahead(); elsewhere the first half has done everything), and nothing else is
  // called.
  void start_step(runtime::StepRecord* record = nullptr);
  float finish_step();
  [[nodiscard]] bool works_ahead() const;
  // The norm of all gradients of the last step together, before it was clipped; nothing where the
  // optimizer neither clips nor skips. Not finite, and the optimizer skips: that step has changed
  // nothing that persists.
  [[nodiscard]] std::optional<float> gradient_norm() const;
  // A persistent value as plain bytes, also during an evaluation; or a fetched output of the last
  // training step, until the next input is set or an evaluation begins (Error(kInput) after that).
  [[nodiscard]] std::vector<std::byte> read(std::string_view name) const;
  void write(std::string_view name, std::span<const std::byte> plain);  // persistent values

  // Carried recurrent state back to zeros (what `assign` writes; running statistics stay).
  void reset_carried_states();

  // Evaluation: begin, any number of (set_evaluation_input, evaluate), end. States that the
  // evaluation graph changes (carried recurrent state) start from zeros and get their training
  // values back at the end, so that evaluating never changes training.
  struct Evaluation {
    float loss = 0;  // mean over the counted labels of the batch
    std::int64_t correct = 0;
  };
  [[nodiscard]] bool can_evaluate() const;
  [[nodiscard]] std::size_t evaluation_index() const;  // which of `evaluations` was taken
  void begin_evaluation();
  void set_evaluation_input(std::string_view name, std::span<const std::byte> plain);
  [[nodiscard]] Evaluation evaluate();
  void end_evaluation();

  [[nodiscard]] std::uint64_t steps_done() const;
  void set_steps_done(std::uint64_t steps);  // when resuming
  [[nodiscard]] const PlanReport& report() const;
  [[nodiscard]] const schedule::PlannedStep& planned() const;
  [[nodiscard]] Bytes peak_bytes_measured() const;
  [[nodiscard]] Bytes arena_bytes() const;
  [[nodiscard]] bool arena_is_on_device() const;
  // Of a device's memory, what context, libraries and sums over ranks hold beside the arena.
  [[nodiscard]] Bytes device_overhead_bytes() const;
  // 64-bit FNV-1a hash over name and plain bytes of every persistent value, in name order.
  [[nodiscard]] std::uint64_t state_hash() const;
  struct Variable {  // a persistent value
    std::string name;
    graph::DType dtype;
    graph::Shape shape;
    graph::Role role;
    bool carried = false;  // recurrent state (what `assign` writes): a row for each item of a batch
  };
  [[nodiscard]] const std::vector<Variable>& variables() const;
  [[nodiscard]] const std::vector<std::string>& warnings() const;

 private:
  Session();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::api
