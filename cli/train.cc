// reprise train: a model, a data set and a budget become trained weights.

#include <chrono>
#include <memory>

#include "cli/command.h"
#include "cli/flags.h"
#include "cli/ranks.h"
#include "cli/report.h"
#include "cli/table.h"
#include "cli/watcher.h"
#include "fmt/format.h"

#include "api/trainer.h"

namespace reprise::cli {
namespace {

// How far the measured time is from the planned one.
double deviation(double measured, double planned) {
  return planned > 0 ? measured / planned - 1.0 : 0.0;
}

std::string summary(const api::TrainReport& report) {
  Facts facts;
  facts.add("steps", report.resumed_from
                         ? fmt::format("{}, after step {}", report.steps, *report.resumed_from)
                         : fmt::format("{}", report.steps));
  if (!report.losses.empty()) {
    facts.add("loss", fmt::format("{:.4f} at first, {:.4f} at last", report.losses.front(),
                                  report.losses.back()));
  }
  if (report.grad_norm) {
    facts.add("gradients", fmt::format("norm {:.4g} at last; {} steps were skipped",
                                       *report.grad_norm, report.skipped_steps));
  }
  if (report.test_accuracy) {
    facts.add("test", fmt::format("accuracy {:.2f} %, loss {:.4f}", *report.test_accuracy * 100.0,
                                  report.test_loss.value_or(0)));
  }
  facts.add("step time",
            fmt::format("planned {:.2f} ms, measured {:.2f} ms a step ({:+.0f} %), and {:.2f} ms "
                        "for its data",
                        report.predicted_ms_per_step, report.ms_per_step,
                        deviation(report.ms_per_step, report.predicted_ms_per_step) * 100.0,
                        report.data_ms_per_step));
  facts.add("costs", api::cost_origin_text(report.plan.costs) +
                         (report.plan.costs.measured ? "" : "; 'reprise profile' measures them"));
  facts.add("peak", exact_bytes(report.peak_bytes_measured) + ", measured");
  facts.add("budget", exact_bytes(report.plan.budget_bytes));
  facts.add("beside it", exact_bytes(report.process_overhead_bytes) +
                             " of the process: program, libraries, data set");
  if (report.device_overhead_bytes) {
    facts.add("", exact_bytes(*report.device_overhead_bytes) +
                      " of the GPU: context, libraries, sums over ranks");
  }
  facts.add("state hash", hash_text(report.state_hash));
  return facts.text();
}

// A rank but the first does the same, and leaves the talking to rank 0; errors are told by all.
int run_silently(const api::TrainOptions& options, Context& context) {
  api::TrainHooks hooks;
  hooks.stop = context.stop;
  hooks.planned = [&](const api::PlanReport&) { context.begin_stoppable(); };
  const auto outcome = api::train(options, hooks);
  return std::holds_alternative<planner::Infeasible>(outcome) ? kInfeasible : kOk;
}

int run_train(const Flags& flags, Context& context) {
  api::TrainOptions options = complete_flags(flags);
  const std::chrono::seconds timeout(flags.comm_timeout_seconds);
  if (flags.devices) {
    require_one_rank(fmt::format("--devices {}:{}", flags.devices->device, flags.devices->count));
  } else {
    options.session.ranks = join_ranks(context, timeout, flags.gpu_given, options.session);
  }
  if (options.session.ranks && options.session.ranks->rank() != 0)
    return run_silently(options, context);
  if (!flags.data_given) context.err << "no --data given: training on synthetic data\n";
  Watcher watcher(context, "planning " + options.model);
  const auto outcome =
      flags.devices ? api::train_on_devices(options, *flags.devices, timeout, watcher.hooks())
                    : api::train(options, watcher.hooks());
  watcher.finish();
  if (const auto* infeasible = std::get_if<planner::Infeasible>(&outcome)) {
    return report_infeasible(context, *infeasible, options.model, options.session.plan.planner,
                             flags.budget_text);
  }
  const auto& report = std::get<api::TrainReport>(outcome);
  if (context.json) {
    context.print(train_document(report));
  } else {
    context.out << report.plan.model
                << (report.stopped_early ? ", stopped early:\n" : ", trained:\n")
                << summary(report);
  }
  return kOk;
}

}  // namespace

Action add_train(CLI::App& app) {
  const auto flags = std::make_shared<Flags>();
  add_model_flags(app, *flags);
  add_run_flags(app, *flags);
  add_planner_flags(app, *flags);
  add_device_flags(app, *flags);
  add_costs_flag(app, *flags);
  add_optimizer_flags(app, *flags);
  add_ranks_flags(app, *flags);
  add_trace_flag(app, *flags);
  app.description(
      "Plans a training step inside the budget, then trains. The result does not depend on the\n"
      "budget or the planner, not by a bit: recomputation only costs time.\n"
      "\n"
      "Started on several ranks ('reprise launch', torchrun), it shares each batch among them;\n"
      "with --devices, among several devices of one process. With --device cuda each rank takes\n"
      "the GPU with its number on its machine (LOCAL_RANK).\n"
      "\n"
      "Ctrl-C ends the run after the current step, with a snapshot when --save is given; a second\n"
      "one, or the first one while it still plans, ends it at once.");
  app.footer(
      "\nExamples:\n"
      "  reprise train --model resnet20 --data fashion-mnist --batch 64 --budget 40%\n"
      "  reprise train --model lstm --data text:book.txt --seq-len 256 --hidden 256 \\\n"
      "                --optimizer adam --budget floor --steps 500 --save run\n"
      "  reprise train --model lstm --data text:book.txt --seq-len 256 --hidden 256 \\\n"
      "                --optimizer adam --budget floor --steps 900 --save run --resume run");
  return [flags](Context& context) { return run_train(*flags, context); };
}

}  // namespace reprise::cli
