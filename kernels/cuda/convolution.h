#pragma once

// One convolution as cuDNN's legacy calls see it: descriptors, and the algorithm of a direction.

#include <cstddef>
#include <cstdint>
#include <cudnn.h>
#include <vector>

#include "kernels/cuda/booking.h"
#include "kernels/cuda/status.h"

namespace reprise::kernels::cuda {

template <class Handle, cudnnStatus_t (*kCreate)(Handle*), cudnnStatus_t (*kDestroy)(Handle)>
class Descriptor {
 public:
  explicit Descriptor(const char* call) { check(kCreate(&handle_), call); }
  ~Descriptor() { kDestroy(handle_); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  [[nodiscard]] Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using TensorDescriptor =
    Descriptor<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using FilterDescriptor =
    Descriptor<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor =
    Descriptor<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
               cudnnDestroyConvolutionDescriptor>;

enum class Direction { kForward, kBackwardData, kBackwardFilter };

// What x, w and y hold, all three of them. Sums are f32 in each case.
enum class Factors {
  kF32,
  kBF16,
  kBF16InF32,  // numbers of bf16 stored as f32: TF32 holds them exactly, so that tensor cores may
               // be used; not by an algorithm that transforms them first and would then round
};

// An algorithm, in the enumeration of its direction.
struct Choice {
  int algorithm = 0;
  cudnnMathType_t math = CUDNN_FMA_MATH;
  std::size_t workspace_bytes = 0;
};

// x[N,C,H,W] w[O,C/groups,KH,KW] => y[N,O,H',W'] with the attributes of the booked node.
class Convolution {
 public:
  Convolution(const Booking& b, Factors factors, const graph::Shape& x, const graph::Shape& w,
              const graph::Shape& y);

  [[nodiscard]] cudnnTensorDescriptor_t x() const { return x_.get(); }
  [[nodiscard]] cudnnTensorDescriptor_t y() const { return y_.get(); }
  [[nodiscard]] cudnnFilterDescriptor_t w() const { return w_.get(); }
  [[nodiscard]] cudnnConvolutionDescriptor_t get() const { return convolution_.get(); }

  // Asks cuDNN, once for the sizes, and sets the mode of calculation that goes with the choice.
  // Throws Booking::unsupported where no algorithm will do.
  [[nodiscard]] Choice choose(const Booking& b, Direction direction) const;

 private:
  template <class Api>
  [[nodiscard]] Choice best_of(const Booking& b) const;
  void set_math(cudnnMathType_t type) const;

  Factors factors_;
  bool tensor_floats_;
  TensorDescriptor x_, y_;
  FilterDescriptor w_;
  ConvolutionDescriptor convolution_;
  Bytes most_bytes_ = 0;
  std::vector<std::int64_t> key_;
};

}  // namespace reprise::kernels::cuda
