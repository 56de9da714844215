#pragma once

// Sums over GPUs by NCCL, on a stream of their own:
//
//   compute   gradient a . gradient b .  gradient c . . . . update a
//                      |ready                               ^ waits for done a
//   sums               +--> sum of a ------+ done a --------+
//
// Both ways by events, so a recorded step has the same order.

#include <cuda_runtime.h>
#include <memory>
#include <mutex>
#include <nccl.h>
#include <thread>
#include <vector>

#include "kernels/cuda/device.h"
#include "kernels/device_sums.h"

namespace reprise::kernels::cuda {

[[nodiscard]] std::string make_nccl_id();

class NcclSums : public DeviceSums {
 public:
  explicit NcclSums(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~NcclSums() override;
  NcclSums(const NcclSums&) = delete;
  NcclSums& operator=(const NcclSums&) = delete;

  // Before all else. Returns when all ranks have joined.
  void join(const std::string& id, int rank, int world_size, Patience patience);

  [[nodiscard]] std::string description() const override;
  [[nodiscard]] base::Bytes reserved_bytes() const override { return reserved_bytes_; }
  void start(std::size_t number, std::span<const std::span<std::byte>> pieces,
             graph::DType type) override;
  void wait(std::size_t number) override;
  [[nodiscard]] bool idle() override;
  void abort() noexcept override;

 protected:
  // The two halves of the order; tests leave one out.
  virtual void follow_compute();                         // the sums' stream waits
  virtual void make_compute_wait(cudaEvent_t finished);  // for a sum

 private:
  [[nodiscard]] ncclResult_t state();
  // NCCL does not block: what it was asked to do is on the stream once this has returned.
  void until_ready(const char* call);
  void queue(std::span<const std::span<std::byte>> pieces, ncclDataType_t type);
  [[nodiscard]] ncclComm_t take() noexcept;
  void leave() noexcept;

  const std::shared_ptr<Device> device_;
  Patience patience_;
  int world_size_ = 0;
  bool joined_ = false;
  base::Bytes reserved_bytes_ = 0;
  cudaStream_t stream_ = nullptr;
  cudaEvent_t ready_ = nullptr;    // what compute had queued when a sum was started
  std::vector<cudaEvent_t> done_;  // by a sum's number
  std::mutex mutex_;               // of comm_
  ncclComm_t comm_ = nullptr;      // null once aborted
  std::thread aborting_;
};

}  // namespace reprise::kernels::cuda
