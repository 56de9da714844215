#pragma once

// Random small problems and random orders for them, many of them with recomputation.

#include <random>
#include <string>

#include "fmt/format.h"

#include "schedule/problem.h"

namespace reprise::schedule::testing {

inline std::int64_t draw(std::mt19937_64& random, std::int64_t low, std::int64_t high) {
  return low + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(high - low + 1));
}

inline TensorKind draw_made_kind(std::mt19937_64& random) {
  return draw(random, 0, 5) == 0 ? TensorKind::kOutput : TensorKind::kTemp;
}

// In-place pairs whose bytes may or may not be equal; forced ones only where validate() allows
// them.
inline void add_random_pairs(std::mt19937_64& random, Problem& problem, Op& op) {
  for (std::size_t output = 0; output < op.outputs.size(); ++output) {
    if (op.inputs.empty() || draw(random, 0, 2) > 0) continue;
    const auto input =
        static_cast<std::size_t>(draw(random, 0, static_cast<std::int64_t>(op.inputs.size()) - 1));
    graph::InplacePair pair{static_cast<std::int32_t>(input), static_cast<std::int32_t>(output),
                            draw(random, 0, 3) == 0};
    const Tensor& from = problem.tensors[op.inputs[input]];
    if (from.kind == TensorKind::kResident) pair.forced = false;
    for (const graph::InplacePair& other : op.inplace) {
      if (op.inputs[static_cast<std::size_t>(other.input)] == op.inputs[input]) pair.forced = false;
    }
    if (pair.forced || draw(random, 0, 1) == 0) {
      problem.tensors[op.outputs[output]].bytes = from.bytes;
    }
    op.inplace.push_back(pair);
  }
}

inline Problem draw_problem(std::mt19937_64& random) {
  Problem problem;
  const std::int64_t initial = draw(random, 1, 4);
  for (std::int64_t i = 0; i < initial; ++i) {
    problem.tensors.push_back(
        {fmt::format("in{}", i), draw(random, 0, 9),
         draw(random, 0, 1) == 0 ? TensorKind::kResident : TensorKind::kInput});
  }
  const std::int64_t ops = draw(random, 1, 10);
  for (std::int64_t i = 0; i < ops; ++i) {
    Op op;
    op.name = fmt::format("op{}", i);
    op.workspace = draw(random, 0, 2) == 0 ? draw(random, 1, 9) : 0;
    op.cost = draw(random, 0, 9);
    op.recomputable = draw(random, 0, 3) > 0;
    const std::int64_t inputs = draw(random, 0, 3);
    for (std::int64_t k = 0; k < inputs; ++k) {
      op.inputs.push_back(TensorId(static_cast<std::size_t>(
          draw(random, 0, static_cast<std::int64_t>(problem.tensors.size()) - 1))));
    }
    const std::int64_t outputs = draw(random, 1, 2);
    for (std::int64_t k = 0; k < outputs; ++k) {
      op.outputs.push_back(problem.tensors.push_back(
          {fmt::format("t{}.{}", i, k), draw(random, 0, 9), draw_made_kind(random)}));
    }
    add_random_pairs(random, problem, op);
    problem.ops.push_back(std::move(op));
  }
  return problem;
}

// Program order with random earlier recomputable ops put in again; now and then with an op left
// out. May be no execution of the problem at all.
inline Order draw_order(std::mt19937_64& random, const Problem& problem) {
  Order order;
  const std::int64_t again = draw(random, 0, 3);  // chance of a repeat, in quarters
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    while (i > 0 && draw(random, 0, 3) < again && draw(random, 0, 2) > 0) {
      const OpId op(static_cast<std::size_t>(draw(random, 0, static_cast<std::int64_t>(i) - 1)));
      if (problem.ops[op].recomputable || draw(random, 0, 30) == 0) order.push_back(op);
    }
    if (draw(random, 0, 30) > 0) order.push_back(OpId(i));
  }
  return order;
}

}  // namespace reprise::schedule::testing
