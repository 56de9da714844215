// Small op graphs whose cheapest order within a budget of live bytes is known.

#include <fstream>

#include "gtest/gtest.h"
#include "nlohmann/json.hpp"

#include "planner/annealer.h"
#include "planner/candidates.h"
#include "planner/strategy.h"

namespace reprise::planner {
namespace {

using schedule::TensorKind;

Problem read_problem(const nlohmann::json& graph) {
  Problem problem;
  problem.name = graph.at("id");
  for (const auto& t : graph.at("tensors")) {
    const std::string kind = t.at(1);
    problem.tensors.push_back({"t" + std::to_string(problem.tensors.size()), t.at(0),
                               kind == "input"    ? TensorKind::kResident
                               : kind == "output" ? TensorKind::kOutput
                                                  : TensorKind::kTemp});
  }
  for (const auto& o : graph.at("ops")) {
    schedule::Op op;
    op.name = "op" + std::to_string(problem.ops.size());
    for (std::size_t t : o.at(0)) op.inputs.emplace_back(t);
    for (std::size_t t : o.at(1)) op.outputs.emplace_back(t);
    op.workspace = o.at(2);
    op.cost = o.at(3);
    op.recomputable = o.at(4) == 1;
    if (o.at(5) >= 0) op.inplace.push_back({o.at(5), 0, true});
    problem.ops.push_back(op);
  }
  return problem;
}

nlohmann::json graphs() {
  std::ifstream file(REPRISE_TEST_DATA "/op_graphs.json");
  return nlohmann::json::parse(file).at("graphs");
}

TEST(KnownOptima, LocalSearchNeverBeatsThemAndReachesNearlyAll) {
  int cases = 0, reached = 0;
  for (const auto& graph : graphs()) {
    const Problem problem = read_problem(graph);
    ASSERT_NO_THROW(schedule::validate(problem));
    const Structure structure(problem);
    for (const auto& c : graph.at("cases")) {
      SCOPED_TRACE(problem.name + " within " + c.at(0).dump());
      AnnealOptions options;
      options.target = c.at(0);
      options.moves = 20'000;
      const AnnealResult found = anneal(structure, program_order(problem), options);
      ++cases;
      const bool fits = found.live_peak <= options.target;
      const auto traced = schedule::trace_order(problem, found.order);
      ASSERT_FALSE(traced.fault) << traced.fault->message;
      EXPECT_EQ(schedule::profile_memory(traced.trace).peak, found.live_peak);
      EXPECT_EQ(traced.trace.cost, found.cost);
      if (c.at(1).is_null()) {
        EXPECT_FALSE(fits) << "planned within a budget known to be too small";
        reached += !fits;
      } else {
        if (fits) {
          EXPECT_GE(found.cost, c.at(1).get<std::int64_t>());
        }
        reached += fits && found.cost == c.at(1).get<std::int64_t>();
      }
    }
  }
  RecordProperty("reached", reached);
  // 159 of 162 when this was written; moves of another kind may lose one or two.
  EXPECT_GE(reached, cases * 95 / 100) << reached << " of " << cases;
}

TEST(KnownOptima, NoStrategyReportsACostBelowThem) {
  for (const auto& graph : graphs()) {
    const Problem problem = read_problem(graph);
    Request request;
    request.problem = &problem;
    request.cache = make_plan_cache();
    request.packing.alignment = 1;
    request.search_moves = 20;
    for (const auto& c : graph.at("cases")) {
      request.budget = c.at(0);
      for (const Strategy* strategy : all_strategies()) {
        SCOPED_TRACE(problem.name + " within " + c.at(0).dump() + " by " +
                     std::string(strategy->name()));
        const Outcome outcome = strategy->plan(request);
        if (const Plan* plan = std::get_if<Plan>(&outcome)) {
          ASSERT_FALSE(c.at(1).is_null());
          EXPECT_GE(plan->cost, c.at(1).get<std::int64_t>());
        }
      }
    }
  }
}

}  // namespace
}  // namespace reprise::planner
