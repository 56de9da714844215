#pragma once

// A communicator over a slow link: what goes through it takes as long as told, on the communication
// thread, while the caller computes.

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "runtime/comm/queued_communicator.h"

namespace reprise::runtime::comm {

class ThrottledCommunicator final : public QueuedCommunicator {
 public:
  using Delay = std::function<std::chrono::nanoseconds(std::size_t bytes)>;

  // An all_reduce takes `delay(its bytes)` from when all ranks are there, or longer if `inner`
  // does.
  ThrottledCommunicator(std::unique_ptr<Communicator> inner, Delay delay)
      : QueuedCommunicator(inner->options()), inner_(std::move(inner)), delay_(std::move(delay)) {
    start_thread();
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
    inner_->barrier();
    const auto end = std::chrono::steady_clock::now() + delay_(operation.bytes());
    const Ticket ticket =
        operation.pieces.empty()
            ? inner_->start_all_reduce(operation.data, operation.type, operation.reduction)
            : inner_->start_all_reduce_pieces(operation.pieces, operation.type,
                                              operation.reduction);
    inner_->wait(ticket);
    std::this_thread::sleep_until(end);
  }

  const std::unique_ptr<Communicator> inner_;
  const Delay delay_;
};

}  // namespace reprise::runtime::comm
