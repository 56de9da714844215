#include "runtime/comm/gloo/mesh.h"

#include <gloo/transport/address.h>
#include <gloo/transport/context.h>
#include <gloo/transport/device.h>
#include <gloo/transport/pair.h>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace reprise::runtime::comm {
namespace {

using std::chrono::milliseconds;

// Of the end of `from` that is meant for `to`.
std::string address_key(int from, int to) {
  return fmt::format("address/{}/{}", from, to);
}

// That all connections of a rank stand.
std::string connected_key(int rank) {
  return fmt::format("connected/{}", rank);
}

// A pair waits for its first connection five times what it is told.
constexpr int kPairPatience = 5;

}  // namespace

void GlooMesh::require_going_on() const {
  const std::lock_guard lock(mutex_);
  if (interrupted_) throw base::device_error("interrupted");
}

void GlooMesh::offer_pairs(StoreClient& keys, milliseconds timeout) {
  transportContext_ = device_->createContext(rank, size);
  transportContext_->setTimeout(std::max(timeout / kPairPatience, milliseconds(1)));
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    const auto bytes = transportContext_->createPair(other)->address().bytes();
    keys.set(address_key(rank, other), {bytes.data(), bytes.size()});
  }
  const std::lock_guard lock(mutex_);
  has_pairs_ = true;
}

void GlooMesh::connect(StoreClient& keys, std::shared_ptr<gloo::transport::Device> device,
                       milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  device_ = std::move(device);
  setTimeout(timeout);
  {
    const std::lock_guard lock(mutex_);
    keys_ = &keys;
  }
  require_going_on();
  offer_pairs(keys, timeout);
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    const std::string bytes = keys.get(address_key(other, rank), deadline);
    require_going_on();
    getPair(other)->connect({bytes.begin(), bytes.end()});
    require_going_on();  // a pair that is closed meanwhile waits no longer, and says nothing
  }
  transportContext_->setTimeout(timeout);
  wait_for_others(keys, deadline);
  const std::lock_guard lock(mutex_);
  keys_ = nullptr;
}

// A rank that left early would break the connections of those that are not done.
void GlooMesh::wait_for_others(StoreClient& keys, Clock::time_point deadline) {
  keys.set(connected_key(rank), "yes");
  for (int other = 0; other < size; ++other) {
    if (other == rank) continue;
    (void)keys.get(connected_key(other), deadline);
    require_going_on();
  }
}

void GlooMesh::interrupt() noexcept {
  const std::lock_guard lock(mutex_);
  if (keys_ == nullptr && has_pairs_) return;  // all are connected
  interrupted_ = true;
  if (keys_ != nullptr) keys_->interrupt();
  if (!has_pairs_) return;
  for (int other = 0; other < size; ++other) {
    if (other != rank) getPair(other)->close();
  }
}

}  // namespace reprise::runtime::comm
