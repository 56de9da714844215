#pragma once

// Assertions about CUDA's libraries that hold on a GPU and on the double of tests/cuda alike. One
// that fails on a GPU says where the double is wrong, and with it what the tests believe.

#include <cstddef>
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <fmt/format.h>
#include <functional>
#include <nccl.h>
#include <stdexcept>
#include <string>
#include <vector>

namespace reprise::test::facts {

// What one fact found beside right and wrong: printed, and no failure.
using Notes = std::vector<std::string>;

struct Fact {
  std::string name;  // a statement
  std::function<void(Notes&)> check;
};
void add_memory_facts(std::vector<Fact>& facts);
void add_recording_facts(std::vector<Fact>& facts);
void add_product_facts(std::vector<Fact>& facts);
void add_convolution_facts(std::vector<Fact>& facts);
void add_bf16_facts(std::vector<Fact>& facts);
void add_collective_facts(std::vector<Fact>& facts);

// Throws with `what` unless it holds.
inline void expect(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}
template <class Status>
void expect_status(Status got, Status wanted, const char* call) {
  expect(got == wanted, fmt::format("{}: status {} instead of {}", call, static_cast<int>(got),
                                    static_cast<int>(wanted)));
}
inline void must(cudaError_t status, const char* call) {
  expect_status(status, cudaSuccess, call);
}
inline void must(cublasStatus_t status, const char* call) {
  expect_status(status, CUBLAS_STATUS_SUCCESS, call);
}
inline void must(cudnnStatus_t status, const char* call) {
  expect_status(status, CUDNN_STATUS_SUCCESS, call);
}
inline void must(ncclResult_t status, const char* call) {
  expect_status(status, ncclSuccess, call);
}
#define REPRISE_MUST(call) ::reprise::test::facts::must(call, #call)

class Stream {
 public:
  Stream() { REPRISE_MUST(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  ~Stream() { (void)cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  [[nodiscard]] cudaStream_t get() const { return stream_; }
  void wait() const { REPRISE_MUST(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

// Floats on the device.
class Floats {
 public:
  explicit Floats(std::size_t count) : count_(count) { REPRISE_MUST(cudaMalloc(&data_, bytes())); }
  explicit Floats(const std::vector<float>& values) : Floats(values.size()) { set(values); }
  ~Floats() { (void)cudaFree(data_); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  [[nodiscard]] float* get() const { return data_; }
  [[nodiscard]] std::size_t bytes() const { return count_ * sizeof(float); }
  // Both wait for the whole device.
  void set(const std::vector<float>& values) const {
    REPRISE_MUST(cudaDeviceSynchronize());
    REPRISE_MUST(cudaMemcpy(data_, values.data(), bytes(), cudaMemcpyHostToDevice));
    REPRISE_MUST(cudaDeviceSynchronize());
  }
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> result(count_);
    REPRISE_MUST(cudaDeviceSynchronize());
    REPRISE_MUST(cudaMemcpy(result.data(), data_, bytes(), cudaMemcpyDeviceToHost));
    return result;
  }

 private:
  float* data_ = nullptr;
  std::size_t count_;
};

// Floats in pinned host memory.
class Pinned {
 public:
  explicit Pinned(std::size_t count) {
    REPRISE_MUST(cudaMallocHost(&data_, count * sizeof(float)));
  }
  ~Pinned() { (void)cudaFreeHost(data_); }
  Pinned(const Pinned&) = delete;
  Pinned& operator=(const Pinned&) = delete;
  [[nodiscard]] float* get() const { return data_; }

 private:
  float* data_ = nullptr;
};

// What `queue` puts on the stream, recorded.
class Recording {
 public:
  Recording(const Stream& stream, const std::function<void()>& queue) {
    REPRISE_MUST(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
    queue();
    cudaGraph_t graph = nullptr;
    REPRISE_MUST(cudaStreamEndCapture(stream.get(), &graph));
    REPRISE_MUST(cudaGraphInstantiate(&executable_, graph, 0));
    REPRISE_MUST(cudaGraphDestroy(graph));
  }
  ~Recording() { (void)cudaGraphExecDestroy(executable_); }
  Recording(const Recording&) = delete;
  Recording& operator=(const Recording&) = delete;
  void play(const Stream& stream) const {
    REPRISE_MUST(cudaGraphLaunch(executable_, stream.get()));
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace reprise::test::facts
