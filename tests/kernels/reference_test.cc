// The reference backend on its own: what it stores and books, and values worked out by hand. Its
// gradients are in reference_gradient_test.cc.

#include <cmath>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "graph/builder.h"
#include "tests/kernels/allocation_counter.h"
#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

using graph::Builder;
using graph::DType;
using testing::HasSubstr;

Interpreter reference(const graph::Graph& graph) {
  return Interpreter(prepare_on("reference", graph));
}

std::vector<double> doubles(Interpreter& run, const std::string& name) {
  const auto bytes = run.stored(name);
  const auto* first = reinterpret_cast<const double*>(bytes.data());
  return {first, first + bytes.size() / sizeof(double)};
}

TEST(Reference, StoresFloatsAsDoublesAndTheRestAsItIs) {
  Builder b("bytes");
  const ValueId x = b.input("x", {1, 3, 4, 4});
  b.input("ids", {5}, DType::kI32);
  b.max_pool(x, {.kernel = {2, 2}, .stride = {2, 2}}, "pool");
  const auto run = reference(b.finish());
  EXPECT_EQ(run.prepared().value_bytes[run.id("x")], 3 * 16 * 8);
  EXPECT_EQ(run.prepared().value_bytes[run.id("ids")], 5 * 4);
  EXPECT_EQ(run.prepared().value_bytes[run.id("pool.indices")], 3 * 4);
  EXPECT_EQ(run.prepared().value_layouts[run.id("x")], "plain");
}

TEST(Reference, RefusesHostBuffersOfAnotherSize) {
  Builder b("sizes");
  b.input("x", {3});
  auto run = reference(b.finish());
  try {
    run.set("x", std::vector<float>(4));
    FAIL() << "expected an error";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kInput);
    EXPECT_THAT(error.what(), testing::AllOf(HasSubstr("'x'"), HasSubstr("12"), HasSubstr("16")));
  }
}

// Windows 2x3 full of ties: the first maximum in window order wins. The window's first
// column lies in the padding, so x[0][0] is at position 1.
TEST(Reference, TheFirstMaximumOfAWindowWins) {
  Builder b("ties");
  const ValueId x = b.input("x", {1, 1, 2, 4});
  b.add_output(b.max_pool(x, {.kernel = {2, 3}, .stride = {1, 2}, .padding = {0, 1}}, "y"));
  auto run = reference(b.finish());
  run.set<float>("x", {5, 5, 1, 7,  //
                       5, 0, 7, 7});
  run.step();
  EXPECT_EQ(run.get("y"), (std::vector<float>{5, 7}));
  EXPECT_EQ(run.get<std::uint8_t>("y.indices"), (std::vector<std::uint8_t>{1, 2}));
}

// Abramowitz and Stegun, table 26.1: Phi(1) = 0.841344746068543, Phi(2) = 0.977249868051821.
TEST(Reference, GeluIsExact) {
  Builder b("gelu");
  b.add_output(b.gelu(b.input("x", {4}), "y"));
  auto run = reference(b.finish());
  run.set<float>("x", {0, 1, -1, 2});
  run.step();
  const auto y = doubles(run, "y");
  EXPECT_EQ(y[0], 0.0);
  EXPECT_NEAR(y[1], 0.841344746068543, 1e-15);
  EXPECT_NEAR(y[2], -(1 - 0.841344746068543), 1e-15);
  EXPECT_NEAR(y[3], 2 * 0.977249868051821, 1e-14);
}

// One 3x3 image, kernel [[1,2],[3,4]], dilation 2: 1*1 + 2*3 + 3*7 + 4*9 = 64, and 0.5 of bias.
TEST(Reference, ConvolutionIsACorrelationWithDilation) {
  Builder b("conv");
  b.add_output(b.conv2d(b.input("x", {1, 1, 3, 3}), b.parameter("w", {1, 1, 2, 2}),
                        b.parameter("bias", {1}), {.dilation = {2, 2}}, "y"));
  auto run = reference(b.finish());
  run.set<float>("x", {1, 2, 3, 4, 5, 6, 7, 8, 9});
  run.set<float>("w", {1, 2, 3, 4});
  run.set<float>("bias", {0.5});
  run.step();
  EXPECT_EQ(run.get("y"), (std::vector<float>{64.5}));
}

// One step of one unit from zero state and bias: i = f = o = sigmoid(0) = 1/2, g = tanh(1), so
// c = tanh(1) / 2, h = tanh(c) / 2. The order of the gates shows: only row 2 (g) has a weight.
TEST(Reference, LstmGatesComeInTheOrderIFGO) {
  Builder b("lstm");
  const auto r = b.lstm(b.input("x", {1, 1, 1}), b.input("h0", {1, 1}), b.input("c0", {1, 1}),
                        b.parameter("w_ih", {4, 1}), b.parameter("w_hh", {4, 1}),
                        b.parameter("bias", {4}), "cell");
  b.add_output(r.h_n);
  b.add_output(r.c_n);
  auto run = reference(b.finish());
  for (const char* zero : {"h0", "c0"}) run.set<float>(zero, {0});
  run.set<float>("x", {1});
  run.set<float>("w_ih", {0, 0, 1, 0});
  run.set<float>("w_hh", {0, 0, 0, 0});
  run.set<float>("bias", {0, 0, 0, 0});
  run.step();
  const double c = std::tanh(1.0) / 2;
  EXPECT_NEAR(doubles(run, "cell.c_n")[0], c, 1e-15);
  EXPECT_NEAR(doubles(run, "cell.h_n")[0], std::tanh(c) / 2, 1e-15);
}

// u = sigmoid(2) (row 0), r = sigmoid(-1) (row 1), n = tanh(0.25 + r (0.5 h + 0.75)), h = 2:
// h' = (1 - u) n + u h.
TEST(Reference, GruGatesComeInTheOrderURNWithTheResetBehindTheProduct) {
  Builder b("gru");
  const auto cell =
      b.gru(b.input("x", {1, 1, 1}), b.input("h0", {1, 1}), b.parameter("w_ih", {3, 1}),
            b.parameter("w_hh", {3, 1}), b.parameter("bias", {4}), "cell");
  b.add_output(cell.h_n);
  auto run = reference(b.finish());
  run.set<float>("x", {1});
  run.set<float>("h0", {2});
  run.set<float>("w_ih", {2, -1, 0});
  run.set<float>("w_hh", {0, 0, 0.5});
  run.set<float>("bias", {0, 0, 0.25, 0.75});
  run.step();
  const double u = 1 / (1 + std::exp(-2.0));
  const double r = 1 / (1 + std::exp(1.0));
  const double n = std::tanh(0.25 + r * (0.5 * 2 + 0.75));
  EXPECT_NEAR(doubles(run, "cell.h_n")[0], (1 - u) * n + u * 2, 1e-15);
}

TEST(Reference, IndicesOfAPoolMayBeSlicedAndJoined) {
  Builder b("indices");
  const ValueId x = b.input("x", {1, 2, 2, 2});
  b.max_pool(x, {.kernel = {2, 2}, .stride = {2, 2}}, "pool");
  const ValueId indices = b.graph().nodes[NodeId(0)].outputs[1];
  b.add_output(b.concat({b.slice(indices, 1, 1, 2), b.slice(indices, 1, 0, 1)}, 1, "swapped"));
  auto run = reference(b.finish());
  run.set<float>("x", {0, 9, 0, 0, 0, 0, 0, 9});
  run.step();
  EXPECT_EQ(run.get<std::uint8_t>("swapped"), (std::vector<std::uint8_t>{3, 1}));
}

// Multiplies and adds: conv 2 * (2*4*5*6 outputs) * (3*3*3 weights each) = 12960, matmul in three
// batches 2 * 3 * 5*7*2 = 420.
TEST(Reference, BooksTheOperationsOfConvolutionAndMatmul) {
  Builder b("flops");
  b.conv2d(b.input("x", {2, 3, 5, 6}), b.parameter("w", {4, 3, 3, 3}), {.padding = {1, 1}}, "conv");
  b.matmul(b.input("a", {3, 5, 7}), b.input("b", {3, 7, 2}), {}, "product");
  const auto run = reference(b.finish());
  EXPECT_DOUBLE_EQ(run.prepared().nodes[NodeId(0)].flops, 12960);
  EXPECT_NEAR(run.prepared().nodes[NodeId(1)].flops, 420, 1e-9);
  for (const auto& node : run.prepared().nodes) EXPECT_GT(node.cost_ns, 0);
}

// Every node of every case with a warm-up before: the second run allocates nothing.
TEST(Reference, KernelsAllocateNothing) {
  if (!kernels::AllocationCounter::works()) GTEST_SKIP() << "sanitizers own the allocator";
  for (const OpCase& op_case : op_cases()) {
    const BuiltCase built = build(op_case);
    const auto program = prepare_on("reference", training_graph(op_case, built));
    Interpreter run(prepare_on("reference", program->prepared().graph));
    fill_sources(built, 1, run);
    run.step();
    const graph::Graph& graph = program->prepared().graph;
    for (std::size_t n = 0; n < graph.nodes.size(); ++n) {
      const graph::Node& node = graph.nodes[NodeId(n)];
      if (node.accumulate) continue;  // its sum has moved on; the plain form is the same kernel
      std::vector<const std::byte*> inputs;
      std::vector<std::byte*> outputs;
      for (const ValueId v : node.inputs) inputs.push_back(run.stored(graph.values[v].name).data());
      for (const ValueId v : node.outputs)
        outputs.push_back(run.stored(graph.values[v].name).data());
      alignas(64) static std::byte workspace[1 << 16];
      ASSERT_LE(program->prepared().nodes[NodeId(n)].workspace_bytes, 1 << 16);
      kernels::AllocationCounter::start();
      program->run(NodeId(n), {inputs, outputs, workspace}, {.seed = 1, .step = 0});
      kernels::AllocationCounter::stop();
      EXPECT_EQ(kernels::AllocationCounter::counts().ours, 0) << op_case.name << " " << node.name;
    }
  }
}

TEST(Backends, UnknownNamesAreRefusedWithTheKnownOnes) {
  try {
    (void)kernels::make_backend("tpu", {});
    FAIL() << "expected an error";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::kInput);
    EXPECT_THAT(error.what(),
                testing::AllOf(HasSubstr("'tpu'"), HasSubstr("cpu"), HasSubstr("reference")));
  }
}

}  // namespace
}  // namespace reprise::test
