// Three training steps against PyTorch's figures (tests/golden/make_golden.py, which says how they
// came about).

#include <cmath>
#include <cstring>
#include <fstream>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <vector>
#include <zlib.h>

#include "nlohmann/json.hpp"

#include "api/session.h"
#include "models/model.h"

namespace reprise::api {
namespace {

using nlohmann::json;

// The formulas of make_golden.py: 32 bits per (name, element), and f32 values in offset +- scale.
std::vector<std::uint32_t> bits(const std::string& name, std::int64_t count) {
  const auto start = static_cast<std::uint32_t>(
      crc32(0, reinterpret_cast<const Bytef*>(name.data()), static_cast<uInt>(name.size())));
  std::vector<std::uint32_t> out(static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < out.size(); ++i) {
    std::uint32_t x = static_cast<std::uint32_t>(i) * 2654435761U + start;
    x = (x ^ (x >> 16)) * 0x7feb352dU;
    x = (x ^ (x >> 15)) * 0x846ca68bU;
    out[i] = x ^ (x >> 16);
  }
  return out;
}

std::vector<float> values(const std::string& name, std::int64_t count, double scale,
                          double offset) {
  std::vector<float> out;
  for (std::uint32_t b : bits(name, count))
    out.push_back(static_cast<float>(offset + scale * (b * 0x1p-32 * 2 - 1)));
  return out;
}

std::vector<std::int32_t> ids(const std::string& name, std::int64_t count, std::uint32_t limit) {
  std::vector<std::int32_t> out;
  for (std::uint32_t b : bits(name, count)) out.push_back(static_cast<std::int32_t>(b % limit));
  return out;
}

template <class T>
std::span<const std::byte> bytes(const std::vector<T>& data) {
  return std::as_bytes(std::span(data));
}

std::vector<float> floats(const std::vector<std::byte>& plain) {
  std::vector<float> out(plain.size() / sizeof(float));
  std::memcpy(out.data(), plain.data(), plain.size());
  return out;
}

json load_golden(const std::string& name) {
  std::ifstream file(std::string(REPRISE_TEST_DATA) + "/golden_" + name + ".json");
  return json::parse(file);
}

// The summary of a tensor: its sum relative to the root of count * squares, its sum of squares, its
// first elements.
void expect_summary(const std::string& name, const std::vector<float>& got, const json& want,
                    double tolerance) {
  double sum = 0;
  double squares = 0;
  for (float v : got) {
    sum += static_cast<double>(v);
    squares += static_cast<double>(v) * static_cast<double>(v);
  }
  const double wanted_squares = want["squares"].get<double>();
  const double norm = std::sqrt(wanted_squares * static_cast<double>(got.size()));
  EXPECT_NEAR(sum, want["sum"].get<double>(), tolerance * norm + 1e-12) << name;
  EXPECT_NEAR(squares, wanted_squares, 2 * tolerance * wanted_squares + 1e-12) << name;
  const double largest = std::sqrt(wanted_squares);
  for (std::size_t i = 0; i < want["first"].size(); ++i) {
    EXPECT_NEAR(static_cast<double>(got[i]), want["first"][i].get<double>(),
                tolerance * largest + 1e-12)
        << name << i;
  }
}

struct Problem {
  models::Model model;
  graph::Optimizer optimizer;
  SessionOptions options;
};

std::unique_ptr<Session> make_session(const Problem& setup) {
  graph::TrainingOptions training{.optimizer = setup.optimizer};
  for (std::size_t i = 0; i < setup.model.graph.values.size(); ++i) {
    if (setup.model.graph.values[graph::ValueId(i)].role == graph::Role::kParameter) {
      training.fetch_gradients.push_back(graph::ValueId(i));
    }
  }
  auto created = Session::create(setup.model, {}, training, setup.options);
  EXPECT_TRUE(std::holds_alternative<std::unique_ptr<Session>>(created));
  return std::get<std::unique_ptr<Session>>(std::move(created));
}

void expect_first_gradients(const Session& session, const json& golden, double tolerance) {
  for (const auto& [name, want] : golden["first_gradients"].items()) {
    expect_summary("grad/" + name, floats(session.read("grad/" + name)), want, tolerance);
  }
}

void expect_final_state(const Session& session, const json& golden, double tolerance) {
  for (const char* group : {"parameters", "states"}) {
    for (const auto& [name, want] : golden[group].items()) {
      expect_summary(name, floats(session.read(name)), want, tolerance);
    }
  }
}

class Golden : public testing::TestWithParam<std::string> {};

TEST_P(Golden, Resnet20AgreesWithPyTorchOverThreeSteps) {
  const json golden = load_golden("resnet20");
  const Problem setup{
      .model = models::make_model("resnet20", {.batch = 4}),
      .optimizer =
          graph::SgdAttributes{.rate = {.base = 0.05}, .momentum = 0.9, .weight_decay = 1e-3},
      .options = {.device = GetParam()}};
  const auto session = make_session(setup);
  for (const Session::Variable& v : session->variables()) {
    if (v.role != graph::Role::kParameter) continue;
    const auto ends = [&](const char* suffix) { return v.name.ends_with(suffix); };
    const std::int64_t count = graph::element_count(v.shape);
    const bool norm = v.name.find("bn") != std::string::npos;
    const double fan =
        v.shape.size() == 4 ? static_cast<double>(v.shape[1] * v.shape[2] * v.shape[3]) : 1.0;
    const double scale = norm ? 0.2 : v.name.starts_with("head") ? 0.125 : std::sqrt(3.0 / fan);
    session->write(v.name,
                   bytes(values(v.name, count, scale, norm && ends(".weight") ? 1.0 : 0.0)));
  }
  const double tolerance = GetParam() == "cpu" ? 2e-5 : 1e-6;
  for (int step = 0; step < 3; ++step) {
    session->set_input("images",
                       bytes(values("images" + std::to_string(step), 4 * 28 * 28, 1.0, 0.0)));
    session->set_input("labels", bytes(ids("labels" + std::to_string(step), 4, 10)));
    const double loss = static_cast<double>(session->step());
    const double wanted = golden["losses"][static_cast<std::size_t>(step)].get<double>();
    EXPECT_NEAR(loss, wanted, 10 * tolerance * wanted) << step;
    if (step == 0) expect_first_gradients(*session, golden, tolerance);
  }
  // Batch norm over four images amplifies rounding from step to step.
  expect_final_state(*session, golden, 20 * tolerance);
}

TEST_P(Golden, LstmInChunksWithCarriedStateAgreesWithPyTorchOverThreeSteps) {
  const json golden = load_golden("lstm");
  const Problem setup{
      .model = models::make_model(
          "lstm",
          {.batch = 3, .hidden = 16, .layers = 2, .vocabulary = 11, .seq_len = 12, .chunk = 5}),
      .optimizer = graph::SgdAttributes{.rate = {.base = 0.5}},
      .options = {.device = GetParam(), .debug = true}};
  const auto session = make_session(setup);
  for (const Session::Variable& v : session->variables()) {
    if (v.role != graph::Role::kParameter) continue;
    const double scale = v.name == "embedding.weight" ? 0.5 : 0.3;
    session->write(v.name, bytes(values(v.name, graph::element_count(v.shape), scale, 0.0)));
  }
  const double tolerance = 1e-5;
  for (int step = 0; step < 3; ++step) {
    session->set_input("tokens", bytes(ids("tokens" + std::to_string(step), 36, 11)));
    session->set_input("targets", bytes(ids("targets" + std::to_string(step), 36, 11)));
    const double loss = static_cast<double>(session->step());
    const double wanted = golden["losses"][static_cast<std::size_t>(step)].get<double>();
    EXPECT_NEAR(loss, wanted, tolerance * wanted) << step;
    if (step == 0) expect_first_gradients(*session, golden, tolerance);
  }
  expect_final_state(*session, golden, tolerance);
}

INSTANTIATE_TEST_SUITE_P(Devices, Golden, testing::Values("reference", "cpu"),
                         [](const auto& tested) { return tested.param; });

}  // namespace
}  // namespace reprise::api
