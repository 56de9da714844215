#pragma once

// Runs the all_reduce and await nodes of a schedule over the ranks, bucket by bucket
// (schedule/buckets.h): by the communicator, or by a device whose memory holds the arena. Then the
// communicator is how the ranks know of each other: a step that waits on the device for a rank that
// is gone would wait for ever.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "graph/prepared.h"
#include "kernels/backend.h"
#include "runtime/comm/communicator.h"
#include "schedule/buckets.h"

namespace reprise::runtime {

class RankSums {
 public:
  // `device` may be null; both must outlive this.
  RankSums(const graph::PreparedGraph& prepared, const schedule::Schedule& schedule,
           comm::Communicator& communicator, base::Bytes bucket_bytes, kernels::DeviceSums* device);

  // Before a step: a group that has failed runs no more.
  void begin_step();
  // Runs the node if it is one of the two; false for all others.
  bool run(graph::NodeId node, const kernels::Call& call);
  // Until every sum that was begun is there.
  void wait_all();
  // After the last instruction of a step: with a device, until all that was queued has run.
  void end_step();
  // Inside a catch block: this rank gives up at that place of the step with that counter, for the
  // reason of the exception in flight. On return no sum of the communicator is under way, and those
  // of a device end.
  void give_up(std::string_view place, std::uint64_t step) noexcept;

  [[nodiscard]] comm::Communicator& communicator() const { return communicator_; }
  [[nodiscard]] const std::vector<schedule::Bucket>& buckets() const { return buckets_; }
  [[nodiscard]] bool on_device() const { return device_ != nullptr; }
  // The operation that bucket became in this step; not on a device.
  [[nodiscard]] comm::Ticket ticket(std::size_t bucket) const { return tickets_[bucket]; }

 private:
  struct Member {
    std::size_t bucket = 0, place = 0;
  };

  void start(std::size_t bucket, graph::DType type);
  void await_device();
  [[nodiscard]] bool device_is_idle();

  const graph::PreparedGraph& prepared_;
  comm::Communicator& communicator_;
  kernels::DeviceSums* const device_;
  const comm::ElementType type_;
  const std::vector<schedule::Bucket> buckets_;
  base::IdVector<graph::NodeId, Member> members_;          // of the all_reduce nodes
  std::vector<std::vector<std::span<std::byte>>> pieces_;  // by bucket: its members' bytes
  std::vector<comm::Ticket> tickets_;                      // by bucket
  comm::Ticket newest_{};
  std::vector<std::size_t> begun_;  // on the device: buckets that wait_all() has not waited for
  std::uint64_t present_ = 0;       // of await_device(), while its ticket is open
};

}  // namespace reprise::runtime
