#include "graph/synchronise.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "graph/forward_updates.h"
#include "graph/node_rules.h"

namespace reprise::graph {
namespace {

class Synchroniser {
 public:
  Synchroniser(const Graph& forward, std::int64_t ranks) : forward_(forward), made_(forward) {
    assignments_ = remove_assignments(made_);
    made_.nodes = {};
    parts_ = made_.values.push_back({.name = std::string(kBatchParts),
                                     .shape = {ranks + 1},
                                     .dtype = DType::kI32,
                                     .role = Role::kInput});
  }

  Graph make() {
    for (const Node& node : forward_.nodes) {
      if (node.op == OpKind::kBatchNorm) {
        replace(node);
      } else if (node.op == OpKind::kBatchNormUpdate) {
        add(from_sample(node));
      } else if (node.op != OpKind::kAssign) {
        add(node);
      }
    }
    for (const Assignment& each : assignments_) assign(each);
    validate(made_);
    return std::move(made_);
  }

 private:
  void replace(const Node& norm) {
    const ValueId x = norm.inputs[0], gamma = norm.inputs[1], beta = norm.inputs[2];
    for (const ValueId scale : {gamma, beta}) {
      if (!made_.values[scale].producer.valid()) continue;
      throw base::input_error(
          "batch_norm '{}' over ranks: '{}' is made by a node; gamma and beta must be values of "
          "their own",
          norm.name, made_.values[scale].name);
    }
    const Shape shape = made_.values[x].shape;
    const ValueId mean = norm.outputs[1], var = norm.outputs[2];
    const ValueId moments = extend(norm, "moments", OpKind::kBatchNormMoments, {x, parts_});
    const ValueId sum = extend(norm, "reduce", OpKind::kAllReduce, {moments});
    const ValueId gathered = extend(norm, "await", OpKind::kAwait, {sum});
    const ValueId sample = made_.values.push_back(
        {.name = norm.name + ".sample_var", .shape = made_.values[var].shape});
    samples_.emplace(var, sample);
    add({.name = norm.name + ".combine",
         .op = OpKind::kBatchNormCombine,
         .phase = norm.phase,
         .attributes = CombineAttributes{element_count(shape) / shape[0] / shape[1]},
         .inputs = {gathered, parts_},
         .outputs = {mean, var, sample}});
    add({.name = norm.name,
         .op = OpKind::kBatchNormApply,
         .phase = norm.phase,
         .attributes = norm.attributes,
         .inputs = {x, gamma, beta, mean, var, parts_},
         .outputs = {norm.outputs[0]}});
  }

  // A node without attributes and its one output, both "<norm>.<suffix>".
  ValueId extend(const Node& norm, const char* suffix, OpKind op, std::vector<ValueId> inputs) {
    Node node{.name = fmt::format("{}.{}", norm.name, suffix),
              .op = op,
              .phase = norm.phase,
              .inputs = std::move(inputs),
              .outputs = {}};
    const InferredValue inferred = infer_checked(made_, node)[0];
    const ValueId value = made_.values.push_back({.name = node.name, .shape = inferred.shape});
    node.outputs = {value};
    add(std::move(node));
    return value;
  }

  // How many values a channel has is known at run time, so the sample variance is computed there.
  [[nodiscard]] Node from_sample(Node update) const {
    auto& attributes = std::get<RunningUpdateAttributes>(update.attributes);
    if (!attributes.unbiased) return update;
    for (std::size_t var = 3; var < update.inputs.size(); var += 2) {  // of each batch
      const auto sample = samples_.find(update.inputs[var]);
      if (sample == samples_.end()) {
        throw base::input_error("batch_norm_update '{}': '{}' is not the variance of a batch norm",
                                update.name, made_.values[update.inputs[var]].name);
      }
      update.inputs[var] = sample->second;
    }
    attributes.unbiased = false;
    return update;
  }

  // Assigned states stay the last nodes, with the last values.
  void assign(const Assignment& assignment) {
    Value value = made_.values[assignment.state];
    value.name = assignment.name;
    value.role = Role::kUpdate;
    const ValueId next = made_.values.push_back(std::move(value));
    made_.updates.push_back({assignment.state, next});
    add({.name = assignment.name,
         .op = OpKind::kAssign,
         .phase = Phase::kUpdate,
         .inputs = {assignment.state, assignment.x},
         .outputs = {next}});
  }

  void add(Node node) {
    const NodeId id(made_.nodes.size());
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      made_.values[node.outputs[i]].producer = id;
      made_.values[node.outputs[i]].output = static_cast<std::uint32_t>(i);
    }
    made_.nodes.push_back(std::move(node));
  }

  const Graph& forward_;
  Graph made_;
  ValueId parts_;
  std::vector<Assignment> assignments_;
  std::unordered_map<ValueId, ValueId> samples_;  // of each population variance
};

}  // namespace

Graph synchronise_batch_norm(const Graph& forward, std::int64_t ranks) {
  if (ranks < 1) throw base::input_error("batch norm over {} ranks", ranks);
  const bool any = std::any_of(forward.nodes.begin(), forward.nodes.end(),
                               [](const Node& node) { return node.op == OpKind::kBatchNorm; });
  return any ? Synchroniser(forward, ranks).make() : forward;
}

}  // namespace reprise::graph
