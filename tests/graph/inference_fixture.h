#pragma once

// A builder and short names for what the tests of shape inference do with it.

#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <utility>
#include <vector>

#include "graph/builder.h"
#include "tests/graph/small_graphs.h"

namespace reprise::graph {

class Inference : public testing::Test {
 protected:
  ValueId f32(Shape shape) { return b.input(fmt::format("x{}", count++), std::move(shape)); }
  ValueId i32(Shape shape) {
    return b.input(fmt::format("x{}", count++), std::move(shape), DType::kI32);
  }
  Shape shape(ValueId value) { return b.shape(value); }
  DType dtype(ValueId value) { return b.graph().values[value].dtype; }
  std::vector<ValueId> append(OpKind op, std::vector<ValueId> inputs,
                              const Attributes& attributes = NoAttributes{},
                              bool accumulate = false) {
    return b.append(op, std::move(inputs), attributes, {}, Phase::kBackward, accumulate);
  }
  std::string refusal(const std::function<void()>& action) { return input_error_of(action); }

  Builder b{"test"};
  int count = 0;
};

}  // namespace reprise::graph
