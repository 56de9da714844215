// The named functions of Builder: each fills in attributes and appends.

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "graph/builder.h"

namespace reprise::graph {

using enum OpKind;

ValueId Builder::conv2d(ValueId x, ValueId weight, const Conv2dAttributes& attributes,
                        std::string_view name) {
  return append_one(kConv2d, {x, weight}, attributes, name);
}

ValueId Builder::conv2d(ValueId x, ValueId weight, ValueId bias, const Conv2dAttributes& attributes,
                        std::string_view name) {
  return append_one(kConv2d, {x, weight, bias}, attributes, name);
}

ValueId Builder::matmul(ValueId a, ValueId b, const MatmulAttributes& attributes,
                        std::string_view name) {
  return append_one(kMatmul, {a, b}, attributes, name);
}

ValueId Builder::linear(ValueId x, ValueId weight, std::string_view name) {
  return linear(x, weight, ValueId{}, name);
}

ValueId Builder::linear(ValueId x, ValueId weight, ValueId bias, std::string_view name) {
  const std::string node = node_name(kMatmul, name);
  check_known(x, node);
  check_known(weight, node);
  if (shape(x).empty() || shape(weight).size() != 2) {
    throw base::input_error("linear '{}': x {} must have an axis and weight {} two", node,
                            shape_text(shape(x)), shape_text(shape(weight)));
  }
  const std::string local = node.substr(prefix_.size());
  Shape y = shape(x);
  y.back() = shape(weight)[0];
  const bool flat = shape(x).size() == 2;
  const ValueId rows = flat ? x : reshape(x, {-1, shape(x).back()}, local + ".rows");
  std::vector<ValueId> inputs{rows, weight};
  if (bias.valid()) inputs.push_back(bias);
  const ValueId product =
      append_one(kMatmul, std::move(inputs), MatmulAttributes{.transpose_b = true},
                 flat ? local : local + ".product");
  return flat ? product : reshape(product, y, local);
}

ValueId Builder::batch_norm(ValueId x, ValueId gamma, ValueId beta, ValueId running_mean,
                            ValueId running_var, double rate, const NormAttributes& attributes,
                            std::string_view name) {
  const std::string local = node_name(kBatchNorm, name).substr(prefix_.size());
  const std::string user = "batch_norm '" + scoped(local) + "'";
  check_updatable(running_mean, user);
  check_updatable(running_var, user);
  const auto outputs = append(kBatchNorm, {x, gamma, beta}, attributes, local);
  RunningUpdateAttributes update;
  update.rate = rate;
  update.count = element_count(shape(x)) / shape(x)[1];
  const auto next = append(kBatchNormUpdate, {running_mean, running_var, outputs[1], outputs[2]},
                           update, local + ".running");
  add_update(running_mean, next[0]);
  add_update(running_var, next[1]);
  return outputs[0];
}

ValueId Builder::batch_norm_inference(ValueId x, ValueId gamma, ValueId beta, ValueId running_mean,
                                      ValueId running_var, const NormAttributes& attributes,
                                      std::string_view name) {
  return append_one(kBatchNormInference, {x, gamma, beta, running_mean, running_var}, attributes,
                    name);
}

ValueId Builder::layer_norm(ValueId x, ValueId gamma, ValueId beta,
                            const NormAttributes& attributes, std::string_view name) {
  return append_one(kLayerNorm, {x, gamma, beta}, attributes, name);
}

ValueId Builder::relu(ValueId x, std::string_view name) {
  return append_one(kRelu, {x}, NoAttributes{}, name);
}
ValueId Builder::sigmoid(ValueId x, std::string_view name) {
  return append_one(kSigmoid, {x}, NoAttributes{}, name);
}
ValueId Builder::tanh(ValueId x, std::string_view name) {
  return append_one(kTanh, {x}, NoAttributes{}, name);
}
ValueId Builder::gelu(ValueId x, std::string_view name) {
  return append_one(kGelu, {x}, NoAttributes{}, name);
}
ValueId Builder::add(ValueId a, ValueId b, std::string_view name) {
  return append_one(kAdd, {a, b}, NoAttributes{}, name);
}
ValueId Builder::mul(ValueId a, ValueId b, std::string_view name) {
  return append_one(kMul, {a, b}, NoAttributes{}, name);
}
ValueId Builder::scale(ValueId x, double factor, std::string_view name) {
  return append_one(kScale, {x}, ScaleAttributes{factor}, name);
}

ValueId Builder::dropout(ValueId x, double probability, std::string_view name) {
  return append_one(kDropout, {x}, DropoutAttributes{probability, dropout_streams_++}, name);
}

ValueId Builder::positive(ValueId x, std::string_view name) {
  return append_one(kPositive, {x}, NoAttributes{}, name);
}

ValueId Builder::cast(ValueId x, DType dtype, std::string_view name) {
  return append_one(kCast, {x}, CastAttributes{dtype}, name);
}

ValueId Builder::max_pool(ValueId x, const Pool2dAttributes& attributes, std::string_view name) {
  return append_one(kMaxPool, {x}, attributes, name);
}
ValueId Builder::avg_pool(ValueId x, const Pool2dAttributes& attributes, std::string_view name) {
  return append_one(kAvgPool, {x}, attributes, name);
}
ValueId Builder::global_avg_pool(ValueId x, std::string_view name) {
  return append_one(kGlobalAvgPool, {x}, NoAttributes{}, name);
}
ValueId Builder::upsample(ValueId x, std::int64_t factor, std::string_view name) {
  return append_one(kUpsample, {x}, UpsampleAttributes{factor}, name);
}

ValueId Builder::reshape(ValueId x, Shape shape_wanted, std::string_view name) {
  const std::string node = node_name(kReshape, name);
  check_known(x, node);
  Dim known = 1;
  Dim* open = nullptr;
  for (Dim& dim : shape_wanted) {
    if (dim == -1 && open == nullptr) {
      open = &dim;
    } else {
      known = base::checked_mul(known, dim, "reshape '" + node + "'");
    }
  }
  const std::int64_t elements = element_count(shape(x));
  if (open != nullptr) {
    if (known <= 0 || elements % known != 0) {
      throw base::input_error("reshape '{}': {} elements of x {} do not divide into {}", node,
                              elements, shape_text(shape(x)), shape_text(shape_wanted));
    }
    *open = elements / known;
  }
  return append_one(kReshape, {x}, ShapeAttributes{std::move(shape_wanted), 0.0}, name);
}

ValueId Builder::flatten(ValueId x, std::string_view name) {
  check_known(x, "flatten");
  if (shape(x).empty()) throw base::input_error("flatten: '{}' is a scalar", graph_.values[x].name);
  const Dim rows = shape(x)[0];
  return reshape(x, {rows, element_count(shape(x)) / rows}, name);
}

ValueId Builder::concat(const std::vector<ValueId>& inputs, std::int64_t axis,
                        std::string_view name) {
  return append_one(kConcat, inputs, AxisAttributes{.axis = axis}, name);
}
ValueId Builder::slice(ValueId x, std::int64_t axis, std::int64_t begin, std::int64_t end,
                       std::string_view name) {
  return append_one(kSlice, {x}, AxisAttributes{.axis = axis, .begin = begin, .end = end}, name);
}
ValueId Builder::broadcast(ValueId x, Shape shape_wanted, std::string_view name) {
  return append_one(kBroadcast, {x}, ShapeAttributes{std::move(shape_wanted), 0.0}, name);
}
ValueId Builder::reduce_sum(ValueId x, Ints axes, bool keep_axes, std::string_view name) {
  return append_one(kReduceSum, {x}, ReduceAttributes{std::move(axes), keep_axes}, name);
}
ValueId Builder::reduce_mean(ValueId x, Ints axes, bool keep_axes, std::string_view name) {
  return append_one(kReduceMean, {x}, ReduceAttributes{std::move(axes), keep_axes}, name);
}
ValueId Builder::fill(Shape shape_wanted, double value, std::string_view name) {
  return append_one(kFill, {}, ShapeAttributes{std::move(shape_wanted), value}, name);
}
ValueId Builder::embedding(ValueId table, ValueId ids, std::string_view name) {
  return append_one(kEmbedding, {table, ids}, NoAttributes{}, name);
}

Builder::Recurrent Builder::lstm(ValueId x, ValueId h0, ValueId c0, ValueId w_ih, ValueId w_hh,
                                 ValueId bias, std::string_view name) {
  const auto outputs = append(kLstm, {x, h0, c0, w_ih, w_hh, bias}, NoAttributes{}, name);
  return {outputs[0], outputs[1], outputs[2]};
}

Builder::Recurrent Builder::gru(ValueId x, ValueId h0, ValueId w_ih, ValueId w_hh, ValueId bias,
                                std::string_view name) {
  const auto outputs = append(kGru, {x, h0, w_ih, w_hh, bias}, NoAttributes{}, name);
  return {outputs[0], outputs[1], ValueId{}};
}

ValueId Builder::softmax_cross_entropy(ValueId logits, ValueId labels,
                                       const LossAttributes& attributes, std::string_view name) {
  return append_one(kSoftmaxCrossEntropy, {logits, labels}, attributes, name);
}
ValueId Builder::mean_squared_error(ValueId prediction, ValueId target, Reduction reduction,
                                    std::string_view name) {
  return append_one(kMeanSquaredError, {prediction, target}, LossAttributes{.reduction = reduction},
                    name);
}
ValueId Builder::correct_count(ValueId logits, ValueId labels, std::string_view name) {
  return append_one(kCorrectCount, {logits, labels}, LossAttributes{}, name);
}

}  // namespace reprise::graph
