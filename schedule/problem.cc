#include "schedule/problem.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <string_view>
#include <utility>

#include "base/error.h"

namespace reprise::schedule {
namespace {

using base::checked_add;
using base::input_error;

bool there_before_the_first_op(TensorKind kind) {
  return kind == TensorKind::kResident || kind == TensorKind::kInput;
}

// Fastest first, and each one has a reason to be there.
void check_algorithms(const Op& op) {
  for (std::size_t k = 1; k < op.choices(); ++k) {
    const Algorithm before = op.algorithm(k - 1), algorithm = op.algorithm(k);
    if (algorithm.workspace < 0) {
      throw input_error("op '{}': algorithm {} has a workspace of {} bytes; a size is at least 0",
                        op.name, k, algorithm.workspace);
    }
    if (algorithm.cost > before.cost && algorithm.workspace < before.workspace) continue;
    throw input_error(
        "op '{}': algorithm {} takes {} bytes and costs {}, the one before it {} and {}; each one "
        "is "
        "dearer than the one before and of less workspace",
        op.name, k, algorithm.workspace, algorithm.cost, before.workspace, before.cost);
  }
}

void check_sizes(const Problem& problem) {
  Bytes bytes = 0;
  for (const Tensor& tensor : problem.tensors) {
    if (tensor.bytes < 0) {
      throw input_error("tensor '{}': {} bytes; a size is at least 0", tensor.name, tensor.bytes);
    }
    bytes = checked_add(bytes, tensor.bytes, "bytes of all tensors");
  }
  std::int64_t cost = 0;
  for (const Op& op : problem.ops) {
    if (op.workspace < 0) {
      throw input_error("op '{}': workspace of {} bytes; a size is at least 0", op.name,
                        op.workspace);
    }
    if (op.cost < 0) {
      throw input_error("op '{}': cost {}; a cost is at least 0", op.name, op.cost);
    }
    check_algorithms(op);
    bytes = checked_add(bytes, op.workspace, "bytes of all tensors and workspaces");
    cost = checked_add(cost, op.algorithm(op.leaner.size()).cost, "cost of all ops");
  }
}

void check_indices(const Problem& problem, const Op& op) {
  for (const auto& [what, tensors] :
       {std::pair<std::string_view, const std::vector<TensorId>&>{"reads", op.inputs},
        {"makes", op.outputs}}) {
    for (TensorId tensor : tensors) {
      if (problem.tensors.contains(tensor)) continue;
      throw input_error("op '{}' {} tensor {}; the problem has {} tensors", op.name, what,
                        tensor.index(), problem.tensors.size());
    }
  }
}

void check_inplace(const Problem& problem, const Op& op) {
  const auto inside = [](std::int32_t index, std::size_t size) {
    return index >= 0 && static_cast<std::size_t>(index) < size;
  };
  for (std::size_t i = 0; i < op.inplace.size(); ++i) {
    const graph::InplacePair& pair = op.inplace[i];
    if (!inside(pair.input, op.inputs.size()) || !inside(pair.output, op.outputs.size())) {
      throw input_error(
          "op '{}': in-place pair input {} > output {} does not exist; it has {} inputs and {} "
          "outputs",
          op.name, pair.input, pair.output, op.inputs.size(), op.outputs.size());
    }
    if (!pair.forced) continue;
    const TensorId from = op.inputs[static_cast<std::size_t>(pair.input)];
    const TensorId to = op.outputs[static_cast<std::size_t>(pair.output)];
    const Tensor& input = problem.tensors[from];
    const Tensor& output = problem.tensors[to];
    if (input.bytes != output.bytes) {
      throw input_error(
          "op '{}': forced in-place pair '{}' ({} bytes) > '{}' ({} bytes); equal "
          "bytes are needed",
          op.name, input.name, input.bytes, output.name, output.bytes);
    }
    if (input.kind == TensorKind::kResident) {
      throw input_error("op '{}': forced in-place pair destroys '{}', which is resident", op.name,
                        input.name);
    }
    for (std::size_t j = 0; j < i; ++j) {
      const graph::InplacePair& earlier = op.inplace[j];
      const bool same_input = op.inputs[static_cast<std::size_t>(earlier.input)] == from;
      if (earlier.forced && (same_input || earlier.output == pair.output)) {
        throw input_error("op '{}': two forced in-place pairs share '{}'", op.name,
                          same_input ? input.name : output.name);
      }
    }
  }
}

// Program order: one producer each, before every reader.
class Producers {
 public:
  explicit Producers(const Problem& problem)
      : problem_(problem), made_(problem.tensors.size(), false) {
    for (std::size_t i = 0; i < problem.tensors.size(); ++i) {
      made_[i] = there_before_the_first_op(problem.tensors[TensorId(i)].kind);
    }
  }

  void check_reads(const Op& op) const {
    for (TensorId tensor : op.inputs) {
      if (made_[tensor.index()]) continue;
      throw input_error("op '{}' reads '{}', which no op before it makes", op.name,
                        problem_.tensors[tensor].name);
    }
  }

  void make(const Op& op) {
    for (TensorId id : op.outputs) {
      const Tensor& tensor = problem_.tensors[id];
      if (there_before_the_first_op(tensor.kind)) {
        throw input_error("op '{}' makes '{}', which is there before the first op", op.name,
                          tensor.name);
      }
      if (made_[id.index()]) {
        throw input_error("op '{}' makes '{}', which has a producer already", op.name, tensor.name);
      }
      made_[id.index()] = true;
    }
  }

  void check_outputs() const {
    for (std::size_t i = 0; i < made_.size(); ++i) {
      const Tensor& tensor = problem_.tensors[TensorId(i)];
      if (!made_[i] && tensor.kind == TensorKind::kOutput) {
        throw input_error("output '{}' is made by no op", tensor.name);
      }
    }
  }

 private:
  const Problem& problem_;
  std::vector<bool> made_;
};

}  // namespace

std::vector<std::size_t> set_algorithms(Op& op, const std::vector<Algorithm>& algorithms) {
  std::vector<std::size_t> by_cost(algorithms.size());
  std::iota(by_cost.begin(), by_cost.end(), std::size_t{0});
  std::stable_sort(by_cost.begin(), by_cost.end(), [&](std::size_t a, std::size_t b) {
    return std::pair(algorithms[a].cost, algorithms[a].workspace) <
           std::pair(algorithms[b].cost, algorithms[b].workspace);
  });
  std::vector<std::size_t> kept;
  op.leaner.clear();
  for (const std::size_t k : by_cost) {
    if (!kept.empty() && algorithms[k].workspace >= algorithms[kept.back()].workspace) continue;
    if (kept.empty()) {
      op.workspace = algorithms[k].workspace;
      op.cost = algorithms[k].cost;
    } else {
      op.leaner.push_back(algorithms[k]);
    }
    kept.push_back(k);
  }
  return kept;
}

void validate(const Problem& problem) {
  check_sizes(problem);
  Producers producers(problem);
  for (const Op& op : problem.ops) {
    check_indices(problem, op);
    check_inplace(problem, op);
    producers.check_reads(op);
    producers.make(op);
  }
  producers.check_outputs();
}

}  // namespace reprise::schedule
