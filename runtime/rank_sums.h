#pragma once

// Runs the all_reduce and await nodes of a schedule over a communicator.

#include <cstdint>
#include <vector>

#include "graph/prepared.h"
#include "kernels/backend.h"
#include "runtime/comm/communicator.h"

namespace reprise::runtime {

class RankSums {
 public:
  RankSums(const graph::PreparedGraph& prepared, comm::Communicator& communicator);

  // Runs the node if it is one of the two; false for all others.
  bool run(graph::NodeId node, const kernels::Call& call);
  // Until every sum that was begun is there.
  void wait_all();
  // Inside a catch block: this rank gives up in that node of the step with that counter, for the
  // reason of the exception in flight. On return no sum is under way.
  void give_up(graph::NodeId node, std::uint64_t step) noexcept;

 private:
  const graph::PreparedGraph& prepared_;
  comm::Communicator& communicator_;
  const comm::ElementType type_;
  base::IdVector<graph::NodeId, comm::Ticket> tickets_;  // of the all_reduce nodes
  comm::Ticket newest_{};
};

}  // namespace reprise::runtime
