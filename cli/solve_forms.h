#pragma once

// reprise solve, one function a form of the problem (solve_graph.cc, solve_chain.cc,
// solve_buffers.cc).

#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/report.h"

#include "api/solve.h"

namespace reprise::cli {

using base::Bytes;

struct SolveFlags {
  std::string file;
  api::SolveOptions options{};
  std::string budget_text = "unlimited";  // as the user wrote it
  bool budget_given = false, planner_given = false, order_given = false;
  double seconds = 0;  // 0: no limit
};

struct SolveInput {
  const SolveFlags& flags;
  const planner::ProblemFile& problem;
};

[[nodiscard]] int solve_form(const SolveInput& input, const planner::OpGraphFile& file,
                             Context& context);
[[nodiscard]] int solve_form(const SolveInput& input, const planner::ChainFile& file,
                             Context& context);
[[nodiscard]] int solve_form(const SolveInput& input, const planner::UniformChainFile& file,
                             Context& context);
[[nodiscard]] int solve_form(const SolveInput& input, const planner::RevolveFile& file,
                             Context& context);
[[nodiscard]] int solve_form(const SolveInput& input, const planner::BuffersFile& file,
                             Context& context);

// One field a line, its value unbroken: a schedule of 100,000 instructions stays one line.
void print_flat(Context& context, const Json& document);
// The error of DESIGN.md with "feasible": false and "floor" beside it; returns kInfeasible.
[[nodiscard]] int report_no_plan(const SolveInput& input, const planner::Infeasible& infeasible,
                                 Context& context);
[[nodiscard]] Json budget_document(const SolveInput& input, Bytes budget);       // or null
[[nodiscard]] std::string budget_words(const SolveInput& input, Bytes budget);   // or unlimited
[[nodiscard]] std::string cost_words(std::int64_t cost, std::int64_t keep_all);  // with overhead
// "optimal: proven", or the bound and the gap.
[[nodiscard]] std::string certificate_text(const api::Certificate& certificate);

}  // namespace reprise::cli
