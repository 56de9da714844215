#include "kernels/cuda/staging.h"

#include <algorithm>

#include "kernels/cuda/status.h"

namespace reprise::kernels::cuda {

Staging::~Staging() {
  (void)cudaSetDevice(device_->ordinal());
  (void)cudaStreamSynchronize(device_->copies());
  for (const cudaEvent_t event : marks_)
    if (event != nullptr) (void)cudaEventDestroy(event);
  for (const auto& [stored, way] : ways_) {
    if (way.copied != nullptr) (void)cudaEventDestroy(way.copied);
    if (way.pinned != nullptr) (void)cudaFreeHost(way.pinned);
  }
}

void Staging::mark(std::size_t number) {
  if (marks_.size() <= number) marks_.resize(number + 1, nullptr);
  cudaEvent_t& event = marks_[number];
  cudaStreamCaptureStatus capturing = cudaStreamCaptureStatusNone;
  check(cudaStreamIsCapturing(device_->compute(), &capturing), "cudaStreamIsCapturing");
  if (event == nullptr)
    check(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
  // External: those outside of the graph wait for it too.
  const unsigned flags =
      capturing == cudaStreamCaptureStatusActive ? cudaEventRecordExternal : cudaEventRecordDefault;
  check(cudaEventRecordWithFlags(event, device_->compute(), flags), "cudaEventRecordWithFlags");
}

Staging::Way& Staging::way_to(const std::byte* stored, std::size_t bytes) {
  Way& way = ways_[stored];
  if (way.copied == nullptr)
    check(cudaEventCreateWithFlags(&way.copied, cudaEventDisableTiming), "cudaEventCreate");
  if (way.bytes < bytes) {
    void* memory = nullptr;
    check(cudaMallocHost(&memory, bytes), "cudaMallocHost");
    if (way.pinned != nullptr) (void)cudaFreeHost(way.pinned);
    way.pinned = static_cast<std::byte*>(memory);
    way.bytes = bytes;
  }
  return way;
}

void Staging::begin(std::span<const std::byte> plain, std::byte* stored, std::size_t mark) {
  if (plain.empty()) return;
  device_->make_current();
  Way& way = way_to(stored, plain.size());
  // The pinned bytes of the step before have gone: its copy has run by now, or nearly so.
  if (way.used) check(cudaEventSynchronize(way.copied), "cudaEventSynchronize");
  std::copy(plain.begin(), plain.end(), way.pinned);
  if (mark < marks_.size() && marks_[mark] != nullptr)
    check(cudaStreamWaitEvent(device_->copies(), marks_[mark], 0), "cudaStreamWaitEvent");
  check(
      cudaMemcpyAsync(stored, way.pinned, plain.size(), cudaMemcpyHostToDevice, device_->copies()),
      "cudaMemcpyAsync");
  check(cudaEventRecord(way.copied, device_->copies()), "cudaEventRecord");
  way.used = true;
  way.joined = false;
}

void Staging::join() {
  for (auto& [stored, way] : ways_) {
    if (way.joined) continue;
    check(cudaStreamWaitEvent(device_->compute(), way.copied, 0), "cudaStreamWaitEvent");
    way.joined = true;
  }
}

}  // namespace reprise::kernels::cuda
