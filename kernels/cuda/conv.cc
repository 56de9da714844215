// Convolutions by cuDNN's legacy calls, in f32 on plain images (NCHW).
//
// Which algorithm. cuDNN's heuristics order its algorithms by their expected time. The first one is
// taken that is deterministic and whose workspace is not larger than x, w and y together, so that a
// workspace at most doubles what the node itself needs; if there is none, the deterministic one
// with the least workspace. The choice depends on the sizes, the library and the GPU, never on a
// budget: algorithms round differently, and every plan and budget must give the same bits
// (graph/prepared.h: the algorithms a plan may pick from agree in every bit). So none is offered
// beside the chosen one. Winograd's rounds a little more than a plain sum does, as it does
// for everyone who takes cuDNN's first choice.

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "kernels/cuda/broadcast.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/library_workspace.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/status.h"

namespace reprise::kernels::cuda {
namespace {

using graph::Conv2dAttributes;
using graph::Shape;

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

struct Choice {
  int algorithm = 0;
  cudnnMathType_t math = CUDNN_FMA_MATH;
  std::size_t workspace_bytes = 0;
};

// The choices that this process has made, by device, direction and sizes: networks repeat their
// convolutions, and asking cuDNN takes longer than anything else here.
class Choices {
 public:
  template <class Make>
  Choice get(const std::vector<std::int64_t>& key, const Make& make) {
    const std::lock_guard lock(mutex_);
    const auto found = made_.find(key);
    if (found != made_.end()) return found->second;
    return made_.emplace(key, make()).first->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::vector<std::int64_t>, Choice> made_;
};

Choices& choices() {
  static Choices all;
  return all;
}

constexpr int kMostAlgorithms = 16;  // cuDNN knows eight, some in two modes of calculation

// x[N,C,H,W] w[O,C/groups,KH,KW] => y[N,O,H',W']
class Convolution {
 public:
  Convolution(Booking& b, const Shape& x, const Shape& w, const Shape& y)
      : x_("cudnnCreateTensorDescriptor"),
        y_("cudnnCreateTensorDescriptor"),
        w_("cudnnCreateFilterDescriptor"),
        convolution_("cudnnCreateConvolutionDescriptor") {
    const auto& a = b.attributes<Conv2dAttributes>();
    const auto size = [&b](std::int64_t n) {
      if (n > std::numeric_limits<int>::max()) throw b.unsupported("an axis is too long");
      return static_cast<int>(n);
    };
    const auto describe = [&size](cudnnTensorDescriptor_t of, const Shape& s) {
      check(cudnnSetTensor4dDescriptor(of, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, size(s[0]),
                                       size(s[1]), size(s[2]), size(s[3])),
            "cudnnSetTensor4dDescriptor");
    };
    describe(x_.get(), x);
    describe(y_.get(), y);
    check(cudnnSetFilter4dDescriptor(w_.get(), CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, size(w[0]),
                                     size(w[1]), size(w[2]), size(w[3])),
          "cudnnSetFilter4dDescriptor");
    check(cudnnSetConvolution2dDescriptor(convolution_.get(), size(a.padding[0]),
                                          size(a.padding[1]), size(a.stride[0]), size(a.stride[1]),
                                          size(a.dilation[0]), size(a.dilation[1]),
                                          CUDNN_CROSS_CORRELATION, CUDNN_DATA_FLOAT),
          "cudnnSetConvolution2dDescriptor");
    check(cudnnSetConvolutionGroupCount(convolution_.get(), size(a.groups)),
          "cudnnSetConvolutionGroupCount");
    set_math(b.device().tensor_floats() ? CUDNN_DEFAULT_MATH : CUDNN_FMA_MATH);
    key_ = {b.device().ordinal(), b.device().tensor_floats() ? 1 : 0, a.groups};
    for (const graph::Ints& sizes : {x, w, a.stride, a.padding, a.dilation}) {
      key_.insert(key_.end(), sizes.begin(), sizes.end());
    }
    most_bytes_ = (graph::element_count(x) + graph::element_count(w) + graph::element_count(y)) *
                  static_cast<Bytes>(sizeof(float));
  }

  [[nodiscard]] cudnnTensorDescriptor_t x() const { return x_.get(); }
  [[nodiscard]] cudnnTensorDescriptor_t y() const { return y_.get(); }
  [[nodiscard]] cudnnFilterDescriptor_t w() const { return w_.get(); }
  [[nodiscard]] cudnnConvolutionDescriptor_t get() const { return convolution_.get(); }

  // list(wanted, returned, results) asks cuDNN for algorithms, the fastest first; bytes(algorithm,
  // result) for the workspace of one, and whether it goes with the mode of calculation. Sets the
  // mode of calculation that goes with the choice.
  template <class Performance, class List, class WorkspaceBytes>
  [[nodiscard]] Choice choose(Booking& b, Direction direction, const List& list,
                              const WorkspaceBytes& bytes) const {
    std::vector<std::int64_t> key = key_;
    key.push_back(static_cast<std::int64_t>(direction));
    const Choice choice = choices().get(key, [&] {
      std::array<Performance, kMostAlgorithms> found;
      int returned = 0;
      list(kMostAlgorithms, &returned, found.data());
      return best_of(b, std::span(found.data(), static_cast<std::size_t>(returned)), bytes);
    });
    set_math(choice.math);
    return choice;
  }

 private:
  template <class Performance, class WorkspaceBytes>
  [[nodiscard]] Choice best_of(Booking& b, std::span<Performance> found,
                               const WorkspaceBytes& bytes) const {
    const bool tensor_floats = b.device().tensor_floats();
    std::optional<Choice> best;
    for (const Performance& candidate : found) {
      const bool exact =
          candidate.mathType == CUDNN_FMA_MATH || candidate.mathType == CUDNN_DEFAULT_MATH;
      if (candidate.status != CUDNN_STATUS_SUCCESS) continue;
      if (candidate.determinism != CUDNN_DETERMINISTIC || !(exact || tensor_floats)) continue;
      Choice choice{.algorithm = candidate.algo,
                    .math = tensor_floats ? candidate.mathType : CUDNN_FMA_MATH};
      set_math(choice.math);
      if (bytes(candidate.algo, &choice.workspace_bytes) != CUDNN_STATUS_SUCCESS) continue;
      if (!best || choice.workspace_bytes < best->workspace_bytes) best = choice;
      if (static_cast<Bytes>(choice.workspace_bytes) <= most_bytes_) break;
    }
    if (!best) throw b.unsupported("cuDNN has no deterministic algorithm for this convolution");
    return *best;
  }

  void set_math(cudnnMathType_t type) const {
    check(cudnnSetConvolutionMathType(convolution_.get(), type), "cudnnSetConvolutionMathType");
  }

  TensorDescriptor x_, y_;
  FilterDescriptor w_;
  ConvolutionDescriptor convolution_;
  Bytes most_bytes_ = 0;
  std::vector<std::int64_t> key_;
};

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

}  // namespace

// x w bias? => y
std::unique_ptr<Kernel> plan_conv2d(Booking& b) {
  const Shape& w = b.input(1).shape;
  const Shape& y = b.output(0).shape;
  const std::int64_t count = graph::element_count(y);
  if (count == 0) return nothing_to_do();
  const auto c = std::make_shared<Convolution>(b, b.input(0).shape, w, y);
  const Choice choice = c->choose<cudnnConvolutionFwdAlgoPerf_t>(
      b, Direction::kForward,
      [&](int wanted, int* returned, cudnnConvolutionFwdAlgoPerf_t* results) {
        check(cudnnGetConvolutionForwardAlgorithm_v7(b.device().dnn(), c->x(), c->w(), c->get(),
                                                     c->y(), wanted, returned, results),
              "cudnnGetConvolutionForwardAlgorithm_v7");
      },
      [&](cudnnConvolutionFwdAlgo_t algorithm, std::size_t* bytes) {
        return cudnnGetConvolutionForwardWorkspaceSize(b.device().dnn(), c->x(), c->w(), c->get(),
                                                       c->y(), algorithm, bytes);
      });
  const LibraryWorkspace workspace(b, static_cast<Bytes>(choice.workspace_bytes));
  const auto algorithm = static_cast<cudnnConvolutionFwdAlgo_t>(choice.algorithm);
  b.flops(flops_of(w, y));
  const bool bias = b.inputs() == 3;
  return make_kernel([=, channels = y[1], pixels = y[2] * y[3]](const Run& run) {
    check(cudnnConvolutionForward(run.device.dnn(), &kOne, c->x(), run.input(0), c->w(),
                                  run.input(1), c->get(), algorithm, workspace.in(run),
                                  workspace.bytes(), &kZero, c->y(), run.output(0)),
          "cudnnConvolutionForward");
    if (bias) {
      launch_add_channels(run.input(2), channels, pixels, run.output(0), count, run.stream());
    }
  });
}

// dy w => dx
std::unique_ptr<Kernel> plan_conv2d_grad_input(Booking& b) {
  const Shape& w = b.input(1).shape;
  const Shape& dx = b.output(0).shape;
  if (graph::element_count(dx) == 0) return nothing_to_do();
  const auto c = std::make_shared<Convolution>(b, dx, w, b.input(0).shape);
  const Choice choice = c->choose<cudnnConvolutionBwdDataAlgoPerf_t>(
      b, Direction::kBackwardData,
      [&](int wanted, int* returned, cudnnConvolutionBwdDataAlgoPerf_t* results) {
        check(cudnnGetConvolutionBackwardDataAlgorithm_v7(
                  b.device().dnn(), c->w(), c->y(), c->get(), c->x(), wanted, returned, results),
              "cudnnGetConvolutionBackwardDataAlgorithm_v7");
      },
      [&](cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* bytes) {
        return cudnnGetConvolutionBackwardDataWorkspaceSize(b.device().dnn(), c->w(), c->y(),
                                                            c->get(), c->x(), algorithm, bytes);
      });
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
  const auto c = std::make_shared<Convolution>(b, b.input(0).shape, dw, dy);
  const Choice choice = c->choose<cudnnConvolutionBwdFilterAlgoPerf_t>(
      b, Direction::kBackwardFilter,
      [&](int wanted, int* returned, cudnnConvolutionBwdFilterAlgoPerf_t* results) {
        check(cudnnGetConvolutionBackwardFilterAlgorithm_v7(
                  b.device().dnn(), c->x(), c->y(), c->get(), c->w(), wanted, returned, results),
              "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
      },
      [&](cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) {
        return cudnnGetConvolutionBackwardFilterWorkspaceSize(b.device().dnn(), c->x(), c->y(),
                                                              c->get(), c->w(), algorithm, bytes);
      });
  const LibraryWorkspace workspace(b, static_cast<Bytes>(choice.workspace_bytes));
  const auto algorithm = static_cast<cudnnConvolutionBwdFilterAlgo_t>(choice.algorithm);
  b.flops(flops_of(dw, dy));
  return make_kernel([=](const Run& run) {
    if (accumulates) copy_to_output(run, 2, 0, dw_bytes);
    check(cudnnConvolutionBackwardFilter(run.device.dnn(), &kOne, c->x(), run.input(0), c->y(),
                                         run.input(1), c->get(), algorithm, workspace.in(run),
                                         workspace.bytes(), accumulates ? &kOne : &kZero, c->w(),
                                         run.output(0)),
          "cudnnConvolutionBackwardFilter");
  });
}

}  // namespace reprise::kernels::cuda
