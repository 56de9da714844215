#pragma once

// Builds forward graphs, with checks at each call.
//
// Every function appends one node (linear appends a few) and returns its first output, unless it
// says otherwise. Names: `name` is the node's; its outputs are named after it ("name" for one
// output, "name.mean" and so on for further ones). An empty name gets "<op><number>". A name
// already taken, a shape or a dtype that does not fit is an Error(kInput) naming the node, the rule
// and both values; a refused node leaves no trace.

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "graph/graph.h"

namespace reprise::graph {

class Builder {
 public:
  explicit Builder(std::string graph_name);
  // Goes on building on an existing (valid) graph: for autodiff and backends.
  explicit Builder(Graph graph);

  // -- values from outside
  ValueId input(std::string_view name, Shape shape, DType dtype = DType::kF32);
  ValueId parameter(std::string_view name, Shape shape, bool trainable = true);
  ValueId state(std::string_view name, Shape shape);

  // -- ops, in the order of graph/op.h
  ValueId conv2d(ValueId x, ValueId weight, const Conv2dAttributes& attributes = {},
                 std::string_view name = {});
  ValueId conv2d(ValueId x, ValueId weight, ValueId bias, const Conv2dAttributes& attributes = {},
                 std::string_view name = {});
  ValueId matmul(ValueId a, ValueId b, const MatmulAttributes& attributes = {},
                 std::string_view name = {});
  // x[..,I] weight[O,I] bias[O]? => y[..,O]: reshape to two axes, matmul, reshape back.
  ValueId linear(ValueId x, ValueId weight, std::string_view name = {});
  ValueId linear(ValueId x, ValueId weight, ValueId bias, std::string_view name = {});
  // Training form: also appends the node that updates the running statistics (states), once per
  // step.
  ValueId batch_norm(ValueId x, ValueId gamma, ValueId beta, ValueId running_mean,
                     ValueId running_var, double rate = 0.1, const NormAttributes& attributes = {},
                     std::string_view name = {});
  ValueId batch_norm_inference(ValueId x, ValueId gamma, ValueId beta, ValueId running_mean,
                               ValueId running_var, const NormAttributes& attributes = {},
                               std::string_view name = {});
  ValueId layer_norm(ValueId x, ValueId gamma, ValueId beta, const NormAttributes& attributes = {},
                     std::string_view name = {});
  ValueId relu(ValueId x, std::string_view name = {});
  ValueId sigmoid(ValueId x, std::string_view name = {});
  ValueId tanh(ValueId x, std::string_view name = {});
  ValueId gelu(ValueId x, std::string_view name = {});
  ValueId add(ValueId a, ValueId b, std::string_view name = {});
  ValueId mul(ValueId a, ValueId b, std::string_view name = {});
  ValueId scale(ValueId x, double factor, std::string_view name = {});
  ValueId dropout(ValueId x, double probability,
                  std::string_view name = {});  // its own random stream
  ValueId positive(ValueId x, std::string_view name = {});
  ValueId cast(ValueId x, DType dtype, std::string_view name = {});
  ValueId max_pool(ValueId x, const Pool2dAttributes& attributes, std::string_view name = {});
  ValueId avg_pool(ValueId x, const Pool2dAttributes& attributes, std::string_view name = {});
  ValueId global_avg_pool(ValueId x, std::string_view name = {});
  ValueId upsample(ValueId x, std::int64_t factor, std::string_view name = {});
  // One axis may be -1: it takes what is left.
  ValueId reshape(ValueId x, Shape shape, std::string_view name = {});
  ValueId flatten(ValueId x, std::string_view name = {});  // [N, rest]
  ValueId concat(const std::vector<ValueId>& inputs, std::int64_t axis, std::string_view name = {});
  ValueId slice(ValueId x, std::int64_t axis, std::int64_t begin, std::int64_t end,
                std::string_view name = {});
  ValueId broadcast(ValueId x, Shape shape, std::string_view name = {});
  ValueId reduce_sum(ValueId x, Ints axes = {}, bool keep_axes = false, std::string_view name = {});
  ValueId reduce_mean(ValueId x, Ints axes = {}, bool keep_axes = false,
                      std::string_view name = {});
  ValueId fill(Shape shape, double value, std::string_view name = {});
  ValueId embedding(ValueId table, ValueId ids, std::string_view name = {});
  struct Recurrent {
    ValueId y, h_n, c_n;  // c_n invalid for gru
  };
  Recurrent lstm(ValueId x, ValueId h0, ValueId c0, ValueId w_ih, ValueId w_hh, ValueId bias,
                 std::string_view name = {});
  Recurrent gru(ValueId x, ValueId h0, ValueId w_ih, ValueId w_hh, ValueId bias,
                std::string_view name = {});
  ValueId softmax_cross_entropy(ValueId logits, ValueId labels,
                                const LossAttributes& attributes = {}, std::string_view name = {});
  ValueId mean_squared_error(ValueId prediction, ValueId target,
                             Reduction reduction = Reduction::kMean, std::string_view name = {});
  ValueId correct_count(ValueId logits, ValueId labels, std::string_view name = {});
  // state' = x, at the end of the step: the node is appended by finish(), after every reader of
  // `state`.
  void assign(ValueId state, ValueId x, std::string_view name = {});

  // -- the general form behind all of these, used by autodiff and backends: infers, checks and
  // appends.
  std::vector<ValueId> append(OpKind op, std::vector<ValueId> inputs, const Attributes& attributes,
                              std::string_view name, Phase phase = Phase::kForward,
                              bool accumulate = false);

  // A value from outside: an input or a persistent value; `trainable` for parameters only.
  ValueId source(std::string_view name, Shape shape, DType dtype, Role role,
                 bool trainable = false);
  // `final`, made by an update op, is the next version of the persistent value `initial`; at most
  // one each.
  void add_update(ValueId initial, ValueId final);

  // -- graph level
  void set_loss(ValueId scalar);   // and an output
  void add_output(ValueId value);  // fetched by the user; a second call for one value adds nothing
  // Names of the values and nodes that follow get this prefix ("layer1.0."), until the scope ends.
  class Scope {
   public:
    Scope(Builder& builder, std::string_view prefix);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Builder& builder_;
    std::size_t length_;
  };

  [[nodiscard]] const Shape& shape(ValueId value) const { return graph_.values[value].shape; }
  [[nodiscard]] const Graph& graph() const { return graph_; }
  // The finished graph, which passed validate(); the builder is empty afterwards.
  [[nodiscard]] Graph finish();

 private:
  struct Assignment {
    ValueId state, x;
    std::string name;
  };

  [[nodiscard]] std::string scoped(std::string_view name) const;
  [[nodiscard]] std::string node_name(OpKind op, std::string_view name) const;
  void check_new_value(const Value& value) const;
  void check_known(ValueId value, std::string_view user) const;
  void check_updatable(ValueId value, std::string_view user) const;
  ValueId add_value(Value value);
  std::vector<ValueId> append_node(Node node);
  ValueId append_one(OpKind op, std::vector<ValueId> inputs, const Attributes& attributes,
                     std::string_view name);

  Graph graph_;
  std::string prefix_;
  std::unordered_set<std::string> value_names_;
  std::unordered_set<std::string> node_names_;
  std::unordered_set<ValueId> updated_;
  std::vector<Assignment> assignments_;
  std::int64_t dropout_streams_ = 0;
};

}  // namespace reprise::graph
