#pragma once

// A communicator on the CPU: operations wait in a queue and run on one communication thread, in the
// order of their start, while the caller computes.

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

#include "runtime/comm/communicator.h"

namespace reprise::runtime::comm {

struct Operation {
  enum class Kind : std::uint8_t { kAllReduce, kBroadcast, kBarrier, kAllGather };
  Kind kind = Kind::kBarrier;
  std::span<std::byte> data{};                     // of all kinds but all_gather
  std::span<const std::span<std::byte>> pieces{};  // all_reduce of several: instead of `data`
  ElementType type = ElementType::kF32;
  Reduction reduction = Reduction::kSum;
  int root = 0;
  std::string_view mine{};  // all_gather
  std::vector<std::string>* gathered = nullptr;
  std::uint64_t sequence = 0;  // from 1; the same on all ranks

  [[nodiscard]] std::size_t piece_count() const { return pieces.empty() ? 1 : pieces.size(); }
  [[nodiscard]] std::span<std::byte> piece(std::size_t index) const {
    return pieces.empty() ? data : pieces[index];
  }
  [[nodiscard]] std::size_t bytes() const;  // of all pieces

  // What must be the same on every rank, as text: "all_reduce 17 (f32 x 1000, sum)".
  [[nodiscard]] std::string text() const;
};

class QueuedCommunicator : public Communicator {
 public:
  explicit QueuedCommunicator(CommOptions options);

  [[nodiscard]] const CommOptions& options() const final { return options_; }
  Ticket start_all_reduce(std::span<std::byte> data, ElementType type, Reduction reduction) final;
  Ticket start_all_reduce_pieces(std::span<const std::span<std::byte>> pieces, ElementType type,
                                 Reduction reduction) final;
  void wait(Ticket ticket) final;
  [[nodiscard]] bool done(Ticket ticket) final;
  void check(std::string_view doing) final;
  void broadcast(std::span<std::byte> data, int root) final;
  void barrier() final;
  [[nodiscard]] std::vector<std::string> all_gather(std::string_view mine) final;
  void set_watch(OperationWatch watch) final;
  void abort(std::string_view reason) noexcept final;

 protected:
  // Runs one operation to its end, on the communication thread. What it throws is final.
  virtual void execute(const Operation& operation) = 0;
  // Makes an execute() under way end soon, here and on the other ranks; from any thread.
  virtual void interrupt(const Failure& failure) noexcept = 0;
  // What is known of a failure anywhere in the group, operations apart.
  [[nodiscard]] virtual std::optional<Failure> known_failure() const = 0;

  // A derived class starts the thread when it is complete, and stops it before it goes. One whose
  // execute() waits for threads like it alone may have it run before those that compute
  // (thread_priority.h); where a plain thread has to serve it, it would wait for that one the
  // longer.
  void start_thread(bool runs_first = false);
  // Ends the thread; operations that have not begun are dropped.
  void stop_thread() noexcept;
  // An operation was started and has not finished.
  [[nodiscard]] bool busy() const;

 private:
  Ticket enqueue(Operation operation);
  void require_started(Ticket ticket) const;
  void loop();

  const CommOptions options_;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Operation> waiting_;
  std::uint64_t started_ = 0, finished_ = 0;  // sequence numbers
  std::exception_ptr failure_;
  OperationWatch watch_;
  bool running_ = false;  // an execute() is under way
  bool stopping_ = false;
};

}  // namespace reprise::runtime::comm
