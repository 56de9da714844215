#include "planner/cost_bound.h"

#include <algorithm>
#include <cmath>

#include "planner/staged_program.h"
#include "planner/turn_bound.h"

namespace reprise::planner {
namespace {

using schedule::TensorKind;

// The finest one within the effort.
std::optional<StagedProgram> staged_program_within(const Problem& problem, OrderFreedom freedom,
                                                   Bytes budget, const BoundOptions& options) {
  if (problem.ops.size() > options.most_ops) return std::nullopt;
  for (std::size_t most = problem.ops.size(); most > 0; most /= 2) {
    auto staged = make_staged_program(problem, freedom, budget,
                                      choose_anchors(problem, freedom, most), options.most_columns);
    if (staged) return staged;
  }
  return std::nullopt;
}

}  // namespace

std::int64_t cost_bound(const Problem& problem, OrderFreedom freedom, Bytes budget,
                        const BoundOptions& options) {
  const Structure structure(problem, freedom);
  const std::int64_t required =
      cost_lower_bound(problem, freedom) + turn_bound(structure, budget, options.flow_effort);
  const auto staged = staged_program_within(problem, freedom, budget, options);
  if (!staged) return required;
  const auto multipliers =
      row_multipliers(staged->program, {.iterations = options.iterations, .stop = options.stop});
  if (!multipliers) return required;
  // Costs are whole numbers.
  const double bound = dual_bound(staged->program, *multipliers) * staged->cost_unit;
  return std::max(required, static_cast<std::int64_t>(std::ceil(bound)));
}

Bytes memory_bound(const Problem& problem, OrderFreedom freedom) {
  const Structure structure(problem, freedom);
  const auto at = [](Index i) { return static_cast<std::size_t>(i); };
  Bytes resident = 0;
  for (const schedule::Tensor& tensor : problem.tensors) {
    if (tensor.kind == TensorKind::kResident) resident += tensor.bytes;
  }
  Bytes bound = resident;
  std::vector<Index> counted_for(at(structure.tensors()), -1);
  Bytes outputs = 0;  // fixed order: of ops before this one that run once
  for (Index k = 0; k < structure.ops(); ++k) {
    const schedule::Op& op = structure.op(k);
    Bytes bytes = resident + op.least_workspace();
    Bytes due = outputs;
    const auto count = [&](TensorId id, bool input) {
      const auto u = static_cast<Index>(id.index());
      const schedule::Tensor& tensor = structure.tensor(u);
      if (counted_for[at(u)] == k || tensor.kind == TensorKind::kResident) return;
      counted_for[at(u)] = k;
      bytes += tensor.bytes;
      // Among the outputs before it already.
      if (input && tensor.kind == TensorKind::kOutput && structure.producer(u) >= 0 &&
          !structure.op(structure.producer(u)).recomputable) {
        due -= tensor.bytes;
      }
    };
    for (const TensorId id : op.inputs) count(id, true);
    for (const TensorId id : op.outputs) count(id, false);
    std::vector<bool> taken(op.outputs.size(), false);
    for (const graph::InplacePair& pair : op.inplace) {
      if (taken[at(pair.output)]) continue;
      taken[at(pair.output)] = true;
      bytes -= structure.tensor(static_cast<Index>(op.outputs[at(pair.output)].index())).bytes;
    }
    if (structure.required(k)) {
      bound = std::max(bound, freedom == OrderFreedom::kFixed ? bytes + due : bytes);
    }
    if (op.recomputable) continue;
    for (const TensorId id : op.outputs) {
      if (problem.tensors[id].kind == TensorKind::kOutput) outputs += problem.tensors[id].bytes;
    }
  }
  return bound;
}

}  // namespace reprise::planner
