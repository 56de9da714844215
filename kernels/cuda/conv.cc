// Convolutions by cuDNN's legacy calls on plain images (NCHW). f32 is calculated as exactly as
// Device::tensor_floats() says, bf16 on tensor cores with sums in f32.
//
// The gradient of a weight is f32, whatever x and dy are, and cuDNN's call does not mix types: bf16
// images come with a bf16 filter, which would round the gradient. So x and dy are copied to f32 in
// the workspace, some images at a time, and the call is the one of f32. Nothing is lost: a product
// of two bf16 numbers is exact in f32, and TF32, which tensor cores take f32 for, has room for all
// bits of bf16. What is paid for is the copies' time and a bounded workspace.

#include <algorithm>

#include "kernels/cuda/broadcast.h"
#include "kernels/cuda/convolution.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/element_type.h"
#include "kernels/cuda/library_workspace.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/pointwise.h"

namespace reprise::kernels::cuda {
namespace {

using graph::Shape;

// Two operations for each element of y and weight of its group.
double flops_of(const Shape& w, const Shape& y) {
  return 2.0 * static_cast<double>(graph::element_count(y)) * static_cast<double>(w[1]) *
         static_cast<double>(w[2]) * static_cast<double>(w[3]);
}

constexpr float kOne = 1.0F;
constexpr float kZero = 0.0F;

std::unique_ptr<Kernel> nothing_to_do() {
  return make_kernel([](const Run&) {});
}

Factors factors_of(const graph::Value& x) {
  return x.dtype == graph::DType::kBF16 ? Factors::kBF16 : Factors::kF32;
}

// dw = the gradient of images of which `x` and `dy` are the first, plus factor * dw.
void add_weight_grad(const Run& run, const Convolution& c, const Choice& choice,
                     const LibraryWorkspace& workspace, const void* x, const void* dy,
                     float factor) {
  check(cudnnConvolutionBackwardFilter(
            run.device.dnn(), &kOne, c.x(), x, c.y(), dy, c.get(),
            static_cast<cudnnConvolutionBwdFilterAlgo_t>(choice.algorithm), workspace.in(run),
            workspace.bytes(), &factor, c.w(), run.output(0)),
        "cudnnConvolutionBackwardFilter");
}

// Of bf16 images, by copies of some of them in f32.
class CopiedWeightGrad final : public Kernel {
 public:
  CopiedWeightGrad(Booking& b, const Shape& x, const Shape& dy, const Shape& dw)
      : images_(x[0]),
        at_once_(images_at_once(x, dy)),
        x_floats_(graph::element_count(x) / images_),
        dy_floats_(graph::element_count(dy) / images_),
        dw_bytes_(graph::element_count(dw) * static_cast<Bytes>(sizeof(float))),
        accumulates_(b.accumulates()),
        most_(b, at_once_, x, dy, dw),
        x_at_(b.workspace(at_once_ * x_floats_ * static_cast<Bytes>(sizeof(float)))),
        dy_at_(b.workspace(at_once_ * dy_floats_ * static_cast<Bytes>(sizeof(float)))) {
    const std::int64_t left = images_ % at_once_;
    if (left > 0) rest_ = std::make_unique<Piece>(b, left, x, dy, dw);
    const auto pieces = images_ / at_once_ + (left > 0 ? 1 : 0);
    b.launches(3 * pieces);
    // Read, written and read again.
    b.moves(10.0 * static_cast<double>(images_ * (x_floats_ + dy_floats_)));
    workspace_ = LibraryWorkspace(
        b, static_cast<Bytes>(std::max(most_.choice.workspace_bytes,
                                       rest_ ? rest_->choice.workspace_bytes : std::size_t{0})));
  }

  void execute(const Run& run) override {
    if (accumulates_) copy_to_output(run, 2, 0, dw_bytes_);
    for (std::int64_t first = 0; first < images_; first += at_once_) {
      const bool whole = first + at_once_ <= images_;
      const std::int64_t images = whole ? at_once_ : images_ - first;
      launch_cast(run.input<BFloat16>(0) + first * x_floats_, run.scratch(x_at_),
                  images * x_floats_, run.stream());
      launch_cast(run.input<BFloat16>(1) + first * dy_floats_, run.scratch(dy_at_),
                  images * dy_floats_, run.stream());
      const Piece& piece = whole ? most_ : *rest_;
      add_weight_grad(run, piece.convolution, piece.choice, workspace_, run.scratch(x_at_),
                      run.scratch(dy_at_), accumulates_ || first > 0 ? kOne : kZero);
    }
  }

 private:
  struct Piece {
    Piece(const Booking& b, std::int64_t images, Shape x, Shape dy, const Shape& dw)
        : convolution(b, Factors::kBF16InF32, with(std::move(x), images), dw,
                      with(std::move(dy), images)),
          choice(convolution.choose(b, Direction::kBackwardFilter)) {}
    static Shape with(Shape shape, std::int64_t images) {
      shape[0] = images;
      return shape;
    }
    Convolution convolution;
    Choice choice;
  };

  // Whose copies are at most 128 MiB; in eights, so that each piece starts at a multiple of 16
  // bytes. It depends on the sizes alone, as the order of the sums then does.
  static std::int64_t images_at_once(const Shape& x, const Shape& dy) {
    constexpr std::int64_t kMostFloats = std::int64_t{32} << 20;
    const std::int64_t floats = (graph::element_count(x) + graph::element_count(dy)) / x[0];
    return std::min(x[0], std::max<std::int64_t>(8, kMostFloats / floats / 8 * 8));
  }

  std::int64_t images_, at_once_, x_floats_, dy_floats_;
  Bytes dw_bytes_;
  bool accumulates_;
  Piece most_;
  std::size_t x_at_, dy_at_;
  std::unique_ptr<Piece> rest_;
  LibraryWorkspace workspace_;
};

}  // namespace

// x w bias? => y
std::unique_ptr<Kernel> plan_conv2d(Booking& b) {
  const Shape& w = b.input(1).shape;
  const Shape& y = b.output(0).shape;
  const std::int64_t count = graph::element_count(y);
  if (count == 0) return nothing_to_do();
  const auto c = std::make_shared<Convolution>(b, factors_of(b.input(0)), b.input(0).shape, w, y);
  const Choice choice = c->choose(b, Direction::kForward);
  const LibraryWorkspace workspace(b, static_cast<Bytes>(choice.workspace_bytes));
  const auto algorithm = static_cast<cudnnConvolutionFwdAlgo_t>(choice.algorithm);
  b.flops(flops_of(w, y));
  const bool bias = b.inputs() == 3;
  return with_element(b, b.output(0), [&]<class T>(std::type_identity<T>) {
    return make_kernel([=, channels = y[1], pixels = y[2] * y[3]](const Run& run) {
      check(cudnnConvolutionForward(run.device.dnn(), &kOne, c->x(), run.input(0), c->w(),
                                    run.input(1), c->get(), algorithm, workspace.in(run),
                                    workspace.bytes(), &kZero, c->y(), run.output(0)),
            "cudnnConvolutionForward");
      if (bias) {
        T* image = run.output<T>(0);
        launch_add_channels(run.input(2), channels, pixels, image, image, count, run.stream());
      }
    });
  });
}

// dy w => dx
std::unique_ptr<Kernel> plan_conv2d_grad_input(Booking& b) {
  const Shape& w = b.input(1).shape;
  const Shape& dx = b.output(0).shape;
  if (graph::element_count(dx) == 0) return nothing_to_do();
  const auto c = std::make_shared<Convolution>(b, factors_of(b.output(0)), dx, w, b.input(0).shape);
  const Choice choice = c->choose(b, Direction::kBackwardData);
  const LibraryWorkspace workspace(b, static_cast<Bytes>(choice.workspace_bytes));
  const auto algorithm = static_cast<cudnnConvolutionBwdDataAlgo_t>(choice.algorithm);
  b.flops(flops_of(w, b.input(0).shape));
  return make_kernel([=](const Run& run) {
    check(cudnnConvolutionBackwardData(run.device.dnn(), &kOne, c->w(), run.input(1), c->y(),
                                       run.input(0), c->get(), algorithm, workspace.in(run),
                                       workspace.bytes(), &kZero, c->x(), run.output(0)),
          "cudnnConvolutionBackwardData");
  });
}

// x dy acc? => dw
std::unique_ptr<Kernel> plan_conv2d_grad_weight(Booking& b) {
  const Shape& x = b.input(0).shape;
  const Shape& dw = b.output(0).shape;
  const Shape& dy = b.input(1).shape;
  const bool accumulates = b.accumulates();
  const Bytes dw_bytes = graph::element_count(dw) * static_cast<Bytes>(sizeof(float));
  if (graph::element_count(dy) == 0) {
    return make_kernel([=](const Run& run) {
      if (accumulates) return copy_to_output(run, 2, 0, dw_bytes);
      check(cudaMemsetAsync(run.outputs[0], 0, static_cast<std::size_t>(dw_bytes), run.stream()),
            "cudaMemsetAsync");
    });
  }
  b.flops(flops_of(dw, dy));
  if (b.input(0).dtype == graph::DType::kBF16) {
    return std::make_unique<CopiedWeightGrad>(b, x, dy, dw);
  }
  const auto c = std::make_shared<Convolution>(b, Factors::kF32, x, dw, dy);
  const Choice choice = c->choose(b, Direction::kBackwardFilter);
  const LibraryWorkspace workspace(b, static_cast<Bytes>(choice.workspace_bytes));
  return make_kernel([=](const Run& run) {
    if (accumulates) copy_to_output(run, 2, 0, dw_bytes);
    add_weight_grad(run, *c, choice, workspace, run.input(0), run.input(1),
                    accumulates ? kOne : kZero);
  });
}

}  // namespace reprise::kernels::cuda
