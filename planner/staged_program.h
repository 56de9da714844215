#pragma once

// A lower bound on the cost of every plan within a budget: the linear relaxation of a staged model
// (after Checkmate, Jain et al. 2020), made so that it holds for whatever a plan may do.
//
// Anchors are ops a_0, a_1, ... of which each execution of the problem runs a_0 for the first time
// before a_1 for the first time, and so on: all ops when the order is fixed; along a path of the
// data when it is free, since a_(t+1) reads, through others, what a_t makes. Stage t lies between
// the first runs of a_(t-1) and a_t, with the latter; stage T follows the last anchor. Of an
// execution, let
//
//   E[t,k] = 1 when op k runs in stage t                 S[t,u] = 1 when u is there as stage t
//   begins
//                                                                 and is read later
// Then
//   E[t,a_t] = 1, and E[t,a_s] = 0 for t < s             what an anchor is
//   E[t,k] <= S[t,u] + E[t,p]   u read by k, made by p   p not a_t, whose run ends the stage
//   S[t+1,u] <= S[t,u] + E[t,p]
//   sum over t of E[t,k] >= 1   k must run               <= 1   k runs once
//   bytes of a_t's inputs, outputs, workspace, less what is in place, and of all other u with
//   S[t+1,u] = 1 <= budget                               they are there while a_t runs
//   outputs of ops that run once stay
//
// and the execution costs at least sum of cost[k] E[t,k]: runs of one op in one stage count once.
// Runs whose outputs no later run needs are left out; without them the execution is cheaper still.
// So with E and S from [0, 1] the optimum of the program is below the cost of each execution. Any
// subsequence of anchors will do as well, which keeps the programs of larger problems small.

#include <optional>
#include <vector>

#include "planner/linear_program.h"
#include "planner/structure.h"

namespace reprise::planner {

// At most `most` anchors, in order; see above.
[[nodiscard]] std::vector<Index> choose_anchors(const Problem& problem, OrderFreedom freedom,
                                                std::size_t most);

struct StagedProgram {
  LinearProgram program;
  double cost_unit = 1;  // costs of the program are in this unit, a power of two
};

// Nothing when it would have more than `most_columns`, or numbers that doubles do not hold exactly.
[[nodiscard]] std::optional<StagedProgram> make_staged_program(const Problem& problem,
                                                               OrderFreedom freedom, Bytes budget,
                                                               const std::vector<Index>& anchors,
                                                               std::size_t most_columns);

}  // namespace reprise::planner
