#pragma once

// What the kernel of one node asks for at plan time: workspace, algorithms, numbers that change
// from step to step, and what it costs. Every value lies plain (row-major) in device memory.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/prepared.h"
#include "graph/random.h"
#include "kernels/cuda/kernel.h"

namespace reprise::kernels::cuda {

using base::Bytes;

// Row-major, without gaps. Error(kInput) naming the value beyond 2^63.
[[nodiscard]] Bytes plain_bytes(const graph::Value& value);

// The numbers that the host works out before each step, without doubles among equal keys.
class StepScalars {
 public:
  using Function = std::function<double(const graph::StepContext&)>;
  // Index into StepValues::scalars. The same key must mean the same function.
  std::size_t add(const std::string& key, Function function);
  [[nodiscard]] std::size_t count() const { return functions_.size(); }
  void evaluate(const graph::StepContext& context, double* into) const;

 private:
  std::map<std::string, std::size_t> by_key_;
  std::vector<Function> functions_;
};

class Booking {
 public:
  Booking(const graph::Graph& graph, const graph::Node& node, Device& device, StepScalars& scalars);

  [[nodiscard]] const graph::Node& node() const { return node_; }
  [[nodiscard]] Device& device() const { return device_; }
  template <class A>
  [[nodiscard]] const A& attributes() const {
    return std::get<A>(node_.attributes);
  }
  [[nodiscard]] std::size_t inputs() const { return node_.inputs.size(); }
  // Inputs without the running sums of an accumulating node, which come last; those are in place
  // with their outputs, so the kernel adds to what the output holds.
  [[nodiscard]] std::size_t plain_inputs() const;
  [[nodiscard]] bool accumulates() const { return node_.accumulate; }
  [[nodiscard]] const graph::Value& input(std::size_t i) const;
  [[nodiscard]] const graph::Value& output(std::size_t o) const;

  // Reserves workspace for every algorithm; returns the offset of the piece, a multiple of the
  // arena's alignment (64).
  std::size_t workspace(Bytes bytes);
  // Another way to run the node, beside algorithm 0: call in order, with the workspace of all of
  // its pieces together. Returns its number (1, 2, ...). `relative_cost` is to algorithm 0's.
  std::size_t algorithm(const std::string& name, Bytes workspace_bytes, double relative_cost);
  // Offered in-place pairs are all of the op's; a kernel that cannot says so here.
  void never_in_place(int input, int output);
  // Only for outputs that hold a form of the backend's own (saved values of recurrent layers).
  void own_form(std::size_t output, Bytes bytes);

  void flops(double count) { prepared_.flops = count; }
  // Kernels that one run starts one after the other, where they are many.
  void launches(std::int64_t count) { launches_ = count; }
  // Bytes read and written, where that is not all of every input and output.
  void moves(double bytes) { prepared_.bytes_moved = bytes; }

  // Where in StepValues::scalars the kernel finds the number.
  [[nodiscard]] std::size_t step_scalar(const std::string& key, StepScalars::Function function) {
    return scalars_.add(key, std::move(function));
  }

  // Error(kInput) naming the node, its op and its shapes.
  [[nodiscard]] base::Error unsupported(const std::string& why) const;

  struct Booked {
    graph::PreparedNode node;
    std::vector<Bytes> own_bytes;  // per output; 0: plain
    std::unique_ptr<Kernel> kernel;
  };
  // Prices the node and settles in-place pairs.
  [[nodiscard]] Booked finish(std::unique_ptr<Kernel> kernel);

 private:
  const graph::Graph& graph_;
  const graph::Node& node_;
  Device& device_;
  StepScalars& scalars_;
  graph::PreparedNode prepared_;
  std::int64_t launches_ = 1;
  std::vector<double> relative_costs_;
  std::vector<std::pair<int, int>> not_in_place_;
  std::vector<Bytes> own_bytes_;
};

}  // namespace reprise::kernels::cuda
