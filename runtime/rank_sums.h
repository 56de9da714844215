#pragma once

// Runs the all_reduce and await nodes of a schedule over a communicator, bucket by bucket
// (schedule/buckets.h).

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/prepared.h"
#include "kernels/backend.h"
#include "runtime/comm/communicator.h"
#include "schedule/buckets.h"

namespace reprise::runtime {

class RankSums {
 public:
  RankSums(const graph::PreparedGraph& prepared, const schedule::Schedule& schedule,
           comm::Communicator& communicator, base::Bytes bucket_bytes);

  // Runs the node if it is one of the two; false for all others.
  bool run(graph::NodeId node, const kernels::Call& call);
  // Until every sum that was begun is there.
  void wait_all();
  // Inside a catch block: this rank gives up in that node of the step with that counter, for the
  // reason of the exception in flight. On return no sum is under way.
  void give_up(graph::NodeId node, std::uint64_t step) noexcept;

  [[nodiscard]] comm::Communicator& communicator() const { return communicator_; }
  [[nodiscard]] const std::vector<schedule::Bucket>& buckets() const { return buckets_; }
  // The operation that bucket became in this step.
  [[nodiscard]] comm::Ticket ticket(std::size_t bucket) const { return tickets_[bucket]; }

 private:
  struct Member {
    std::size_t bucket = 0, place = 0;
  };

  const graph::PreparedGraph& prepared_;
  comm::Communicator& communicator_;
  const comm::ElementType type_;
  const std::vector<schedule::Bucket> buckets_;
  base::IdVector<graph::NodeId, Member> members_;          // of the all_reduce nodes
  std::vector<std::vector<std::span<std::byte>>> pieces_;  // by bucket: its members' bytes
  std::vector<comm::Ticket> tickets_;                      // by bucket
  comm::Ticket newest_{};
};

}  // namespace reprise::runtime
