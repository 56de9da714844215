#include "planner/exact_model.h"

#include <algorithm>
#include <bit>

namespace reprise::planner {
namespace {

constexpr std::size_t kMostBits = 64;

std::size_t at(int i) {
  return static_cast<std::size_t>(i);
}

}  // namespace

ExactModel::ExactModel(const Problem& problem, OrderFreedom order)
    : fixed_order_(order == OrderFreedom::kFixed) {
  using schedule::TensorKind;
  std::vector<Bits> bit(problem.tensors.size(), 0);
  std::size_t once = 0;
  for (const schedule::Op& op : problem.ops) once += op.recomputable ? 0 : 1;
  for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
    const schedule::Tensor& tensor = problem.tensors[TensorId(i)];
    if (tensor.kind == TensorKind::kResident) {
      fixed_bytes_ += tensor.bytes;
      continue;
    }
    if (bytes_.size() == kMostBits || once > kMostBits) return;
    bit[i] = Bits{1} << bytes_.size();
    bytes_.push_back(tensor.bytes);
    if (tensor.kind == TensorKind::kInput) at_start_ |= bit[i];
    if (tensor.kind == TensorKind::kOutput) outputs_ |= bit[i];
  }
  int next_once = 0;
  for (const schedule::Op& from : problem.ops) {
    ExactOp op;
    for (TensorId t : from.inputs) op.inputs |= bit[t.index()];
    for (TensorId t : from.outputs) {
      op.outputs |= bit[t.index()];
      op.output_bytes += problem.tensors[t].bytes;
    }
    for (std::size_t k = 0; k < from.choices(); ++k) op.algorithms.push_back(from.algorithm(k));
    op.recomputable = from.recomputable;
    if (!from.recomputable) {
      op.once = next_once++;
      all_once_ |= Bits{1} << op.once;
    }
    for (const graph::InplacePair& pair : from.inplace) {
      const TensorId input = from.inputs[at(pair.input)], output = from.outputs[at(pair.output)];
      const schedule::Tensor& tensor = problem.tensors[input];
      if (pair.forced) {
        op.destroyed |= bit[input.index()];
        op.forced_outputs |= bit[output.index()];
        op.forced_bytes += tensor.bytes;
        continue;
      }
      // The same rules as trace_order's.
      bool everywhere = true;
      for (std::size_t k = 0; k < from.inputs.size(); ++k) {
        everywhere =
            everywhere && (from.inputs[k] != input ||
                           std::any_of(from.inplace.begin(), from.inplace.end(),
                                       [&](const graph::InplacePair& p) {
                                         return at(p.input) == k && p.output == pair.output;
                                       }));
      }
      if (!everywhere || tensor.bytes != problem.tensors[output].bytes || tensor.bytes == 0 ||
          tensor.kind == TensorKind::kResident || tensor.kind == TensorKind::kOutput) {
        continue;
      }
      op.pairs.push_back({bit[input.index()], bit[output.index()], tensor.bytes});
    }
    ops_.push_back(std::move(op));
  }
  fits_ = true;
}

void ExactModel::restrict_to(int op, std::int32_t choice) {
  ExactOp& o = ops_[at(op)];
  o.algorithms = {o.algorithms[at(choice - o.first_choice)]};
  o.first_choice = choice;
}

Bytes ExactModel::bytes_of(Bits tensors) const {
  Bytes sum = 0;
  for (; tensors != 0; tensors &= tensors - 1) sum += bytes_[at(std::countr_zero(tensors))];
  return sum;
}

bool ExactModel::pending(int op, Progress progress) const {
  if (fixed_order_) return static_cast<Bits>(op) >= progress;
  const int once = ops_[at(op)].once;
  return once >= 0 && (progress >> once & 1) == 0;
}

bool ExactModel::finished(Progress progress, Bits resident) const {
  if ((outputs_ & ~resident) != 0) return false;
  return progress == (fixed_order_ ? ops_.size() : all_once_);
}

bool ExactModel::may_run(int op, Progress progress, Progress& after) const {
  after = progress;
  const ExactOp& o = ops_[at(op)];
  if (pending(op, progress)) {
    if (!fixed_order_) {
      after |= Bits{1} << o.once;
      return true;
    }
    ++after;
    return static_cast<Bits>(op) == progress;
  }
  return o.recomputable;
}

std::int64_t ExactModel::cost_to_finish(Progress progress, Bits resident) const {
  std::int64_t cost = 0;
  Bits missing = outputs_ & ~resident;
  for (int i = ops() - 1; i >= 0; --i) {
    const ExactOp& o = ops_[at(i)];
    const bool must = pending(i, progress);
    if (!must && (o.outputs & missing) == 0) continue;
    if (!must && !o.recomputable) return -1;
    cost += o.algorithms.front().cost;
    missing = (missing & ~o.outputs) | (o.inputs & ~resident);
  }
  return missing == 0 ? cost : -1;
}

Bits ExactModel::wanted(Progress progress, Bits resident) const {
  Bits tensors = outputs_ & ~resident;
  for (int i = ops() - 1; i >= 0; --i) {
    const ExactOp& o = ops_[at(i)];
    if (pending(i, progress) || (o.recomputable && (o.outputs & tensors) != 0)) tensors |= o.inputs;
  }
  return tensors;
}

}  // namespace reprise::planner
