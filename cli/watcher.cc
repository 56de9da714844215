#include "cli/watcher.h"

#include "cli/report.h"
#include "fmt/format.h"

namespace reprise::cli {

struct Watcher::Impl {
  Context& context;

  void planned(const api::PlanReport& report) const {
    context.err << report.model << ", planned before the first step:\n" << plan_lines(report);
  }
  void stepped(const api::TrainHooks::Step& /*step*/) const {}
  void evaluated(const api::TrainHooks::Evaluated& test) const {
    context.err << fmt::format("step {}: test accuracy {:.2f} %, loss {:.4f}\n", test.step,
                               test.accuracy * 100.0, test.loss);
  }
  void note(const std::string& text) const { context.err << text << "\n"; }
};

Watcher::Watcher(Context& context) : impl_(std::make_unique<Impl>(Impl{context})) {}
Watcher::~Watcher() = default;

api::TrainHooks Watcher::hooks() {
  Impl* impl = impl_.get();
  return {.planned = [impl](const api::PlanReport& report) { impl->planned(report); },
          .stepped = [impl](const api::TrainHooks::Step& step) { impl->stepped(step); },
          .evaluated = [impl](const api::TrainHooks::Evaluated& test) { impl->evaluated(test); },
          .note = [impl](const std::string& text) { impl->note(text); },
          .stop = impl->context.stop};
}

void Watcher::finish() {}

}  // namespace reprise::cli
