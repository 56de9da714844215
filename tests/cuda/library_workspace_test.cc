// The workspace that libraries get: it starts where they want it, ends within what the node booked
// wherever the arena puts it, and has no say in the bits.

#include "kernels/cuda/library_workspace.h"

#include <gtest/gtest.h>

#include "graph/builder.h"
#include "kernels/cuda/ops.h"
#include "tests/cuda/single_kernel.h"

namespace reprise::test::cuda {
namespace {

using kernels::cuda::Booking;
using kernels::cuda::Device;
using kernels::cuda::Run;
using kernels::cuda::StepScalars;

class LibraryWorkspaceTest : public testing::Test {
 protected:
  LibraryWorkspaceTest() { reset(); }
  ~LibraryWorkspaceTest() override { reset(); }
};

// Runs the only node of `graph`, which reads two values, with its workspace `offset` bytes behind a
// multiple of 256, and nothing of the double's memory after it.
std::vector<float> run_with_workspace_at(const graph::Graph& graph, std::size_t offset) {
  const graph::Node& node = graph.nodes[graph::NodeId(0)];
  const auto count = [&](graph::ValueId value) {
    return static_cast<std::size_t>(graph::element_count(graph.values[value].shape));
  };
  Device device(0, false);
  StepScalars scalars;
  Booking booking(graph, node, device, scalars);
  auto kernel = kernels::cuda::plan_kernel(booking);
  const Booking::Booked booked = booking.finish(std::move(kernel));
  EXPECT_GT(booked.node.workspace_bytes, 0);

  const DeviceArray<float> a(fractions(count(node.inputs[0]), 1));
  const DeviceArray<float> b(fractions(count(node.inputs[1]), 2));
  const DeviceArray<float> y(count(node.outputs[0]));
  const DeviceArray<std::byte> arena(offset +
                                     static_cast<std::size_t>(booked.node.workspace_bytes));
  const std::byte* const inputs[] = {reinterpret_cast<const std::byte*>(a.get()),
                                     reinterpret_cast<const std::byte*>(b.get())};
  std::byte* const outputs[] = {reinterpret_cast<std::byte*>(y.get())};
  kernels::cuda::UpdateBatch updates;  // stays empty
  booked.kernel->execute(Run{.inputs = inputs,
                             .outputs = outputs,
                             .workspace = arena.get() + offset,
                             .device = device,
                             .updates = updates,
                             .node = node.name});
  return y.values();
}

void expect_equal_bits_at_each_offset(const graph::Graph& graph) {
  const std::vector<float> first = run_with_workspace_at(graph, 0);
  for (const std::size_t offset : {64U, 128U, 192U}) {
    EXPECT_EQ(run_with_workspace_at(graph, offset), first) << offset;
  }
}

TEST_F(LibraryWorkspaceTest, AProductWorksWithItAtEachAddressOfTheArena) {
  graph::Builder b("product");
  b.matmul(b.input("a", {17, 9}), b.input("b", {9, 40}));
  expect_equal_bits_at_each_offset(b.graph());
}

TEST_F(LibraryWorkspaceTest, AConvolutionWorksWithItAtEachAddressOfTheArena) {
  graph::Builder b("convolution");
  b.conv2d(b.input("x", {2, 6, 9, 9}), b.parameter("w", {5, 6, 3, 3}), {.padding = {1, 1}});
  expect_equal_bits_at_each_offset(b.graph());
}

}  // namespace
}  // namespace reprise::test::cuda
