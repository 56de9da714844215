#pragma once

// The flags that commands share, in one place: names, help, checks, and what they mean to the API.

#include <memory>
#include <string>

#include "CLI/CLI.hpp"

#include "api/devices.h"
#include "api/trainer.h"

namespace reprise::cli {

// What the flags said, as options of a training run. The optimizer is put together last, since its
// flags depend on each other.
struct Flags {
  api::TrainOptions train{};
  std::string budget_text = "unlimited";  // as the user wrote it, for messages
  bool data_given = false;
  std::int64_t comm_timeout_seconds = 30;
  bool device_given = false;
  std::optional<std::string> gpu_flag;       // one that only a GPU knows
  bool gpu_given = false;                    // by its number
  std::optional<api::DeviceList> devices{};  // of this process, where --devices was given

  struct OptimizerFlags {
    std::string name = "momentum";
    std::optional<double> rate{}, momentum{}, weight_decay{};
    graph::LearningRate::Kind schedule = graph::LearningRate::Kind::kConstant;
    std::int64_t period_steps = 0;
    std::optional<double> factor{};
    std::int64_t warmup_steps = 0;
    double clip_norm = 0;
    bool skip_nonfinite = false;
  } optimizer{};
  std::optional<std::int64_t> steps{}, epochs{};
};

// Flags of one group; each checks its value at once and throws Error(kInput) naming flag, value and
// rule. `flags` must outlive the parse.
void add_model_flags(CLI::App& app, Flags& flags);      // --model --data --batch --image ...
void add_optimizer_flags(CLI::App& app, Flags& flags);  // --optimizer --lr ...
void add_planner_flags(CLI::App& app, Flags& flags);    // --budget --planner --segments
void add_device_flags(CLI::App& app, Flags& flags);     // --device --threads --seed
void add_costs_flag(CLI::App& app, Flags& flags);       // --costs; the cache where it is not given
void add_ranks_flags(CLI::App& app, Flags& flags);      // --devices --comm-timeout --bucket ...
void add_bucket_flag(CLI::App& app, Flags& flags);      // --bucket
void add_run_flags(CLI::App& app, Flags& flags);        // --steps --epochs --save --resume ...
void add_trace_flag(CLI::App& app, Flags& flags);       // --trace

// Checks what only all flags together can tell, and completes `flags.train`.
[[nodiscard]] api::TrainOptions complete_flags(const Flags& flags);

// One flag with a value that `take` parses and checks.
CLI::Option* add_value(CLI::App& app, const std::string& name, const std::string& type,
                       const std::string& help, std::function<void(const std::string&)> take);

}  // namespace reprise::cli
