#pragma once

// Problems as JSON (docs/problem_format.md): an op graph, a chain, a uniform chain, buffers to
// pack.

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "planner/chain/solve.h"
#include "schedule/problem.h"
#include "schedule/simulate.h"

namespace reprise::planner {

struct OpGraphFile {
  schedule::Problem problem;
  Bytes alignment = 1;  // of offsets, where they are asked for
  // Ops that make an output and could be run again. Model G overwrites the output then, which must
  // stay; `problem` says that they run once, which admits fewer plans.
  std::vector<schedule::OpId> held_to_one_run;
  // Of each op, the entry of its `choices` that each algorithm of the problem is; 0 without any.
  base::IdVector<schedule::OpId, std::vector<std::size_t>> choices;
  bool offers_choices = false;  // does any op list them?
};

struct ChainFile {
  ChainProblem chain;
};

struct UniformChainFile {
  UniformChain chain;
};

// Steps of one cost to reverse with so many states kept, the first among them.
struct RevolveFile {
  std::int64_t steps = 0;
  std::int64_t checkpoints = 0;
};

struct BuffersFile {
  std::vector<schedule::Buffer> buffers;
  Bytes alignment = 1;
};

struct ProblemFile {
  std::string name;
  std::variant<OpGraphFile, ChainFile, UniformChainFile, RevolveFile, BuffersFile> content;
  std::vector<std::string> ignored;  // names of fields without a meaning here
};

// Throws Error(kInput) naming the field, op or tensor, both values and the rule.
[[nodiscard]] ProblemFile parse_problem(std::string_view text);

}  // namespace reprise::planner
