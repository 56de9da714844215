// Which algorithm. cuDNN's heuristics order its algorithms by their expected time. The first one is
// taken that is deterministic, calculates as exactly as the factors ask for, and whose workspace is
// not larger than x, w and y would be in f32, so that a workspace at most doubles what a node of
// f32 needs; bf16 has as much room, since cuDNN turns the images around for tensor cores. If there
// is none, the one with the least workspace. The choice depends on the sizes, the library and the
// GPU, never on a budget: algorithms round differently, and every plan and budget must give the
// same bits (graph/prepared.h: the algorithms a plan may pick from agree in every bit). So none is
// offered beside the chosen one. Winograd's rounds a little more than a plain sum does, as it does
// for everyone who takes cuDNN's first choice.

#include "kernels/cuda/convolution.h"

#include <array>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <span>

namespace reprise::kernels::cuda {
namespace {

using graph::Conv2dAttributes;
using graph::Shape;

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

// cuDNN's calls of one direction: the algorithms, fastest first, and the workspace of one, which
// also tells whether it goes with the mode of calculation.
struct Forward {
  using Performance = cudnnConvolutionFwdAlgoPerf_t;
  static void list(cudnnHandle_t dnn, const Convolution& c, int* returned, Performance* results) {
    check(cudnnGetConvolutionForwardAlgorithm_v7(dnn, c.x(), c.w(), c.get(), c.y(), kMostAlgorithms,
                                                 returned, results),
          "cudnnGetConvolutionForwardAlgorithm_v7");
  }
  static cudnnStatus_t bytes(cudnnHandle_t dnn, const Convolution& c,
                             cudnnConvolutionFwdAlgo_t algorithm, std::size_t* bytes) {
    return cudnnGetConvolutionForwardWorkspaceSize(dnn, c.x(), c.w(), c.get(), c.y(), algorithm,
                                                   bytes);
  }
  static bool transforms(cudnnConvolutionFwdAlgo_t algorithm) {
    return algorithm >= CUDNN_CONVOLUTION_FWD_ALGO_FFT;
  }
};

struct BackwardData {
  using Performance = cudnnConvolutionBwdDataAlgoPerf_t;
  static void list(cudnnHandle_t dnn, const Convolution& c, int* returned, Performance* results) {
    check(cudnnGetConvolutionBackwardDataAlgorithm_v7(dnn, c.w(), c.y(), c.get(), c.x(),
                                                      kMostAlgorithms, returned, results),
          "cudnnGetConvolutionBackwardDataAlgorithm_v7");
  }
  static cudnnStatus_t bytes(cudnnHandle_t dnn, const Convolution& c,
                             cudnnConvolutionBwdDataAlgo_t algorithm, std::size_t* bytes) {
    return cudnnGetConvolutionBackwardDataWorkspaceSize(dnn, c.w(), c.y(), c.get(), c.x(),
                                                        algorithm, bytes);
  }
  static bool transforms(cudnnConvolutionBwdDataAlgo_t algorithm) {
    return algorithm >= CUDNN_CONVOLUTION_BWD_DATA_ALGO_FFT;
  }
};

struct BackwardFilter {
  using Performance = cudnnConvolutionBwdFilterAlgoPerf_t;
  static void list(cudnnHandle_t dnn, const Convolution& c, int* returned, Performance* results) {
    check(cudnnGetConvolutionBackwardFilterAlgorithm_v7(dnn, c.x(), c.y(), c.get(), c.w(),
                                                        kMostAlgorithms, returned, results),
          "cudnnGetConvolutionBackwardFilterAlgorithm_v7");
  }
  static cudnnStatus_t bytes(cudnnHandle_t dnn, const Convolution& c,
                             cudnnConvolutionBwdFilterAlgo_t algorithm, std::size_t* bytes) {
    return cudnnGetConvolutionBackwardFilterWorkspaceSize(dnn, c.x(), c.y(), c.get(), c.w(),
                                                          algorithm, bytes);
  }
  static bool transforms(cudnnConvolutionBwdFilterAlgo_t algorithm) {
    return algorithm != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0 &&
           algorithm != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1 &&
           algorithm != CUDNN_CONVOLUTION_BWD_FILTER_ALGO_3;
  }
};

}  // namespace

Convolution::Convolution(const Booking& b, Factors factors, const Shape& x, const Shape& w,
                         const Shape& y)
    : factors_(factors),
      tensor_floats_(b.device().tensor_floats()),
      x_("cudnnCreateTensorDescriptor"),
      y_("cudnnCreateTensorDescriptor"),
      w_("cudnnCreateFilterDescriptor"),
      convolution_("cudnnCreateConvolutionDescriptor") {
  const auto& a = b.attributes<Conv2dAttributes>();
  const auto size = [&b](std::int64_t n) {
    if (n > std::numeric_limits<int>::max()) throw b.unsupported("an axis is too long");
    return static_cast<int>(n);
  };
  const auto type = factors == Factors::kBF16 ? CUDNN_DATA_BFLOAT16 : CUDNN_DATA_FLOAT;
  const auto describe = [&](cudnnTensorDescriptor_t of, const Shape& s) {
    check(cudnnSetTensor4dDescriptor(of, CUDNN_TENSOR_NCHW, type, size(s[0]), size(s[1]),
                                     size(s[2]), size(s[3])),
          "cudnnSetTensor4dDescriptor");
  };
  describe(x_.get(), x);
  describe(y_.get(), y);
  check(cudnnSetFilter4dDescriptor(w_.get(), type, CUDNN_TENSOR_NCHW, size(w[0]), size(w[1]),
                                   size(w[2]), size(w[3])),
        "cudnnSetFilter4dDescriptor");
  check(cudnnSetConvolution2dDescriptor(convolution_.get(), size(a.padding[0]), size(a.padding[1]),
                                        size(a.stride[0]), size(a.stride[1]), size(a.dilation[0]),
                                        size(a.dilation[1]), CUDNN_CROSS_CORRELATION,
                                        CUDNN_DATA_FLOAT),
        "cudnnSetConvolution2dDescriptor");
  check(cudnnSetConvolutionGroupCount(convolution_.get(), size(a.groups)),
        "cudnnSetConvolutionGroupCount");
  key_ = {b.device().ordinal(), tensor_floats_ ? 1 : 0, static_cast<std::int64_t>(factors),
          a.groups};
  for (const graph::Ints& sizes : {x, w, a.stride, a.padding, a.dilation}) {
    key_.insert(key_.end(), sizes.begin(), sizes.end());
  }
  most_bytes_ = (graph::element_count(x) + graph::element_count(w) + graph::element_count(y)) *
                static_cast<Bytes>(sizeof(float));
}

Choice Convolution::choose(const Booking& b, Direction direction) const {
  std::vector<std::int64_t> key = key_;
  key.push_back(static_cast<std::int64_t>(direction));
  const Choice choice = choices().get(key, [&] {
    switch (direction) {
      case Direction::kForward:
        return best_of<Forward>(b);
      case Direction::kBackwardData:
        return best_of<BackwardData>(b);
      case Direction::kBackwardFilter:
        return best_of<BackwardFilter>(b);
    }
    throw b.unsupported("unknown direction");
  });
  set_math(choice.math);
  return choice;
}

template <class Api>
Choice Convolution::best_of(const Booking& b) const {
  const cudnnHandle_t dnn = b.device().dnn();
  const bool f32 = factors_ == Factors::kF32;
  const bool exact_only = f32 && !tensor_floats_;
  // Which modes of calculation the heuristics may think of.
  set_math(exact_only                   ? CUDNN_FMA_MATH
           : factors_ == Factors::kBF16 ? CUDNN_TENSOR_OP_MATH
                                        : CUDNN_DEFAULT_MATH);
  std::array<typename Api::Performance, kMostAlgorithms> found;
  int returned = 0;
  Api::list(dnn, *this, &returned, found.data());
  std::optional<Choice> best;
  for (const auto& candidate : std::span(found.data(), static_cast<std::size_t>(returned))) {
    const bool exact =
        candidate.mathType == CUDNN_FMA_MATH || candidate.mathType == CUDNN_DEFAULT_MATH;
    if (candidate.status != CUDNN_STATUS_SUCCESS) continue;
    if (candidate.mathType == CUDNN_TENSOR_OP_MATH_ALLOW_CONVERSION) continue;  // to f16
    if (candidate.determinism != CUDNN_DETERMINISTIC || (exact_only && !exact)) continue;
    if (factors_ == Factors::kBF16InF32 && Api::transforms(candidate.algo)) continue;
    Choice choice{.algorithm = candidate.algo,
                  .math = exact_only ? CUDNN_FMA_MATH : candidate.mathType};
    set_math(choice.math);
    if (Api::bytes(dnn, *this, candidate.algo, &choice.workspace_bytes) != CUDNN_STATUS_SUCCESS) {
      continue;
    }
    if (!best || choice.workspace_bytes < best->workspace_bytes) best = choice;
    if (static_cast<Bytes>(choice.workspace_bytes) <= most_bytes_) break;
  }
  if (!best) throw b.unsupported("cuDNN has no deterministic algorithm for this convolution");
  return *best;
}

void Convolution::set_math(cudnnMathType_t type) const {
  check(cudnnSetConvolutionMathType(convolution_.get(), type), "cudnnSetConvolutionMathType");
}

}  // namespace reprise::kernels::cuda
