#pragma once

// What the case tests of this folder share: sessions of small models, data, and tensors as numbers.

#include <cstddef>
#include <cstring>
#include <gtest/gtest.h>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/session.h"
#include "base/error.h"
#include "graph/builder.h"
#include "models/model.h"

namespace reprise::api {

using Kind = models::Model::Initializer::Kind;

template <class T>
std::span<const std::byte> bytes_of(const std::vector<T>& data) {
  return std::as_bytes(std::span(data));
}

template <class T = float>
std::vector<T> numbers(const std::vector<std::byte>& plain) {
  std::vector<T> out(plain.size() / sizeof(T));
  std::memcpy(out.data(), plain.data(), plain.size());
  return out;
}

inline Budget bytes_budget(Bytes count) {
  return {.kind = Budget::Kind::kBytes, .bytes = count};
}

inline SessionOptions on(const std::string& device, const std::string& planner = "auto",
                         const Budget& budget = {}) {
  SessionOptions options;
  options.device = device;
  options.threads = 1;
  options.plan.planner = planner;
  options.plan.budget = budget;
  options.plan.search_moves = 5;    // any plan will do
  options.plan.find_floor = false;  // asked for by Budget::Kind::kFloor only
  return options;
}

inline std::unique_ptr<Session> make_session(const models::Model& model,
                                             const SessionOptions& options,
                                             const graph::TrainingOptions& training,
                                             const std::vector<models::Model>& evaluations = {}) {
  auto created = Session::create(model, evaluations, training, options);
  if (!std::holds_alternative<std::unique_ptr<Session>>(created)) {
    throw base::input_error("infeasible, the floor is {}",
                            std::get<planner::Infeasible>(created).floor);
  }
  return std::get<std::unique_ptr<Session>>(std::move(created));
}

// Values in [-1, 1] that differ from step to step.
inline std::vector<float> wave(std::size_t count, std::size_t step = 0) {
  std::vector<float> data(count);
  for (std::size_t i = 0; i < count; ++i) {
    data[i] = static_cast<float>((i * 37 + step * 11) % 23) / 11.0f - 1.0f;
  }
  return data;
}

inline std::vector<std::int32_t> ids(std::size_t count, std::size_t limit, std::size_t step = 0) {
  std::vector<std::int32_t> data(count);
  for (std::size_t i = 0; i < count; ++i) {
    data[i] = static_cast<std::int32_t>((i * 7 + step * 3) % limit);
  }
  return data;
}

// Every input of the graph, ids below `limit`, through `set(name, bytes)`.
template <class Set>
void feed(const graph::Graph& graph, std::size_t limit, std::size_t step, const Set& set) {
  for (const graph::Value& value : graph.values) {
    if (value.role != graph::Role::kInput) continue;
    const auto count = static_cast<std::size_t>(graph::element_count(value.shape));
    if (value.dtype == graph::DType::kI32) {
      set(value.name, bytes_of(ids(count, limit, step)));
    } else {
      set(value.name, bytes_of(wave(count, step)));
    }
  }
}

inline void feed(Session& session, const graph::Graph& graph, std::size_t limit, std::size_t step) {
  feed(graph, limit, step, [&](const std::string& name, std::span<const std::byte> plain) {
    session.set_input(name, plain);
  });
}

// The Error that `action` throws, as text; "" when it throws none.
template <class Action>
std::string error_of(const Action& action) {
  try {
    action();
  } catch (const base::Error& error) {
    return error.what();
  }
  return "";
}

}  // namespace reprise::api
