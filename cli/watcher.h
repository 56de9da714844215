#pragma once

// What a person sees while a training run goes on: the plan, notes, evaluations and a progress bar,
// all on standard error.

#include <memory>
#include <string>

#include "cli/command.h"

#include "api/trainer.h"

namespace reprise::cli {

class Watcher {
 public:
  // `what` goes on before the plan is there: "planning mlp".
  Watcher(Context& context, const std::string& what);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Refer to this watcher, which must outlive the run.
  [[nodiscard]] api::TrainHooks hooks();
  void finish();  // leaves the bar's line

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace reprise::cli
