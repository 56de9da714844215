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

#include "graph/autodiff.h"
#include "models/model.h"
#include "planner/strategy.h"
#include "runtime/executor.h"
#include "schedule/schedule.h"

namespace reprise::api {

using base::Bytes;

// A budget as a user says it.
struct Budget {
  enum class Kind : std::uint8_t { kBytes, kPercent, kFloor, kUnlimited } kind = Kind::kUnlimited;
  Bytes bytes = 0;
  double percent = 0;  // of keep_all_bytes
};
// "300MiB", "40%", "floor", "unlimited". Throws Error(kInput) for 0, negative and nonsense.
[[nodiscard]] Budget parse_budget(std::string_view text);

struct PlanOptions {
  std::string planner = "auto";
  Budget budget{};
  int segments = 0;
  std::uint64_t seed = 1;
};

// The figures of `reprise plan --json` (DESIGN.md fixes the names).
struct PlanReport {
  std::string model, planner;
  std::int64_t nodes = 0;
  Bytes budget_bytes = 0, peak_bytes = 0, floor_bytes = 0, keep_all_bytes = 0;
  std::int64_t cost_ns = 0, keep_all_cost_ns = 0, lower_bound_ns = 0;
  double overhead = 0, gap = 0, fragmentation = 0;
  std::int64_t recomputed_nodes = 0;
  double plan_ms = 0;
};

struct PlannedTraining {
  schedule::PlannedStep step;
  PlanReport report;
};
// Prepared graph + options -> verified schedule, or why not. Shared by every command.
[[nodiscard]] std::variant<PlannedTraining, planner::Infeasible> plan_step(
    const graph::PreparedGraph& prepared, const PlanOptions& options);

struct SessionOptions {
  std::string device = "cpu";  // "cpu", "reference"
  int threads = 0;
  PlanOptions plan{};
  std::uint64_t seed = 1;  // of initial values and random ops
  bool debug = false;      // executor's debug mode
};

// One training step (and, with an evaluation model, one evaluation step) over one arena within the
// budget.
class Session {
 public:
  // Throws Error(kInput) for faulty graphs; returns the infeasible answer as a value.
  [[nodiscard]] static std::variant<std::unique_ptr<Session>, planner::Infeasible> create(
      const models::Model& training, const models::Model* evaluation,
      const graph::TrainingOptions& options, const SessionOptions& session);
  ~Session();

  // Inputs by name, plain row-major; Error(kInput) names input, bytes expected and given.
  void set_input(std::string_view name, std::span<const std::byte> plain);
  // Runs one training step and returns its loss. The step counter advances.
  float step();
  // Any fetched output of the last training step, or a persistent value, as plain bytes.
  [[nodiscard]] std::vector<std::byte> read(std::string_view name) const;
  void write(std::string_view name, std::span<const std::byte> plain);  // persistent values

  struct Evaluation {
    float loss = 0;
    std::int64_t correct = 0;
  };
  void set_evaluation_input(std::string_view name, std::span<const std::byte> plain);
  Evaluation evaluate();

  [[nodiscard]] std::uint64_t steps_done() const;
  void set_steps_done(std::uint64_t steps);  // when resuming
  [[nodiscard]] const PlanReport& report() const;
  [[nodiscard]] const schedule::PlannedStep& planned() const;
  [[nodiscard]] Bytes peak_bytes_measured() const;
  // 64-bit hash (xxHash-like FNV-1a over plain bytes) of every persistent value, in name order.
  [[nodiscard]] std::uint64_t state_hash() const;
  // Persistent values: name, dtype, shape.
  struct Variable {
    std::string name;
    graph::DType dtype;
    graph::Shape shape;
    graph::Role role;
  };
  [[nodiscard]] const std::vector<Variable>& variables() const;
  [[nodiscard]] const std::vector<std::string>& warnings() const;

 private:
  Session();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::api
