// reprise solve on buffers with lifetimes: packing alone.

#include <algorithm>

#include "cli/solve_forms.h"
#include "cli/table.h"
#include "cli/waiting.h"
#include "fmt/format.h"

#include "base/error.h"
#include "planner/offsets.h"

namespace reprise::cli {
namespace {

void refuse_flags_of_other_forms(const SolveFlags& flags) {
  if (flags.planner_given || flags.order_given) {
    throw base::input_error("{}: buffers are packed alone; --planner and --order have no meaning",
                            flags.file);
  }
  if (flags.options.budget.kind == api::Budget::Kind::kPercent) {
    throw base::input_error("--budget {}: there is nothing to keep or recompute; give bytes",
                            flags.budget_text);
  }
}

}  // namespace

int solve_form(const SolveInput& input, const planner::BuffersFile& file, Context& context) {
  const SolveFlags& flags = input.flags;
  refuse_flags_of_other_forms(flags);
  const planner::PackingOptions packing{.alignment = file.alignment, .search_nodes = 2'000'000};
  const planner::Packing packed = while_waiting(context, "packing " + flags.file, [&] {
    return planner::pack(file.buffers, packing, flags.options.stop);
  });
  if (flags.options.budget.kind == api::Budget::Kind::kBytes &&
      packed.arena > flags.options.budget.bytes) {
    return report_no_plan(input, {.floor = packed.arena, .bound_by = "", .largest = {}}, context);
  }
  if (context.json) {
    print_flat(context, {{"name", input.problem.name},
                         {"feasible", true},
                         {"arena", packed.arena},
                         {"peak", packed.arena},
                         {"floor", packed.arena},
                         {"lower_bound", packed.lower_bound},
                         {"optimal", packed.arena == packed.lower_bound},
                         {"fragmentation", packed.fragmentation()},
                         {"alignment", file.alignment},
                         {"offsets", packed.offsets}});
    return kOk;
  }
  Facts facts;
  facts.add("buffers", grouped(static_cast<std::int64_t>(file.buffers.size())));
  facts.add("arena", exact_bytes(packed.arena));
  facts.add("live sum", exact_bytes(packed.lower_bound));
  facts.add("fragmentation", fmt::format("{:.2f} %", packed.fragmentation() * 100.0));
  context.out << input.problem.name << "\n" << facts.text();
  return kOk;
}

}  // namespace reprise::cli
