#include "runtime/comm/thread_communicator.h"

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <mutex>
#include <optional>
#include <utility>

#include "runtime/comm/queued_communicator.h"
#include "runtime/comm/reduce.h"

namespace reprise::runtime::comm {
namespace {

// Where the ranks meet. An operation has two meetings: all have entered, with their buffers laid
// open; all have done their part. Only the first may fail: after it nobody waits for anything but
// finite work, so no buffer is withdrawn while another rank is at it.
class Meeting {
 public:
  explicit Meeting(const CommOptions& options)
      : options_(options), places_(static_cast<std::size_t>(options.world_size)) {}

  void enter(int rank, const Operation& operation);
  void finish();
  void fail(const Failure& failure) noexcept;
  void leave(int rank) noexcept;
  [[nodiscard]] std::optional<Failure> failure() const {
    const std::lock_guard lock(mutex_);
    return failure_;
  }
  // Valid between enter() and finish().
  [[nodiscard]] const Operation& operation_of(int rank) const { return *place(rank).operation; }

 private:
  struct Place {
    const Operation* operation = nullptr;
    std::uint64_t arrived = 0;  // sequence of the newest operation entered
    bool left = false;
  };
  [[nodiscard]] Place& place(int rank) { return places_[static_cast<std::size_t>(rank)]; }
  [[nodiscard]] const Place& place(int rank) const {
    return places_[static_cast<std::size_t>(rank)];
  }
  void check_same(int rank, const Operation& operation);
  [[nodiscard]] std::string missing(std::uint64_t sequence) const;
  [[nodiscard]] std::optional<int> only_missing(std::uint64_t sequence) const;
  void fail_locked(Failure failure) {
    if (!failure_) failure_ = std::move(failure);
    changed_.notify_all();
  }

  const CommOptions options_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Place> places_;
  int entered_ = 0, finished_ = 0;
  std::uint64_t met_ = 0, parted_ = 0;  // operations entered by all, finished by all
  std::optional<Failure> failure_;
};

// All entered operations of this sequence must read the same.
void Meeting::check_same(int rank, const Operation& operation) {
  for (int other = 0; other < options_.world_size; ++other) {
    if (other == rank || place(other).arrived != operation.sequence) continue;
    if (place(other).operation == nullptr) continue;  // failed there already
    const std::string theirs = place(other).operation->text();
    if (theirs == operation.text()) continue;
    fail_locked({std::nullopt, fmt::format("rank {} calls {} where rank {} calls {}", rank,
                                           operation.text(), other, theirs)});
    return;
  }
}

std::string Meeting::missing(std::uint64_t sequence) const {
  std::string list;
  for (int rank = 0; rank < options_.world_size; ++rank) {
    if (place(rank).arrived < sequence) list += fmt::format("{}{}", list.empty() ? "" : ", ", rank);
  }
  return list;
}

std::optional<int> Meeting::only_missing(std::uint64_t sequence) const {
  const auto late = [&](const Place& each) { return each.arrived < sequence; };
  const auto first = std::find_if(places_.begin(), places_.end(), late);
  if (first == places_.end()) return std::nullopt;
  return static_cast<int>(first - places_.begin());
}

void Meeting::enter(int rank, const Operation& operation) {
  std::unique_lock lock(mutex_);
  place(rank).operation = &operation;
  place(rank).arrived = operation.sequence;
  check_same(rank, operation);
  for (int other = 0; other < options_.world_size; ++other) {
    if (place(other).left) fail_locked({other, "it left the group"});
  }
  if (++entered_ == options_.world_size && !failure_) {
    entered_ = 0;
    ++met_;
    changed_.notify_all();
  }
  const auto met = [&] { return met_ >= operation.sequence; };
  if (!changed_.wait_for(lock, options_.timeout, [&] { return met() || failure_; })) {
    fail_locked({only_missing(operation.sequence),
                 fmt::format("not at {} within {} ms (missing: {})", operation.text(),
                             options_.timeout.count(), missing(operation.sequence))});
  }
  if (!met()) {
    place(rank).operation = nullptr;
    throw CommError(rank, operation.text(), *failure_);
  }
}

void Meeting::finish() {
  std::unique_lock lock(mutex_);
  const std::uint64_t mine = met_;
  if (++finished_ == options_.world_size) {
    finished_ = 0;
    parted_ = met_;
    changed_.notify_all();
  }
  changed_.wait(lock, [&] { return parted_ >= mine; });
}

void Meeting::fail(const Failure& failure) noexcept {
  const std::lock_guard lock(mutex_);
  fail_locked(failure);
}

void Meeting::leave(int rank) noexcept {
  const std::lock_guard lock(mutex_);
  place(rank).left = true;
  // Others that wait for it now wait in vain.
  for (const Place& other : places_) {
    if (other.operation != nullptr && other.arrived > place(rank).arrived)
      return fail_locked({rank, "it left the group"});
  }
}

class ThreadCommunicator final : public QueuedCommunicator {
 public:
  ThreadCommunicator(CommOptions options, std::shared_ptr<Meeting> meeting)
      : QueuedCommunicator(std::move(options)), meeting_(std::move(meeting)) {
    start_thread(true);
  }
  ~ThreadCommunicator() override {
    if (busy()) interrupt({rank(), "it left the group in the middle of an operation"});
    stop_thread();
    meeting_->leave(rank());
  }

  [[nodiscard]] std::string description() const override {
    return fmt::format("threads, {} rank{}", world_size(), world_size() == 1 ? "" : "s");
  }

 protected:
  void execute(const Operation& operation) override {
    meeting_->enter(rank(), operation);
    std::exception_ptr thrown;  // for want of memory; the others must not wait
    try {
      work(operation);
    } catch (...) {
      thrown = std::current_exception();
    }
    meeting_->finish();
    if (thrown) std::rethrow_exception(thrown);
  }
  void interrupt(const Failure& failure) noexcept override { meeting_->fail(failure); }
  [[nodiscard]] std::optional<Failure> known_failure() const override {
    return meeting_->failure();
  }

 private:
  void work(const Operation& operation) const {
    switch (operation.kind) {
      case Operation::Kind::kAllReduce:
        return reduce_part(operation);
      case Operation::Kind::kBroadcast: {
        const auto from = meeting_->operation_of(operation.root).data;
        if (rank() != operation.root && !from.empty())
          std::memcpy(operation.data.data(), from.data(), from.size());
        return;
      }
      case Operation::Kind::kBarrier:
        return;
      case Operation::Kind::kAllGather:
        for (int r = 0; r < world_size(); ++r)
          operation.gathered->emplace_back(meeting_->operation_of(r).mine);
        return;
    }
  }

  // This rank's part of all pieces as if they lay one behind the other.
  void reduce_part(const Operation& operation) const {
    require_same_pieces(operation);
    const std::size_t size = element_bytes(operation.type);
    const Part part = part_of(operation.bytes() / size, world_size(), rank());
    std::size_t begin = 0;  // of a piece
    for (std::size_t piece = 0; piece < operation.piece_count(); ++piece) {
      const std::size_t end = begin + operation.piece(piece).size() / size;
      const Part mine{std::max(begin, part.begin), std::min(end, part.end)};
      if (mine.begin < mine.end)
        reduce_piece(operation, piece, {mine.begin - begin, mine.end - begin});
      begin = end;
    }
  }

  // A block at a time, so that it stays in the cache while all ranks' are added.
  void reduce_piece(const Operation& operation, std::size_t piece, const Part& part) const {
    const std::size_t size = element_bytes(operation.type);
    constexpr std::size_t kBlock = 2048;
    alignas(64) std::byte sum[kBlock * sizeof(double)];
    for (std::size_t at = part.begin; at < part.end; at += kBlock) {
      const std::size_t count = std::min(kBlock, part.end - at);
      const auto block = [&](int r) {
        return meeting_->operation_of(r).piece(piece).data() + at * size;
      };
      std::memcpy(sum, block(0), count * size);
      for (int r = 1; r < world_size(); ++r)
        combine(sum, block(r), count, operation.type, operation.reduction);
      for (int r = 0; r < world_size(); ++r) std::memcpy(block(r), sum, count * size);
    }
  }

  // Bytes of other ranks are written through their pieces. (Sum and count are compared already.)
  void require_same_pieces(const Operation& operation) const {
    for (int r = 0; r < world_size(); ++r) {
      for (std::size_t i = 0; i < operation.piece_count(); ++i) {
        const std::size_t theirs = meeting_->operation_of(r).piece(i).size();
        if (theirs == operation.piece(i).size()) continue;
        throw base::input_error("{}: piece {} has {} bytes on rank {} and {} on rank {}",
                                operation.text(), i, operation.piece(i).size(), rank(), theirs, r);
      }
    }
  }

  const std::shared_ptr<Meeting> meeting_;
};

}  // namespace

std::vector<std::unique_ptr<Communicator>> make_thread_group(const CommOptions& options) {
  if (options.world_size < 1)
    throw base::input_error("group '{}': world size {}", options.name, options.world_size);
  const auto meeting = std::make_shared<Meeting>(options);
  std::vector<std::unique_ptr<Communicator>> group;
  for (int rank = 0; rank < options.world_size; ++rank) {
    CommOptions mine = options;
    mine.rank = rank;
    group.push_back(std::make_unique<ThreadCommunicator>(std::move(mine), meeting));
  }
  return group;
}

}  // namespace reprise::runtime::comm
