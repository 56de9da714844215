#pragma once

// The three convolutions as plain loops, and the algorithms that the double pretends to have.
//
// Algorithms differ in workspace, in time, and in how a long sum is cut: an algorithm with P parts
// gives sum number i to part i % P, rounds each part to f32 and adds them up. So a changed choice
// shows in the bits. An algorithm that is not deterministic takes a new order at every call.

#include <optional>
#include <vector>

#include "tests/cuda/double/dnn.h"

namespace reprise::test::cuda {

enum class Direction { kForward, kBackwardData, kBackwardFilter };

// The three tensors, whichever of them is the result.
struct ConvolutionCase {
  Direction direction = Direction::kForward;
  Convolution convolution;
  Layout x, w, y;

  [[nodiscard]] bool fits() const;  // do the shapes belong together?
  // cuDNN's table of data types, as far as it is about f32 and bf16: x, w and y are of one type,
  // the gradient of a filter too.
  [[nodiscard]] bool types_go_together() const { return x.bf16 == w.bf16 && x.bf16 == y.bf16; }
};

struct Algorithm {
  int number = 0;  // in cuDNN's enumeration of that direction
  std::size_t workspace_bytes = 0;
  double relative_time = 1;
  bool deterministic = true;
  int parts = 1;
};

// Those that can run the case, fastest first.
[[nodiscard]] std::vector<Algorithm> algorithms(const ConvolutionCase& c);
[[nodiscard]] std::optional<Algorithm> algorithm(const ConvolutionCase& c, int number);

// From plain arrays; the first is x (forward, filter) or dy (data), the second w, w or dy.
[[nodiscard]] std::vector<float> convolve(const ConvolutionCase& c, std::vector<float> first,
                                          std::vector<float> second, int parts, int rotation);

}  // namespace reprise::test::cuda
