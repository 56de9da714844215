#pragma once

// A joined group of processes, over Gloo.

#include <functional>
#include <memory>
#include <string>

#include "runtime/comm/communicator.h"
#include "runtime/comm/membership.h"
#include "runtime/comm/store_server.h"

namespace reprise::runtime::comm {

struct GlooGroup {
  std::unique_ptr<StoreServer> server;  // rank 0's
  MemberOptions member_options{};
};

// Joins the roll, asks `address` for the one to be found at (given the one by which the store was
// reached), and connects to all other ranks.
[[nodiscard]] std::unique_ptr<Communicator> make_gloo_group(
    const CommOptions& options, GlooGroup group,
    const std::function<std::string(const std::string&)>& address);

}  // namespace reprise::runtime::comm
