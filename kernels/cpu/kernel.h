#pragma once

// A kernel is made once at plan time, where it books its workspace, and then only executes.

#include <cstddef>
#include <span>
#include <string>

#include "graph/random.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace reprise::kernels::cpu {

// One run of one node.
struct Run {
  std::span<const std::byte* const> inputs;
  std::span<std::byte* const> outputs;
  std::byte* workspace = nullptr;
  const graph::StepContext& step;
  const std::string& node;  // its name, for errors
  dnnl_stream_t stream = nullptr;

  template <class T>
  [[nodiscard]] const T* input(std::size_t i) const {
    return reinterpret_cast<const T*>(inputs[i]);
  }
  template <class T>
  [[nodiscard]] T* output(std::size_t i) const {
    return reinterpret_cast<T*>(outputs[i]);
  }
  template <class T>
  [[nodiscard]] T* scratch(std::size_t offset_bytes = 0) const {
    return reinterpret_cast<T*>(workspace + offset_bytes);
  }
};

class Kernel {
 public:
  virtual ~Kernel() = default;
  // Reads the inputs, writes every byte of the outputs. Allocates nothing. Throws Error(kInput) for
  // data out of range and Error(kDevice) when oneDNN fails, both naming the node.
  virtual void execute(const Run& run) = 0;
};

// A kernel from a callable f(const Run&).
template <class F>
class FunctionKernel final : public Kernel {
 public:
  explicit FunctionKernel(F function) : function_(std::move(function)) {}
  void execute(const Run& run) override { function_(run); }

 private:
  F function_;
};

}  // namespace reprise::kernels::cpu
