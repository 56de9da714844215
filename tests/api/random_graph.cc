#include "tests/api/random_graph.h"

#include <random>
#include <vector>

#include "fmt/format.h"

#include "graph/builder.h"

namespace reprise::api {
namespace {

using graph::ValueId;

class RandomModel {
 public:
  explicit RandomModel(std::uint64_t seed)
      : random_(seed), builder_(fmt::format("random{}", seed)) {}

  models::Model make(int ops) {
    batch_ = pick(1, 3);
    values_.push_back(builder_.input("images", {batch_, pick(1, 4), kSize, kSize}));
    const ValueId labels = builder_.input("labels", {batch_}, graph::DType::kI32);
    shared_ = parameter("shared", {4, 4, 3, 3});
    for (int i = 0; i < ops; ++i) values_.push_back(append(fmt::format("n{}", i)));
    if (pick(0, 3) == 0) parameter("unused", {3});
    const ValueId features = builder_.global_avg_pool(values_.back(), "pooled");
    const ValueId head = parameter("head", {5, builder_.shape(features)[1]});
    const ValueId logits = builder_.linear(features, head, "logits");
    builder_.set_loss(builder_.softmax_cross_entropy(logits, labels, {}, "loss"));
    const ValueId fetched =
        values_[static_cast<std::size_t>(pick(0, static_cast<int>(values_.size()) - 1))];
    if (builder_.graph().values[fetched].producer.valid()) builder_.add_output(fetched);
    return {builder_.finish(), std::move(initializers_)};
  }

 private:
  static constexpr std::int64_t kSize = 6;

  int pick(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  ValueId parameter(const std::string& name, graph::Shape shape, bool ones = false) {
    using Kind = models::Model::Initializer::Kind;
    const ValueId id = builder_.parameter(name, std::move(shape), pick(0, 7) != 0);
    initializers_.push_back({name, {ones ? Kind::kOnes : Kind::kNormal, 0.4}});
    return id;
  }

  ValueId state(const std::string& name, graph::Shape shape) {
    initializers_.push_back({name, {}});
    return builder_.state(name, std::move(shape));
  }

  // A recent value more often than an old one, so that graphs are long but have skips.
  ValueId some_value() {
    const int last = static_cast<int>(values_.size()) - 1;
    return values_[static_cast<std::size_t>(pick(0, 2) == 0 ? pick(0, last) : last)];
  }

  ValueId with_shape(const graph::Shape& shape, ValueId otherwise) {
    for (int tries = 0; tries < 8; ++tries) {
      const ValueId candidate = some_value();
      if (builder_.shape(candidate) == shape) return candidate;
    }
    return otherwise;
  }

  ValueId batch_norm(ValueId x, const std::string& name) {
    const graph::Shape channels{builder_.shape(x)[1]};
    const ValueId gamma = parameter(name + ".gamma", channels, true);
    const ValueId beta = parameter(name + ".beta", channels);
    const ValueId mean = state(name + ".running_mean", channels);
    const ValueId var = state(name + ".running_var", channels);
    return builder_.batch_norm(x, gamma, beta, mean, var, 0.1, {}, name);
  }

  ValueId append(const std::string& name) {
    const ValueId x = some_value();
    const graph::Shape shape = builder_.shape(x);
    switch (pick(0, 11)) {
      case 0:
      case 1: {
        const ValueId w = parameter(name + ".w", {4, shape[1], 3, 3});
        return builder_.conv2d(x, w, {.padding = {1, 1}}, name);
      }
      case 2:
        if (shape[1] == 4) return builder_.conv2d(x, shared_, {.padding = {1, 1}}, name);
        return builder_.relu(x, name);
      case 3:
      case 4:
        return batch_norm(x, name);
      case 5:
        return builder_.add(x, with_shape(shape, x), name);
      case 6:
        return builder_.mul(x, builder_.sigmoid(with_shape(shape, x), name + ".gate"), name);
      case 7:
        return builder_.dropout(x, 0.3, name);
      case 8:
        return builder_.tanh(x, name);
      case 9:
        return builder_.concat({x, with_shape(shape, x)}, 1, name);
      case 10:
        return builder_.max_pool(x, {.kernel = {3, 3}, .stride = {1, 1}, .padding = {1, 1}}, name);
      default:
        return builder_.scale(builder_.relu(x, name + ".relu"), 0.7, name);
    }
  }

  std::mt19937_64 random_;
  graph::Builder builder_;
  std::int64_t batch_ = 1;
  ValueId shared_;
  std::vector<ValueId> values_;
  std::vector<std::pair<std::string, models::Model::Initializer>> initializers_;
};

}  // namespace

models::Model make_random_model(std::uint64_t seed, int ops) {
  return RandomModel(seed).make(ops);
}

}  // namespace reprise::api
