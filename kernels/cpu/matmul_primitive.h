#pragma once

// One matrix product on oneDNN, for the matmul op and for the gates of recurrent layers.

#include <cstdint>

#include "kernels/cpu/primitive.h"

namespace reprise::kernels::cpu {

// y[batch.., M, P] = a[batch.., M, K] b[batch.., K, P] (+ bias[P]) (+ y). Strides are free.
struct MatmulSizes {
  Desc a, b, y;
  bool bias = false;
  bool accumulate = false;  // adds to what y holds
};

class MatmulPrimitive {
 public:
  explicit MatmulPrimitive(const MatmulSizes& sizes);

  [[nodiscard]] Bytes scratch_bytes() const { return scratch_bytes_; }
  // The layout of b, which the primitive chooses where `sizes.b` is any_layout().
  [[nodiscard]] const Desc& b_desc() const { return b_desc_; }
  // `bias` is null without one; `scratch` has scratch_bytes() bytes.
  void execute(const Run& run, const void* a, const void* b, const void* bias, void* y,
               void* scratch);

 private:
  explicit MatmulPrimitive(const dnnl::matmul::primitive_desc& pd, bool bias);

  bool bias_;
  Desc b_desc_;
  Bytes scratch_bytes_;
  Primitive primitive_;
};

// A matrix [rows, columns], row by row.
[[nodiscard]] Desc matrix(std::int64_t rows, std::int64_t columns,
                          graph::DType dtype = graph::DType::kF32);
// The same bytes read as [columns, rows].
[[nodiscard]] Desc transposed_matrix(std::int64_t rows, std::int64_t columns,
                                     graph::DType dtype = graph::DType::kF32);

}  // namespace reprise::kernels::cpu
