// The costs that the CPU backend estimates: what a plan relies on is their order.

#include <memory>

#include "gtest/gtest.h"

#include "base/error.h"
#include "graph/builder.h"
#include "kernels/backend.h"

namespace reprise::kernels {
namespace {

using graph::OpKind;
using graph::ValueId;

// images[N,64,28,28] -conv 3x3-> relu -> flatten
std::unique_ptr<Program> prepare(std::int64_t batch) {
  graph::Builder builder("costs");
  const ValueId images = builder.input("images", {batch, 64, 28, 28});
  const ValueId filter = builder.parameter("filter", {64, 64, 3, 3});
  const ValueId y = builder.relu(builder.conv2d(images, filter, {.padding = {1, 1}}));
  builder.add_output(builder.flatten(y));
  return make_cpu_backend({.threads = 1})->prepare(builder.finish());
}

std::int64_t cost_of(const Program& program, OpKind op) {
  const graph::PreparedGraph& prepared = program.prepared();
  for (std::size_t i = 0; i < prepared.graph.nodes.size(); ++i) {
    const NodeId node(i);
    if (prepared.graph.nodes[node].op == op) return prepared.nodes[node].cost_ns;
  }
  return -1;
}

class CpuCosts : public ::testing::Test {
 protected:
  void SetUp() override {
    try {
      (void)make_cpu_backend({.threads = 1});
    } catch (const base::Error& error) {
      GTEST_SKIP() << error.what();  // built without oneDNN
    }
  }
};

// A convolution of 3x3 filters over 64 channels does 1152 operations for each value that it writes,
// 288 for each byte; whatever the machine, that takes many times what a pass over the bytes does.
TEST_F(CpuCosts, ConvolutionsCostManyTimesWhatTheirActivationsDo) {
  const auto program = prepare(16);
  const std::int64_t convolution = cost_of(*program, OpKind::kConv2d);
  const std::int64_t relu = cost_of(*program, OpKind::kRelu);
  EXPECT_GT(relu, 0);
  EXPECT_GT(convolution, 10 * relu);
}

TEST_F(CpuCosts, ReshapesAreFree) {
  EXPECT_EQ(cost_of(*prepare(16), OpKind::kReshape), 0);
}

TEST_F(CpuCosts, GrowWithTheBatch) {
  const auto small = prepare(16);
  const auto large = prepare(160);
  for (const OpKind op : {OpKind::kConv2d, OpKind::kRelu}) {
    EXPECT_GT(cost_of(*large, op), 5 * cost_of(*small, op));
    EXPECT_LE(cost_of(*large, op), 10 * cost_of(*small, op)) << "a call has a cost of its own";
  }
}

}  // namespace
}  // namespace reprise::kernels
