#pragma once

// The small op graphs of tests/data/op_graphs.json, whose optima are known.

#include <fstream>
#include <string>

#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "schedule/problem.h"

namespace reprise::planner::testing {

using schedule::TensorKind;

inline schedule::Problem read_problem(const nlohmann::json& graph) {
  schedule::Problem problem;
  problem.name = graph.at("id");
  for (const auto& t : graph.at("tensors")) {
    const std::string kind = t.at(1);
    problem.tensors.push_back({fmt::format("t{}", problem.tensors.size()), t.at(0),
                               kind == "input"    ? TensorKind::kResident
                               : kind == "output" ? TensorKind::kOutput
                                                  : TensorKind::kTemp});
  }
  for (const auto& o : graph.at("ops")) {
    schedule::Op op;
    op.name = fmt::format("op{}", problem.ops.size());
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

inline nlohmann::json graphs() {
  std::ifstream file(REPRISE_TEST_DATA "/op_graphs.json");
  return nlohmann::json::parse(file).at("graphs");
}

}  // namespace reprise::planner::testing
