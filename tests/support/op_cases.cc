#include "tests/support/op_cases.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "base/error.h"
#include "graph/mixed_precision.h"

namespace reprise::test {
namespace {

std::uint64_t name_hash(std::string_view name) {  // FNV-1a
  std::uint64_t hash = 14695981039346656037ULL;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL;
  return hash;
}

std::vector<double> draw(const Fill& fill, std::size_t count, std::mt19937_64& random) {
  std::vector<double> values(count);
  std::uniform_real_distribution<double> uniform(fill.low, fill.high);
  switch (fill.kind) {
    case Fill::Kind::kUniform:
      for (double& v : values) v = uniform(random);
      break;
    case Fill::Kind::kAwayFromZero:
      for (double& v : values) {
        do v = uniform(random);
        while (std::abs(v) < 0.05);
      }
      break;
    case Fill::Kind::kDistinct: {
      const double step = (fill.high - fill.low) / static_cast<double>(count);
      for (std::size_t i = 0; i < count; ++i) values[i] = fill.low + step * static_cast<double>(i);
      std::shuffle(values.begin(), values.end(), random);
      break;
    }
    case Fill::Kind::kIntegers: {
      std::uniform_int_distribution<int> integers(static_cast<int>(fill.low),
                                                  static_cast<int>(fill.high) - 1);
      for (double& v : values) v = integers(random);
      break;
    }
    case Fill::Kind::kGiven:
      for (std::size_t i = 0; i < count; ++i) values[i] = fill.given[i % fill.given.size()];
      break;
  }
  return values;
}

}  // namespace

ValueId CaseBuilder::filled(ValueId value, Fill fill) {
  fills_.emplace(builder_.graph().values[value].name, std::move(fill));
  return value;
}

ValueId CaseBuilder::x(std::string_view name, Shape shape, Fill fill) {
  differentiable_.push_back(builder_.input(name, std::move(shape)));
  return filled(differentiable_.back(), std::move(fill));
}

ValueId CaseBuilder::w(std::string_view name, Shape shape, Fill fill) {
  differentiable_.push_back(builder_.parameter(name, std::move(shape)));
  return filled(differentiable_.back(), std::move(fill));
}

ValueId CaseBuilder::constant(std::string_view name, Shape shape, Fill fill) {
  return filled(builder_.input(name, std::move(shape)), std::move(fill));
}

ValueId CaseBuilder::state(std::string_view name, Shape shape, Fill fill) {
  return filled(builder_.state(name, std::move(shape)), std::move(fill));
}

ValueId CaseBuilder::ids(std::string_view name, Shape shape, int low, int high) {
  return filled(builder_.input(name, std::move(shape), graph::DType::kI32),
                {.kind = Fill::Kind::kIntegers,
                 .low = static_cast<double>(low),
                 .high = static_cast<double>(high)});
}

ValueId CaseBuilder::ids(std::string_view name, Shape shape, std::vector<double> values) {
  return filled(builder_.input(name, std::move(shape), graph::DType::kI32),
                given(std::move(values)));
}

void CaseBuilder::out(ValueId y) {
  outputs_.push_back(y);
  builder_.add_output(y);
}

void CaseBuilder::fetch(ValueId y) {
  builder_.add_output(y);
}

BuiltCase CaseBuilder::finish() {
  ValueId loss{};
  for (std::size_t i = 0; i < outputs_.size(); ++i) {
    const std::string number = std::to_string(i);
    const ValueId weights =
        constant("loss.weights" + number, builder_.shape(outputs_[i]), between(0.5, 1.5));
    const ValueId part =
        builder_.reduce_sum(builder_.mul(outputs_[i], weights, "loss.weighted" + number), {}, false,
                            "loss.part" + number);
    loss = loss.valid() ? builder_.add(loss, part, "loss.sum" + number) : part;
  }
  builder_.set_loss(loss);
  return {builder_.finish(), std::move(differentiable_), std::move(fills_)};
}

BuiltCase build(const OpCase& op_case) {
  std::string name = op_case.name;
  std::ranges::replace(name, '/', '.');
  CaseBuilder builder(name);
  op_case.build(builder);
  return builder.finish();
}

std::optional<BuiltCase> in_bf16(const BuiltCase& built) {
  BuiltCase mixed{graph::mixed_precision(built.graph), {}, built.fills};
  const auto& values = mixed.graph.values;
  const auto is_bf16 = [](const graph::Value& v) { return v.dtype == graph::DType::kBF16; };
  if (std::none_of(values.begin(), values.end(), is_bf16)) return std::nullopt;
  for (const ValueId id : built.differentiable) {
    const auto found = std::find_if(values.begin(), values.end(), [&](const graph::Value& v) {
      return v.name == built.graph.values[id].name;
    });
    mixed.differentiable.push_back(ValueId(static_cast<std::size_t>(found - values.begin())));
  }
  return mixed;
}

graph::Graph training_graph(const OpCase& op_case, const BuiltCase& built) {
  graph::TrainingOptions options;
  options.fetch_gradients = built.differentiable;
  options.update = op_case.optimizer.has_value();
  if (op_case.optimizer) options.optimizer = *op_case.optimizer;
  return graph::make_training_graph(built.graph, options).graph;
}

void fill_sources(const BuiltCase& built, std::uint64_t seed, Interpreter& interpreter) {
  for (const graph::Value& value : interpreter.prepared().graph.values) {
    if (value.producer.valid()) continue;
    const auto count = static_cast<std::size_t>(graph::element_count(value.shape));
    std::vector<double> values(count, 0.0);
    if (value.role != graph::Role::kOptimizerState) {
      const auto fill = built.fills.find(value.name);
      REPRISE_CHECK(fill != built.fills.end(), "the case does not say how to fill '{}'",
                    value.name);
      std::mt19937_64 random(name_hash(value.name) ^ (seed * 0x9E3779B97F4A7C15ULL));
      values = draw(fill->second, count, random);
    }
    if (value.dtype == graph::DType::kI32) {
      interpreter.set(value.name, std::vector<std::int32_t>(values.begin(), values.end()));
    } else {
      interpreter.set(value.name, std::vector<float>(values.begin(), values.end()));
    }
  }
}

const std::vector<OpCase>& op_cases() {
  static const std::vector<OpCase> cases = [] {
    std::vector<OpCase> all;
    add_dense_cases(all);
    add_norm_cases(all);
    add_pointwise_cases(all);
    add_pool_cases(all);
    add_shape_cases(all);
    add_sequence_cases(all);
    add_loss_cases(all);
    return all;
  }();
  return cases;
}

}  // namespace reprise::test
