#pragma once

// Ranks that are processes, on one machine or several: Gloo carries the bytes over TCP, the store
// of rank 0 brings the processes together and knows who failed.
//
// An all_reduce cuts the tensor into segments and each segment into one part a rank; a rank
// receives its part from all others, adds in the order of the ranks, and sends the sum to all. That
// is as many bytes as a ring moves, in two hops instead of 2 (N - 1).

#include <functional>
#include <memory>
#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/comm/rank_environment.h"

namespace reprise::runtime::comm {

struct GlooOptions {
  RankEnvironment environment{};
  std::chrono::milliseconds timeout{30'000};
  std::string name = "world";
  // Where GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME are looked up (the first that is set counts);
  // empty: this process's environment. Without either, each rank's address is the one by which it
  // reaches rank 0.
  Variables variables{};
  // A listening socket for the store of rank 0, handed down by whoever started this process; -1:
  // rank 0 makes one. Owned by the communicator from here on.
  int store_socket = -1;
  std::function<void(const std::string&)> note{};  // the chosen interface and address, a sentence
  // Called once, on a thread of the communicator, when the group has failed; for a rank that is
  // busy with work of its own, and hears of it only in its next operation.
  std::function<void(const Failure&)> failed{};
};

// The group of all ranks. A world of one needs neither network nor Gloo. Writing to a peer that has
// ended must be an error and not the end: SIGPIPE is ignored from here on, where the process has no
// handler for it.
//
// Throws Error(kDevice): the port is taken, rank 0 cannot be reached, it is another job's (each
// names both addresses and what to set), this build has no Gloo; CommError for ranks that do not
// come within the time-out.
[[nodiscard]] std::unique_ptr<Communicator> make_gloo_communicator(const GlooOptions& options);

// "Gloo 0.5.0", or Error(kDevice) saying why this build has none.
[[nodiscard]] std::string gloo_version();

}  // namespace reprise::runtime::comm
