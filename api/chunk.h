#pragma once

// `--chunk auto`: how many time steps one node of a recurrent model computes, chosen together with
// the plan. Long chunks run fast and take much memory at a time; short ones cost more calls and
// leave the planner more to choose from.

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "api/plan.h"
#include "api/prepare.h"
#include "api/trainer.h"
#include "planner/strategy.h"

namespace reprise::api {

// At most six chunk lengths, ascending: divisors of the sequence length that are about evenly
// spread on a logarithmic scale and make at most 2,500 chunks. Sequence lengths with few divisors
// get powers of four besides.
[[nodiscard]] std::vector<std::int64_t> chunk_candidates(std::int64_t seq_len);

struct ChunkTrial {
  std::int64_t chunk = 0;
  bool feasible = false;
  std::int64_t cost_ns = 0;  // of its plan, when feasible
  Bytes peak_bytes = 0;      // of its plan, when feasible; else the floor of the planner
};

struct ChunkChoice {
  std::int64_t chunk = 0;
  // The same for all of them: a percentage is of what keeping everything takes with the default
  // chunk, the floor is the least of all.
  Budget budget{};
  std::vector<ChunkTrial> trials;
};

using PrepareChunk = std::function<PreparedTraining(std::int64_t chunk)>;

// Plans each candidate, with less search than a plan of its own gets unless `options` say how much,
// and takes the cheapest plan; of equally cheap ones the smaller, then the
// longer chunk. Infeasible where none fits: the answer of the one that needs least.
[[nodiscard]] std::variant<ChunkChoice, planner::Infeasible> choose_chunk(
    const std::vector<std::int64_t>& candidates, std::int64_t default_chunk,
    const PrepareChunk& prepare, PlanOptions options);

// The same for a run: the candidates of its sequence length and the model's default. Costs are
// measured for all of them or for none. Throws Error(kInput) for models without chunks.
[[nodiscard]] std::variant<ChunkChoice, planner::Infeasible> choose_chunk(
    const TrainOptions& options);

// What choose_chunk() plans for a run, one by one, the model's default first.
[[nodiscard]] std::vector<PreparedTraining> prepare_each_chunk(const TrainOptions& options);

// The run with the choice in place of `choose_chunk`.
void adopt(const ChunkChoice& choice, TrainOptions& options);

}  // namespace reprise::api
