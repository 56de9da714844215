// Convolutions by cuDNN's legacy calls.

#include <algorithm>
#include <array>
#include <cmath>

#include "tests/gpu/facts/facts.h"

namespace reprise::test::facts {
namespace {

constexpr int kBatch = 2, kIn = 16, kOut = 8, kSize = 10, kKernel = 3;  // 3x3, padding 1

std::vector<float> wave(int count, float step) {
  std::vector<float> values(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    values[static_cast<std::size_t>(i)] = std::sin(step * static_cast<float>(i));
  return values;
}

class Convolution {
 public:
  Convolution()
      : x_values_(wave(kBatch * kIn * kSize * kSize, 0.7F)),
        w_values_(wave(kOut * kIn * kKernel * kKernel, 0.3F)),
        x_(x_values_),
        w_(w_values_),
        y_(static_cast<std::size_t>(kBatch * kOut * kSize * kSize)) {
    REPRISE_MUST(cudnnCreate(&dnn));
    REPRISE_MUST(cudnnSetStream(dnn, stream.get()));
    REPRISE_MUST(cudnnCreateTensorDescriptor(&x));
    REPRISE_MUST(cudnnCreateTensorDescriptor(&y));
    REPRISE_MUST(cudnnCreateFilterDescriptor(&w));
    REPRISE_MUST(cudnnCreateConvolutionDescriptor(&conv));
    REPRISE_MUST(cudnnSetTensor4dDescriptor(x, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, kBatch, kIn,
                                            kSize, kSize));
    REPRISE_MUST(cudnnSetTensor4dDescriptor(y, CUDNN_TENSOR_NCHW, CUDNN_DATA_FLOAT, kBatch, kOut,
                                            kSize, kSize));
    REPRISE_MUST(cudnnSetFilter4dDescriptor(w, CUDNN_DATA_FLOAT, CUDNN_TENSOR_NCHW, kOut, kIn,
                                            kKernel, kKernel));
    REPRISE_MUST(cudnnSetConvolution2dDescriptor(conv, 1, 1, 1, 1, 1, 1, CUDNN_CROSS_CORRELATION,
                                                 CUDNN_DATA_FLOAT));
    REPRISE_MUST(cudnnSetConvolutionMathType(conv, CUDNN_FMA_MATH));
  }
  ~Convolution() {
    (void)cudnnDestroyConvolutionDescriptor(conv);
    (void)cudnnDestroyFilterDescriptor(w);
    (void)cudnnDestroyTensorDescriptor(y);
    (void)cudnnDestroyTensorDescriptor(x);
    (void)cudnnDestroy(dnn);
  }
  Convolution(const Convolution&) = delete;
  Convolution& operator=(const Convolution&) = delete;

  // In the order of cuDNN's heuristics, those that can run here.
  [[nodiscard]] std::vector<cudnnConvolutionFwdAlgoPerf_t> algorithms() const {
    std::array<cudnnConvolutionFwdAlgoPerf_t, 16> found;
    int returned = 0;
    REPRISE_MUST(cudnnGetConvolutionForwardAlgorithm_v7(
        dnn, x, w, conv, y, static_cast<int>(found.size()), &returned, found.data()));
    std::vector<cudnnConvolutionFwdAlgoPerf_t> all(found.begin(), found.begin() + returned);
    std::erase_if(all, [](const auto& each) { return each.status != CUDNN_STATUS_SUCCESS; });
    return all;
  }
  [[nodiscard]] std::size_t workspace_bytes(cudnnConvolutionFwdAlgo_t algorithm) const {
    std::size_t bytes = 0;
    REPRISE_MUST(cudnnGetConvolutionForwardWorkspaceSize(dnn, x, w, conv, y, algorithm, &bytes));
    return bytes;
  }
  cudnnStatus_t queue(cudnnConvolutionFwdAlgo_t algorithm, float* workspace,
                      std::size_t bytes) const {
    const float one = 1, zero = 0;
    return cudnnConvolutionForward(dnn, &one, x, x_.get(), w, w_.get(), conv, algorithm, workspace,
                                   bytes, &zero, y, y_.get());
  }
  [[nodiscard]] std::vector<float> values() const { return y_.values(); }

  // The largest difference to plain loops in double precision.
  [[nodiscard]] double off(const std::vector<float>& got) const {
    double worst = 0;
    std::size_t at = 0;
    for (int n = 0; n < kBatch; ++n)
      for (int o = 0; o < kOut; ++o)
        for (int row = 0; row < kSize; ++row)
          for (int column = 0; column < kSize; ++column)
            worst = std::max(worst,
                             std::abs(static_cast<double>(got[at++]) - truth(n, o, row, column)));
    return worst;
  }

  Stream stream;
  cudnnHandle_t dnn{};
  cudnnTensorDescriptor_t x{}, y{};
  cudnnFilterDescriptor_t w{};
  cudnnConvolutionDescriptor_t conv{};

 private:
  [[nodiscard]] double truth(int n, int o, int row, int column) const {
    double sum = 0;
    for (int c = 0; c < kIn; ++c)
      for (int r = 0; r < kKernel; ++r)
        for (int s = 0; s < kKernel; ++s) {
          const int i = row + r - 1, j = column + s - 1;
          if (i < 0 || i >= kSize || j < 0 || j >= kSize) continue;
          const auto from = static_cast<std::size_t>(((n * kIn + c) * kSize + i) * kSize + j);
          const auto by = static_cast<std::size_t>(((o * kIn + c) * kKernel + r) * kKernel + s);
          sum += static_cast<double>(x_values_[from]) * static_cast<double>(w_values_[by]);
        }
    return sum;
  }
  std::vector<float> x_values_, w_values_;
  Floats x_, w_, y_;
};

void every_algorithm(Notes& notes) {
  const Convolution c;
  const auto algorithms = c.algorithms();
  expect(!algorithms.empty(), "the heuristics list no algorithm");
  bool deterministic = false;
  for (const auto& each : algorithms) {
    const std::size_t bytes = c.workspace_bytes(each.algo);
    const Floats workspace(bytes / sizeof(float) + 64);
    REPRISE_MUST(c.queue(each.algo, bytes == 0 ? nullptr : workspace.get(), bytes));
    const std::vector<float> first = c.values();
    REPRISE_MUST(c.queue(each.algo, bytes == 0 ? nullptr : workspace.get(), bytes));
    const bool repeats = c.values() == first;
    const double off = c.off(first);
    const bool promised = each.determinism == CUDNN_DETERMINISTIC;
    notes.push_back(fmt::format("algorithm {}: {} bytes of workspace, off by {:.1e}, {}",
                                static_cast<int>(each.algo), bytes, off,
                                promised ? "deterministic" : "not deterministic"));
    // 144 products of up to 1 each; Winograd's and FFT's sums go through larger numbers.
    expect(off < 1e-3,
           fmt::format("algorithm {} is off by {:.1e}", static_cast<int>(each.algo), off));
    expect(repeats || !promised,
           fmt::format("algorithm {} does not repeat its bits", static_cast<int>(each.algo)));
    deterministic = deterministic || promised;
  }
  expect(deterministic, "no algorithm is deterministic");
}

void small_workspace(Notes& notes) {
  const Convolution c;
  for (const auto& each : c.algorithms()) {
    const std::size_t bytes = c.workspace_bytes(each.algo);
    if (bytes == 0) continue;
    const cudnnStatus_t status = c.queue(each.algo, nullptr, 0);
    expect(status != CUDNN_STATUS_SUCCESS, fmt::format("algorithm {} ran without its {} bytes",
                                                       static_cast<int>(each.algo), bytes));
    c.stream.wait();
    notes.push_back(fmt::format("status {}", static_cast<int>(status)));
    return;
  }
  notes.emplace_back("no algorithm of this convolution has a workspace");
}

void recorded(Notes& /*notes*/) {
  const Convolution c;
  for (const auto& each : c.algorithms()) {
    if (each.determinism != CUDNN_DETERMINISTIC) continue;
    const std::size_t bytes = c.workspace_bytes(each.algo);
    const Floats workspace(bytes / sizeof(float) + 64);
    REPRISE_MUST(c.queue(each.algo, workspace.get(), bytes));
    const std::vector<float> plain = c.values();
    const Recording recording(c.stream,
                              [&] { REPRISE_MUST(c.queue(each.algo, workspace.get(), bytes)); });
    recording.play(c.stream);
    expect(c.values() == plain,
           fmt::format("algorithm {}: other bits", static_cast<int>(each.algo)));
  }
}

}  // namespace

void add_convolution_facts(std::vector<Fact>& facts) {
  facts.push_back(
      {"every listed algorithm is right with the workspace it asks for", every_algorithm});
  facts.push_back({"a convolution without its workspace is refused", small_workspace});
  facts.push_back({"a recorded convolution gives the bits of a plain one", recorded});
}

}  // namespace reprise::test::facts
