#include "graph/autodiff.h"

#include <algorithm>
#include <deque>
#include <unordered_set>
#include <utility>

#include "base/error.h"
#include "graph/builder.h"
#include "graph/forward_copies.h"
#include "graph/forward_updates.h"
#include "graph/gradient.h"
#include "graph/gradient_paths.h"
#include "graph/synchronise.h"
#include "graph/update_nodes.h"

namespace reprise::graph {
namespace {

using Flags = base::IdVector<ValueId, bool>;

void check_loss(const Graph& forward) {
  if (!forward.loss.valid())
    throw base::input_error("graph '{}' has no loss; call set_loss()", forward.name);
  const Value& loss = forward.values[forward.loss];
  if (loss.dtype != DType::kF32 || !loss.shape.empty()) {
    throw base::input_error("the loss '{}' must be a scalar f32, it is {} {}", loss.name,
                            dtype_name(loss.dtype), shape_text(loss.shape));
  }
  if (!loss.producer.valid()) {
    throw base::input_error("the loss '{}' is a {} of its own; it must be made by a node",
                            loss.name, role_name(loss.role));
  }
}

// Does the node hand the input a gradient that is of all ranks' loss, not of this one's alone?
bool hands_on_sum(const Node& node, std::size_t input) {
  return node.op == OpKind::kBatchNormApply && (input == 1 || input == 2);
}

class Differentiator {
 public:
  Differentiator(Graph forward, std::vector<StatisticsUpdate> statistics,
                 const TrainingOptions& options)
      : options_(options),
        copies_(std::move(forward), std::move(statistics), options.micro_batches),
        builder_(copies_.begin()),
        updates_(builder_, options.optimizer) {}

  TrainingGraph make() {
    const Flags needed = needed_gradients(copies_.forward(), variables());
    if (options_.ranks) most_under_way_ = most_under_way();
    for (std::int64_t k = 0; k < copies_.count(); ++k) {
      copies_.append(builder_);
      begin_copy(needed);
      const bool last = k + 1 == copies_.count();
      if (last) find_first_readers();
      seed(k);
      for (std::size_t i = copies_.end_node(); i-- > copies_.first_node();) {
        differentiate(NodeId(i));
        if (last && options_.update) update_after(i);
      }
    }
    if (copies_.count() > 1) builder_.set_loss(loss_of_all_);
    settle_sums(0);
    updates_.settle();
    fetch();
    warn();
    for (const StatisticsUpdate& each : copies_.statistics()) updates_.append(each);
    for (const Assignment& each : copies_.assignments(builder_)) updates_.append(each);
    TrainingGraph made{builder_.finish(), std::move(warnings_)};
    made.graph.updates_last = options_.updates_last;
    return made;
  }

 private:
  [[nodiscard]] const Graph& graph() const { return builder_.graph(); }
  [[nodiscard]] static bool is_trainable(const Value& value) {
    return value.role == Role::kParameter && value.trainable && !value.producer.valid();
  }

  [[nodiscard]] std::vector<ValueId> variables() const;
  void begin_copy(const Flags& needed);
  void find_first_readers();
  void seed(std::int64_t micro_batch);
  void differentiate(NodeId id);
  void update_after(std::size_t node);
  [[nodiscard]] bool may_overwrite(ValueId parameter) const;
  [[nodiscard]] std::int64_t most_under_way() const;
  void begin_sum(ValueId parameter);
  void settle_sums(std::int64_t most_bytes);
  void fetch();
  void warn();

  const TrainingOptions& options_;
  ForwardCopies copies_;
  Builder builder_;
  UpdateNodes updates_;
  PartialGradients gradients_;
  Flags wanted_;         // values on a path from a variable to the loss
  ValueId loss_of_all_;  // with several micro-batches: the sum over those appended
  // Parameters whose gradient is final once a node of the last copy is done.
  std::vector<std::vector<ValueId>> final_after_;
  Flags summed_;  // parameters whose gradient is a sum over the ranks as it is made
  std::deque<ValueId> under_way_;  // parameters whose gradient is being summed, oldest first
  std::int64_t bytes_under_way_ = 0;
  std::int64_t most_under_way_ = 0;
  std::vector<std::string> warnings_;
};

std::vector<ValueId> Differentiator::variables() const {
  const Graph& forward = copies_.forward();
  std::vector<ValueId> asked;
  for (std::size_t i = 0; i < forward.values.size(); ++i) {
    if (is_trainable(forward.values[ValueId(i)])) asked.push_back(ValueId(i));
  }
  for (ValueId fetched : options_.fetch_gradients) {
    if (!fetched.valid() || !forward.values.contains(fetched)) {
      throw base::input_error("fetch_gradients: not a value of graph '{}'", forward.name);
    }
    const Value& value = forward.values[fetched];
    if (copies_.count() > 1 && value.role != Role::kParameter) {
      throw base::input_error(
          "fetch_gradients: '{}' has role {}; with several micro-batches, of which each has its "
          "own, only gradients of parameters can be fetched",
          value.name, role_name(value.role));
    }
    if (!is_float(value.dtype)) {
      throw base::input_error("fetch_gradients: '{}' is {}, which has no gradient", value.name,
                              dtype_name(value.dtype));
    }
    asked.push_back(fetched);
  }
  return asked;
}

void Differentiator::begin_copy(const Flags& needed) {
  wanted_.resize(graph().values.size());
  gradients_.resize(graph().values.size());
  for (std::size_t i = 0; i < needed.size(); ++i) {
    if (needed[ValueId(i)]) wanted_[copies_.at(ValueId(i))] = true;
  }
}

// The first reader that takes part in the backward part: readers of a metric do not.
void Differentiator::find_first_readers() {
  final_after_.resize(copies_.end_node());
  summed_.resize(graph().values.size());
  Flags seen(graph().values.size());
  for (std::size_t i = copies_.first_node(); i < copies_.end_node(); ++i) {
    const Node& node = graph().nodes[NodeId(i)];
    if (std::none_of(node.outputs.begin(), node.outputs.end(),
                     [&](ValueId v) { return wanted_[v]; })) {
      continue;
    }
    for (std::size_t k = 0; k < node.inputs.size(); ++k) {
      const ValueId input = node.inputs[k];
      if (!is_trainable(graph().values[input])) continue;
      if (!seen[input]) {
        seen[input] = true;
        summed_[input] = hands_on_sum(node, k);
        final_after_[i].push_back(input);
      } else if (summed_[input] != hands_on_sum(node, k)) {
        throw base::input_error(
            "parameter '{}' scales a batch norm over ranks and has other uses, as in '{}'; its "
            "gradient would be summed over the ranks in part only",
            graph().values[input].name, node.name);
      }
    }
  }
}

void Differentiator::seed(std::int64_t micro_batch) {
  const ValueId loss = copies_.at(copies_.forward().loss);
  const bool frozen = !wanted_[loss];  // no backward part
  const auto weight = [&] {
    return builder_.source(micro_batch_name(micro_batch, kGradientWeight), {}, DType::kF32,
                           Role::kInput);
  };
  if (copies_.count() > 1) {
    const ValueId own = weight();
    const ValueId weighted =
        builder_.mul(loss, own, micro_batch_name(micro_batch, "weighted_loss"));
    loss_of_all_ = micro_batch == 0 ? weighted
                                    : builder_.add(loss_of_all_, weighted,
                                                   micro_batch_name(micro_batch, "sum_of_losses"));
    if (!frozen) gradients_[loss] = {own, false};
  } else if (!frozen) {
    gradients_[loss] = {options_.ranks
                            ? weight()
                            : builder_.append(OpKind::kFill, {}, ShapeAttributes{{}, 1.0},
                                              "grad/loss.one", Phase::kBackward)[0],
                        false};
  }
}

void Differentiator::differentiate(NodeId id) {
  const Node& node = graph().nodes[id];
  const auto gradient = op_info(node.op).gradient;
  const bool asked =
      std::any_of(node.inputs.begin(), node.inputs.end(), [&](ValueId v) { return wanted_[v]; });
  const bool reached = std::any_of(node.outputs.begin(), node.outputs.end(),
                                   [&](ValueId v) { return gradients_[v].has_value(); });
  if (gradient == nullptr || !asked || !reached) return;
  GradientContext context(builder_, id, wanted_, gradients_);
  gradient(context);
}

void Differentiator::update_after(std::size_t node) {
  for (ValueId parameter : final_after_[node]) {
    if (!gradients_[parameter]) continue;
    if (options_.ranks && !summed_[parameter]) {
      begin_sum(parameter);
    } else {
      updates_.append(parameter, gradients_[parameter]->value);
    }
  }
  if (options_.ranks) settle_sums(most_under_way_);
}

std::int64_t Differentiator::most_under_way() const {
  if (options_.ranks->bytes_under_way) return *options_.ranks->bytes_under_way;
  std::int64_t all = 0;
  for (const Value& value : graph().values) {
    if (is_trainable(value)) all += element_count(value.shape) * dtype_bytes(DType::kF32);
  }
  return 2 * bucket_target(options_.ranks->bucket_bytes, all);
}

// Whether nobody but the parameter's sum has to do with its gradient from here on.
bool Differentiator::may_overwrite(ValueId parameter) const {
  if (gradients_[parameter]->owned) return true;
  const ValueId value = gradients_[parameter]->value;
  const Value& described = graph().values[value];
  if (!described.producer.valid() || graph().nodes[described.producer].op == OpKind::kReshape)
    return false;
  // A rule may hand one value to several inputs (an addition does).
  std::int64_t uses = 0;
  for (const auto& partial : gradients_) uses += partial && partial->value == value ? 1 : 0;
  return uses == 1;
}

void Differentiator::begin_sum(ValueId parameter) {
  const std::string name = graph().values[parameter].name;
  ValueId& gradient = gradients_[parameter]->value;
  if (!may_overwrite(parameter)) {
    gradient = builder_.append(OpKind::kScale, {gradient}, ScaleAttributes{1.0},
                               "grad/" + name + ".own", Phase::kBackward)[0];
  }
  gradient = builder_.append(OpKind::kAllReduce, {gradient}, NoAttributes{}, "reduce/" + name,
                             Phase::kBackward)[0];
  under_way_.push_back(parameter);
  bytes_under_way_ += element_count(graph().values[parameter].shape) * dtype_bytes(DType::kF32);
}

void Differentiator::settle_sums(std::int64_t most_bytes) {
  while (!under_way_.empty() && bytes_under_way_ > most_bytes) {
    const ValueId parameter = under_way_.front();
    under_way_.pop_front();
    bytes_under_way_ -= element_count(graph().values[parameter].shape) * dtype_bytes(DType::kF32);
    ValueId& gradient = gradients_[parameter]->value;
    gradient = builder_.append(OpKind::kAwait, {gradient}, NoAttributes{},
                               "await/" + graph().values[parameter].name, Phase::kBackward)[0];
    updates_.append(parameter, gradient);
  }
}

// Makes the loss and the fetched gradients outputs.
// A fetched gradient is a value of its own (times one, which changes no bit), so that reading it
// never keeps a sum from being added to in place; that of a bf16 value is cast to f32.
void Differentiator::fetch() {
  const std::vector<ValueId>& outputs = graph().outputs;
  if (std::find(outputs.begin(), outputs.end(), graph().loss) == outputs.end()) {
    builder_.add_output(graph().loss);
  }
  for (ValueId of_forward : options_.fetch_gradients) {
    const ValueId fetched = copies_.at(of_forward);
    const std::string name = "grad/" + graph().values[fetched].name;
    const Shape shape = graph().values[fetched].shape;
    const auto& partial = gradients_[fetched];
    if (!partial) {
      builder_.add_output(builder_.append(OpKind::kFill, {}, ShapeAttributes{shape, 0.0}, name,
                                          Phase::kBackward)[0]);
    } else if (graph().values[partial->value].dtype == DType::kBF16) {
      builder_.add_output(builder_.append(OpKind::kCast, {partial->value},
                                          CastAttributes{DType::kF32}, name, Phase::kBackward)[0]);
    } else {
      builder_.add_output(builder_.append(OpKind::kScale, {partial->value}, ScaleAttributes{1.0},
                                          name, Phase::kBackward)[0]);
    }
  }
}

void Differentiator::warn() {
  for (std::size_t i = 0; i < gradients_.size(); ++i) {
    if (!is_trainable(graph().values[ValueId(i)]) || gradients_[ValueId(i)]) continue;
    warnings_.push_back(fmt::format(
        "parameter '{}' takes no part in the loss: it stays as it is, weight decay included",
        graph().values[ValueId(i)].name));
  }
}

void check_optimizer(const Optimizer& optimizer) {
  std::visit(
      [](const auto& attributes) {
        if (!(attributes.rate.base >= 0)) {
          throw base::input_error("learning rate {}: must not be negative", attributes.rate.base);
        }
        if (!(attributes.clip_norm >= 0)) {
          throw base::input_error("clip norm {}: must not be negative", attributes.clip_norm);
        }
        if (!(attributes.weight_decay >= 0)) {
          throw base::input_error("weight decay {}: must not be negative", attributes.weight_decay);
        }
      },
      optimizer);
  if (const auto* sgd = std::get_if<SgdAttributes>(&optimizer)) {
    if (!(sgd->momentum >= 0 && sgd->momentum < 1)) {
      throw base::input_error("momentum {}: must lie in [0, 1)", sgd->momentum);
    }
    if (sgd->nesterov && sgd->momentum == 0)
      throw base::input_error("nesterov needs a momentum above 0");
  }
}

}  // namespace

std::string micro_batch_name(std::int64_t micro_batch, std::string_view name) {
  return micro_batch == 0 ? std::string(name) : fmt::format("micro{}/{}", micro_batch, name);
}

TrainingGraph make_training_graph(const Graph& given, const TrainingOptions& options) {
  check_loss(given);
  check_optimizer(options.optimizer);
  if (options.micro_batches < 1) {
    throw base::input_error("micro_batches {}: must be at least 1", options.micro_batches);
  }
  const std::int64_t ranks = options.ranks ? options.ranks->batch_norm_over : 0;
  const Graph forward = ranks > 0 ? synchronise_batch_norm(given, ranks) : given;
  if (!skips_nonfinite(options.optimizer) && options.micro_batches == 1)
    return Differentiator(forward, {}, options).make();
  WithoutStatistics rest = take_statistics_updates(forward);
  TrainingOptions moved = options;
  for (ValueId& fetched : moved.fetch_gradients) {
    if (fetched.valid() && rest.moved.contains(fetched)) fetched = rest.moved[fetched];
  }
  return Differentiator(std::move(rest.graph), std::move(rest.updates), moved).make();
}

}  // namespace reprise::graph
