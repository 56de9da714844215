#pragma once

// Tests that run on every backend of this build.

#include <gtest/gtest.h>
#include <string>
#include <vector>

#include "graph/autodiff.h"
#include "tests/support/interpreter.h"

namespace reprise::test {

using graph::Shape;

class OnBackend : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    if (!backend_is_built(GetParam())) GTEST_SKIP() << "this build has no backend " << GetParam();
  }

  [[nodiscard]] Interpreter prepare(const graph::Graph& graph,
                                    const InterpreterOptions& options = {}) const {
    return Interpreter(prepare_on(GetParam(), graph), options);
  }
};

// The plain run, then everything that must not change a bit of it.
inline const std::vector<InterpreterOptions>& run_options() {
  static const std::vector<InterpreterOptions> all{
      {}, {.inplace = true}, {.recompute = true}, {.inplace = true, .recompute = true}};
  return all;
}

// Gradients of `values` as outputs "grad/<value>", no updates.
inline graph::Graph with_gradients(const graph::Graph& forward, std::vector<ValueId> values) {
  return graph::make_training_graph(forward,
                                    {.fetch_gradients = std::move(values), .update = false})
      .graph;
}

inline std::string backend_test_name(const testing::TestParamInfo<std::string>& test) {
  return test.param;
}

#define REPRISE_ON_EVERY_BACKEND(suite) \
  INSTANTIATE_TEST_SUITE_P(Backends, suite, testing::ValuesIn(tested_backends()), backend_test_name)

inline void expect_near(const std::vector<float>& got, const std::vector<double>& right,
                        double tolerance = 2e-6) {
  ASSERT_EQ(got.size(), right.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(got[i]), right[i], tolerance) << "element " << i;
  }
}

}  // namespace reprise::test
