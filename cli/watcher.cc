#include "cli/watcher.h"

#include <sstream>

#include "cli/report.h"
#include "cli/waiting.h"
#include "fmt/format.h"

#include "runtime/progress.h"

namespace reprise::cli {

struct Watcher::Impl {
  Impl(Context& run_context, const std::string& what)
      : context(run_context),
        line(run_context.err, {.terminal = run_context.err_is_terminal}),
        waiting(run_context, what) {}

  void print(const std::string& text) {
    waiting.stop();
    std::istringstream lines(text);
    for (std::string each; std::getline(lines, each);) line.print(each);
  }
  void planned(const api::PlanReport& report) {
    context.begin_stoppable();  // planning is over
    print(report.model + ", planned before the first step:\n" + plan_lines(report));
  }
  void stepped(const api::TrainHooks::Step& step) {
    line.update({.step = step.step,
                 .total_steps = step.total_steps,
                 .loss = step.loss,
                 .items_per_second = step.items_per_second,
                 .memory_bytes = step.arena_bytes});
  }
  void evaluated(const api::TrainHooks::Evaluated& test) {
    print(fmt::format("step {}: test accuracy {:.2f} %, loss {:.4f}", test.step,
                      test.accuracy * 100.0, test.loss));
  }

  Context& context;
  runtime::ProgressLine line;
  Waiting waiting;  // until there is something else to say
};

Watcher::Watcher(Context& context, const std::string& what)
    : impl_(std::make_unique<Impl>(context, what)) {}
Watcher::~Watcher() = default;

api::TrainHooks Watcher::hooks() {
  Impl* impl = impl_.get();
  return {.planned = [impl](const api::PlanReport& report) { impl->planned(report); },
          .stepped = [impl](const api::TrainHooks::Step& step) { impl->stepped(step); },
          .evaluated = [impl](const api::TrainHooks::Evaluated& test) { impl->evaluated(test); },
          .note = [impl](const std::string& text) { impl->print(text); },
          .stop = impl->context.stop};
}

void Watcher::finish() {
  impl_->waiting.stop();
  impl_->line.finish();
}

}  // namespace reprise::cli
