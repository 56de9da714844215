#include "runtime/comm/queued_communicator.h"

#include <utility>

#include "runtime/comm/thread_priority.h"

namespace reprise::runtime::comm {
namespace {

void require_whole(std::span<const std::byte> data, ElementType type) {
  if (data.size() % element_bytes(type) == 0) return;
  throw base::input_error("all_reduce: {} bytes are no whole number of {} elements", data.size(),
                          element_name(type));
}

}  // namespace

std::size_t Operation::bytes() const {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < piece_count(); ++i) sum += piece(i).size();
  return sum;
}

std::string Operation::text() const {
  switch (kind) {
    case Kind::kAllReduce:
      return fmt::format("all_reduce {} ({} x {}{}, {})", sequence, element_name(type),
                         bytes() / element_bytes(type),
                         pieces.empty() ? "" : fmt::format(" in {} pieces", pieces.size()),
                         reduction_name(reduction));
    case Kind::kBroadcast:
      return fmt::format("broadcast {} ({} bytes from rank {})", sequence, data.size(), root);
    case Kind::kBarrier:
      return fmt::format("barrier {}", sequence);
    case Kind::kAllGather:
      return fmt::format("all_gather {}", sequence);
  }
  return "?";
}

QueuedCommunicator::QueuedCommunicator(CommOptions options) : options_(std::move(options)) {
  if (options_.world_size < 1)
    throw base::input_error("group '{}': world size {}", options_.name, options_.world_size);
  if (options_.rank < 0 || options_.rank >= options_.world_size) {
    throw base::input_error("group '{}': rank {} is not below world size {}", options_.name,
                            options_.rank, options_.world_size);
  }
}

void QueuedCommunicator::start_thread(bool runs_first) {
  thread_ = std::thread([this, runs_first] {
    if (runs_first) raise_thread_priority();
    loop();
  });
}

void QueuedCommunicator::stop_thread() noexcept {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    waiting_.clear();
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

bool QueuedCommunicator::busy() const {
  const std::lock_guard lock(mutex_);
  return finished_ != started_ && !failure_;
}

Ticket QueuedCommunicator::enqueue(Operation operation) {
  const std::lock_guard lock(mutex_);
  if (failure_) std::rethrow_exception(failure_);
  operation.sequence = ++started_;
  const Ticket ticket{operation.sequence};
  waiting_.push_back(operation);
  changed_.notify_all();
  return ticket;
}

void QueuedCommunicator::loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] { return stopping_ || (!waiting_.empty() && !failure_); });
    if (stopping_) return;
    const Operation operation = waiting_.front();
    waiting_.pop_front();
    running_ = true;
    lock.unlock();
    std::exception_ptr thrown;
    const auto begin = std::chrono::steady_clock::now();
    try {
      execute(operation);
    } catch (const CommError&) {
      thrown = std::current_exception();
    } catch (const std::exception& error) {
      const Failure failure{options_.rank, error.what()};
      thrown = std::make_exception_ptr(CommError(options_.rank, operation.text(), failure));
      interrupt(failure);  // the others hear of it
    }
    const auto end = std::chrono::steady_clock::now();
    lock.lock();
    running_ = false;
    if (!thrown && watch_) watch_({operation.sequence, begin, end});
    if (thrown) {
      if (!failure_) failure_ = thrown;
    } else {
      finished_ = operation.sequence;
    }
    changed_.notify_all();
  }
}

void QueuedCommunicator::require_started(Ticket ticket) const {
  if (ticket.sequence <= started_) return;
  throw base::input_error("group '{}': ticket {} was never handed out; {} were", options_.name,
                          ticket.sequence, started_);
}

void QueuedCommunicator::wait(Ticket ticket) {
  std::unique_lock lock(mutex_);
  require_started(ticket);
  // A failed operation may be under way still, with the caller's bytes in hand.
  changed_.wait(lock, [&] { return finished_ >= ticket.sequence || (failure_ && !running_); });
  if (finished_ < ticket.sequence) std::rethrow_exception(failure_);
}

bool QueuedCommunicator::done(Ticket ticket) {
  const std::lock_guard lock(mutex_);
  require_started(ticket);
  if (finished_ >= ticket.sequence) return true;
  if (failure_ && !running_) std::rethrow_exception(failure_);
  return false;
}

void QueuedCommunicator::check(std::string_view doing) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) std::rethrow_exception(failure_);
  }
  const std::optional<Failure> known = known_failure();
  if (!known) return;
  const CommError error(options_.rank, std::string(doing), *known);
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::make_exception_ptr(error);
  }
  changed_.notify_all();
  throw error;
}

Ticket QueuedCommunicator::start_all_reduce(std::span<std::byte> data, ElementType type,
                                            Reduction reduction) {
  require_whole(data, type);
  return enqueue(
      {.kind = Operation::Kind::kAllReduce, .data = data, .type = type, .reduction = reduction});
}

Ticket QueuedCommunicator::start_all_reduce_pieces(std::span<const std::span<std::byte>> pieces,
                                                   ElementType type, Reduction reduction) {
  for (const auto& piece : pieces) require_whole(piece, type);
  Operation operation{.kind = Operation::Kind::kAllReduce, .type = type, .reduction = reduction};
  if (pieces.size() == 1) {
    operation.data = pieces[0];
  } else {
    operation.pieces = pieces;
  }
  return enqueue(operation);
}

void QueuedCommunicator::set_watch(OperationWatch watch) {
  const std::lock_guard lock(mutex_);
  watch_ = std::move(watch);
}

void QueuedCommunicator::broadcast(std::span<std::byte> data, int root) {
  if (root < 0 || root >= options_.world_size) {
    throw base::input_error("broadcast from rank {}: the world has {} ranks", root,
                            options_.world_size);
  }
  wait(enqueue({.kind = Operation::Kind::kBroadcast, .data = data, .root = root}));
}

void QueuedCommunicator::barrier() {
  wait(enqueue({.kind = Operation::Kind::kBarrier}));
}

std::vector<std::string> QueuedCommunicator::all_gather(std::string_view mine) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  if (mine.size() > kMost)
    throw base::input_error("all_gather: {} bytes are more than {}", mine.size(), kMost);
  std::vector<std::string> gathered;
  wait(enqueue({.kind = Operation::Kind::kAllGather, .mine = mine, .gathered = &gathered}));
  return gathered;
}

void QueuedCommunicator::abort(std::string_view reason) noexcept {
  const Failure failure{options_.rank, std::string(reason)};
  {
    const std::lock_guard lock(mutex_);
    if (!failure_) {
      failure_ = std::make_exception_ptr(CommError(options_.rank, "abort", failure));
    }
  }
  changed_.notify_all();
  interrupt(failure);
}

}  // namespace reprise::runtime::comm
