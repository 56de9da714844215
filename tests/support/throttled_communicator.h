#pragma once

// A communicator over a slow link: what goes through it takes as long as told, on the communication
// thread, while the caller computes.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "runtime/comm/queued_communicator.h"

namespace reprise::runtime::comm {

// When the ranks came to the operation that each is at. One rank can be one operation ahead of
// another, since its last one had to meet all others; so two places for each are enough.
class Arrivals {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Arrivals(int ranks) : places_(static_cast<std::size_t>(ranks)) {}

  void arrive(int rank, std::uint64_t sequence) {
    places_[static_cast<std::size_t>(rank)][sequence % 2] = Clock::now().time_since_epoch();
  }
  // When the last one came; for who knows that all have.
  [[nodiscard]] Clock::time_point all_there(std::uint64_t sequence) const {
    Clock::duration latest{0};
    for (const auto& place : places_) latest = std::max(latest, place[sequence % 2].load());
    return Clock::time_point(latest);
  }

 private:
  std::vector<std::array<std::atomic<Clock::duration>, 2>> places_;
};

class ThrottledCommunicator final : public QueuedCommunicator {
 public:
  using Delay = std::function<std::chrono::nanoseconds(std::size_t bytes)>;

  // An all_reduce takes `delay(its bytes)` from when all ranks are there, or longer if `inner`
  // does. The ends of a group share their `arrivals`.
  ThrottledCommunicator(std::unique_ptr<Communicator> inner, std::shared_ptr<Arrivals> arrivals,
                        Delay delay)
      : QueuedCommunicator(inner->options()),
        inner_(std::move(inner)),
        arrivals_(std::move(arrivals)),
        delay_(std::move(delay)) {
    start_thread(true);
  }
  ~ThrottledCommunicator() override {
    if (busy()) interrupt({rank(), "it left the group in the middle of an operation"});
    stop_thread();
  }

  [[nodiscard]] std::string description() const override {
    return inner_->description() + ", throttled";
  }

 protected:
  void execute(const Operation& operation) override {
    switch (operation.kind) {
      case Operation::Kind::kAllReduce:
        return all_reduce(operation);
      case Operation::Kind::kBroadcast:
        return inner_->broadcast(operation.data, operation.root);
      case Operation::Kind::kBarrier:
        return inner_->barrier();
      case Operation::Kind::kAllGather:
        *operation.gathered = inner_->all_gather(operation.mine);
        return;
    }
  }
  void interrupt(const Failure& failure) noexcept override { inner_->abort(failure.reason); }
  [[nodiscard]] std::optional<Failure> known_failure() const override {
    try {
      inner_->check("throttled");
    } catch (const CommError& error) {
      return error.failure();
    }
    return std::nullopt;
  }

 private:
  void all_reduce(const Operation& operation) {
    arrivals_->arrive(rank(), operation.sequence);
    const Ticket ticket =
        operation.pieces.empty()
            ? inner_->start_all_reduce(operation.data, operation.type, operation.reduction)
            : inner_->start_all_reduce_pieces(operation.pieces, operation.type,
                                              operation.reduction);
    inner_->wait(ticket);  // all have come, then
    std::this_thread::sleep_until(arrivals_->all_there(operation.sequence) +
                                  delay_(operation.bytes()));
  }

  const std::unique_ptr<Communicator> inner_;
  const std::shared_ptr<Arrivals> arrivals_;
  const Delay delay_;
};

}  // namespace reprise::runtime::comm
