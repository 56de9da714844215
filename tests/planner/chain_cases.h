#pragma once

// Chains with known answers (tests/data/chains.json) and random ones.
//
// The file: `chains` as {L, a, b, g, uf, ub, of, ob, ul, ol} with cases [budget, optimum over
// persistent schedules or null, optimum over all schedules where known]; `uniform` chains;
// `revolve` as [steps, checkpoints, repetitions, extra forwards]. Answers come from a dynamic
// programme on single bytes and a shortest path over all schedules, in another language, which
// agree where both apply; they share nothing with this planner.

#include <fstream>

#include "nlohmann/json.hpp"

#include "planner/chain/solve.h"
#include "planner/random.h"

namespace reprise::planner::chains {

inline nlohmann::json known() {
  std::ifstream file(REPRISE_TEST_DATA "/chains.json");
  return nlohmann::json::parse(file);
}

inline ChainProblem read(const nlohmann::json& c) {
  ChainProblem problem;
  problem.input = c.at("a").at(0);
  problem.input_gradient = c.at("g").at(0);
  for (std::size_t i = 0; i < c.at("L"); ++i) {
    Stage stage;
    stage.output = c.at("a").at(i + 1);
    stage.output_gradient = c.at("g").at(i + 1);
    stage.forward_cost = c.at("uf").at(i);
    stage.forward_workspace = c.at("of").at(i);
    stage.options.push_back({c.at("uf").at(i), c.at("ub").at(i), c.at("b").at(i + 1),
                             c.at("of").at(i), c.at("ob").at(i)});
    problem.stages.push_back(stage);
  }
  problem.loss_cost = c.at("ul");
  problem.loss_workspace = c.at("ol");
  return problem;
}

inline ChainProblem random_chain(std::int32_t length, std::int32_t most_options, Random& random) {
  ChainProblem problem;
  problem.input = random.below(6);
  problem.input_gradient = random.below(6);
  problem.loss_cost = random.below(3);
  problem.loss_workspace = random.below(3);
  for (std::int32_t i = 0; i < length; ++i) {
    Stage stage;
    stage.output = random.below(9);
    stage.output_gradient = random.below(9);
    stage.forward_cost = random.below(10);
    stage.forward_workspace = random.below(4);
    const std::int32_t options = 1 + random.below(most_options);
    for (std::int32_t k = 0; k < options; ++k) {
      stage.options.push_back({stage.forward_cost + random.below(2), random.below(12),
                               stage.output + random.below(16), random.below(4), random.below(4)});
    }
    problem.stages.push_back(stage);
  }
  return problem;
}

}  // namespace reprise::planner::chains
