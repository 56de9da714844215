#pragma once

// What the doubles of cuBLAS and cuDNN share: an operation with a workspace, numbers of f32 or
// bf16.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/cuda/double/engine.h"

namespace reprise::test::cuda {

// A piece of device memory that a library may write as it likes, or nothing.
struct Workspace {
  void* begin = nullptr;
  std::size_t bytes = 0;
};

// Queues a library's kernel. All of the workspace is overwritten before and after it. What it
// writes must not overlap anything else that it touches: that is a fault. The engine's mutex is
// held.
cudaError_t queue_library_call(cudaStream_t stream, const std::string& name,
                               std::vector<Range> touched, const Workspace& workspace,
                               std::function<void()> work);

// f32 as the tensor cores read it: 10 bits behind the point.
[[nodiscard]] float as_tensor_float(float value);

// An array of f32 or bf16, the latter being the upper half of an f32.
class Numbers {
 public:
  Numbers(std::byte* data, bool bf16) : data_(data), bf16_(bf16) {}
  [[nodiscard]] float at(std::int64_t i) const;
  void set(std::int64_t i, float value) const;  // rounds to nearest, ties to even

 private:
  std::byte* data_;
  bool bf16_;
};

}  // namespace reprise::test::cuda
