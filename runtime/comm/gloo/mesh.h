#pragma once

// Gloo's connections between all pairs of ranks, and a way out of making them.
//
// Gloo's own connectFullMesh() waits five times its time-out for each rank and hears of nothing
// meanwhile. Here a failure of the group ends it at once, by closing what it waits for.

#include <chrono>
#include <gloo/context.h>
#include <memory>
#include <mutex>

#include "runtime/comm/membership.h"

namespace reprise::runtime::comm {

class GlooMesh final : public gloo::Context {
 public:
  GlooMesh(int own_rank, int ranks) : gloo::Context(own_rank, ranks) {}

  // Tells the others its addresses by the store, and waits until all are connected. Throws
  // Error(kDevice) or gloo::Exception when that is not so within the time-out, or when interrupted.
  void connect(StoreClient& keys, std::shared_ptr<gloo::transport::Device> device,
               std::chrono::milliseconds timeout);
  // A connect() under way, or to come, throws soon. From any thread; does nothing afterwards.
  void interrupt() noexcept;

 private:
  void offer_pairs(StoreClient& keys, std::chrono::milliseconds timeout);
  void wait_for_others(StoreClient& keys, Clock::time_point deadline);
  void require_going_on() const;

  mutable std::mutex mutex_;
  StoreClient* keys_ = nullptr;  // while it connects
  bool has_pairs_ = false;
  bool interrupted_ = false;
};

}  // namespace reprise::runtime::comm
