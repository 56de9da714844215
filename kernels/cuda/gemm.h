#pragma once

// Products of row-major matrices by cuBLAS, for every op that needs one. Factors are f32 or bf16,
// sums f32 in either case.

#include <initializer_list>

#include "kernels/cuda/booking.h"
#include "kernels/cuda/library_workspace.h"

namespace reprise::kernels::cuda {

// C[rows, columns] = op(A)[rows, inner] op(B)[inner, columns], `batch` times.
struct GemmSizes {
  std::int64_t rows = 0, columns = 0, inner = 0;
  bool transpose_a = false;  // A is stored as [inner, rows]
  bool transpose_b = false;  // B is stored as [columns, inner]
  // From one stored row to the next, in elements; 0: the rows lie side by side.
  std::int64_t stride_a = 0, stride_b = 0, stride_c = 0;
  // From one matrix of a batch to the next, in elements; 0: the matrices lie side by side.
  std::int64_t batch = 1;
  std::int64_t step_a = 0, step_b = 0, step_c = 0;
  bool bf16_factors = false;  // A and B
  bool bf16_result = false;   // C, of bf16 factors: rounded once

  [[nodiscard]] double flops() const {
    return 2.0 * static_cast<double>(rows) * static_cast<double>(columns) *
           static_cast<double>(inner) * static_cast<double>(batch);
  }
};

// One piece of a node's workspace, large enough for each of the products that the node runs one
// after the other.
class GemmWorkspace {
 public:
  // Throws Booking::unsupported when a size does not fit cuBLAS's 32-bit counts.
  GemmWorkspace(Booking& booking, std::initializer_list<GemmSizes> products);

 private:
  friend void gemm(const Run& run, const GemmWorkspace& workspace, const GemmSizes& sizes,
                   const void* a, const void* b, void* c, bool accumulate);
  LibraryWorkspace piece_;
};

// Queues C = op(A) op(B), or C += op(A) op(B). `sizes` is among those the workspace was made for.
// An empty product queues nothing; one with inner = 0 clears C unless it accumulates.
void gemm(const Run& run, const GemmWorkspace& workspace, const GemmSizes& sizes, const void* a,
          const void* b, void* c, bool accumulate = false);

}  // namespace reprise::kernels::cuda
