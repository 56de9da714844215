#pragma once

// The way of a batch to the device beside a step that is under way: through pinned memory of the
// host, on the stream of copies.
//
//   compute   ..., last reader of the bytes | mark | ...            | waits | next step ...
//   copies                                    waits | copy | copied

#include <map>
#include <memory>
#include <span>
#include <vector>

#include "kernels/cuda/device.h"

namespace reprise::kernels::cuda {

class Staging {
 public:
  explicit Staging(std::shared_ptr<Device> device) : device_(std::move(device)) {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;

  // What compute has queued so far, as a point to wait for. May be recorded.
  void mark(std::size_t number);
  // Copies to `stored` once the newest mark with that number has been reached. `plain` may go away
  // at once. Each `stored` has pinned memory of its own, and is copied to once a step.
  void begin(std::span<const std::byte> plain, std::byte* stored, std::size_t mark);
  // What compute queues from here on comes behind the copies that were begun.
  void join();

 private:
  struct Way {
    std::byte* pinned = nullptr;
    std::size_t bytes = 0;
    cudaEvent_t copied = nullptr;
    bool used = false;
    bool joined = true;
  };
  [[nodiscard]] Way& way_to(const std::byte* stored, std::size_t bytes);

  std::shared_ptr<Device> device_;
  std::vector<cudaEvent_t> marks_;  // null: never marked
  std::map<const std::byte*, Way> ways_;
};

}  // namespace reprise::kernels::cuda
