#include "runtime/comm/gloo/gloo_group.h"

#include <atomic>
#include <cstring>
#include <gloo/common/error.h>
#include <gloo/transport/tcp/device.h>
#include <mutex>
#include <new>
#include <utility>

#include "base/error.h"
#include "runtime/comm/gloo/mesh.h"
#include "runtime/comm/queued_communicator.h"
#include "runtime/comm/reduce.h"

namespace reprise::runtime::comm {
namespace {

using gloo::transport::UnboundBuffer;
using std::chrono::milliseconds;

constexpr std::size_t kPartBytes = std::size_t{1} << 18;  // of one rank, in one segment
constexpr std::size_t kGatherBytes = std::size_t{1} << 20;

// Part `index` of a segment, in bytes.
struct Piece {
  std::size_t offset = 0, bytes = 0;
};

class GlooCommunicator final : public QueuedCommunicator {
 public:
  GlooCommunicator(const CommOptions& options, GlooGroup group,
                   const std::function<std::string(const std::string&)>& address)
      : QueuedCommunicator(options),
        server_(std::move(group.server)),
        mesh_(options.rank, options.world_size) {
    const std::size_t parts = static_cast<std::size_t>(world_size() - 1) * kPartBytes;
    for (Stage& stage : stages_) stage.bytes.resize(parts);
    for (Pack& pack : packs_) pack.bytes.resize(parts + kPartBytes);
    group.member_options.failed = [this,
                                   tell = group.member_options.failed](const Failure& failure) {
      mesh_.interrupt();
      wake_waits();
      if (tell) tell(failure);
    };
    membership_ = std::make_unique<Membership>(group.member_options);
    try {
      address_ = address(membership_->own_address());
    } catch (const std::exception& error) {
      leave_because(error.what());
      throw;
    }
    try {
      connect(group.member_options);
      start_thread();
    } catch (const std::bad_alloc&) {
      leave_because("out of memory");
      throw;
    } catch (const std::exception& error) {
      const auto first = first_failure();
      const Failure failure =
          first && first->rank
              ? *first
              : Failure{rank(), fmt::format("no connection from {} to the other ranks: {}; set "
                                            "GLOO_SOCKET_IFNAME to the interface that reaches them",
                                            address_, error.what())};
      leave_because(failure.reason);
      throw CommError(rank(), "connecting", failure);
    }
  }

  ~GlooCommunicator() override {
    if (busy()) interrupt({rank(), "it left the group in the middle of an operation"});
    stop_thread();
    membership_.reset();  // says goodbye
    mesh_.closeConnections();
    server_.reset();  // waits for the goodbyes of the others
  }

  [[nodiscard]] std::string description() const override {
    return fmt::format("gloo, {} ranks, {}", world_size(), address_);
  }
  [[nodiscard]] base::Bytes reserved_bytes() const override {
    std::size_t bytes = 0;
    for (const Stage& stage : stages_) bytes += stage.bytes.size();
    for (const Pack& pack : packs_) bytes += pack.bytes.size();
    return static_cast<base::Bytes>(bytes);
  }

 protected:
  void execute(const Operation& operation) override;
  void interrupt(const Failure& failure) noexcept override {
    membership_->fail(failure.reason);
    wake_waits();
  }
  [[nodiscard]] std::optional<Failure> known_failure() const override {
    return membership_->failure();
  }

 private:
  // What one rank received for its part of a segment.
  struct Stage {
    std::vector<std::byte> bytes;
    std::unique_ptr<UnboundBuffer> buffer;
  };
  // Bytes of one operation that Gloo reads and writes.
  using Buffer = std::unique_ptr<UnboundBuffer>;
  // A segment of an operation of several pieces, laid together.
  struct Pack {
    std::vector<std::byte> bytes;
    Buffer buffer;
  };
  // Where the bytes of a segment are: `memory` holds those of the operation from `begin` on.
  struct Place {
    std::byte* memory;
    UnboundBuffer& buffer;
    std::size_t begin;
  };
  struct Messages {
    std::size_t sends = 0, receives = 0;
  };

  // Of an operation; the rest of the time-out is for finding out whose fault it is.
  [[nodiscard]] milliseconds patience() const { return options().timeout * 8 / 10; }
  // The store knows better than a broken connection who is at fault; news may be on their way.
  [[nodiscard]] std::optional<Failure> first_failure() const {
    const auto wait = std::clamp(options().timeout / 10, milliseconds(200), milliseconds(2000));
    return Clock::now() >= deadline_ ? membership_->stalled(wait) : membership_->failure(wait);
  }

  void connect(const MemberOptions& options);
  // Before the group is complete: ends the membership's thread too, which calls back.
  void leave_because(const std::string& reason) noexcept {
    membership_->fail(reason);
    membership_.reset();
  }
  void all_reduce(const Operation& operation);
  void broadcast(const Operation& operation);
  void all_gather(const Operation& operation);
  void all_reduce_packed(const Operation& operation);
  void begin_segment(const Operation& operation, const Place& place, std::size_t segment);
  void end_segment(const Operation& operation, const Place& place, std::size_t segment);
  [[nodiscard]] Messages messages_of(const Operation& operation, std::size_t segment) const;
  void settle(UnboundBuffer& buffer, Messages messages);
  template <class Copy>
  void copy_segment(const Operation& operation, std::size_t segment, Copy&& copy);
  [[nodiscard]] Piece piece_of(const Operation& operation, std::size_t segment, int owner) const;
  [[nodiscard]] std::size_t segments_of(const Operation& operation) const {
    const std::size_t bytes = segment_elements(operation) * element_bytes(operation.type);
    return (operation.bytes() + bytes - 1) / bytes;
  }
  [[nodiscard]] std::size_t segment_elements(const Operation& operation) const {
    return kPartBytes / element_bytes(operation.type) * static_cast<std::size_t>(world_size());
  }
  // Unique among the messages under way, and never the same for operations that differ.
  [[nodiscard]] std::uint64_t slot(std::size_t segment, int phase) const {
    return signature_ << 24 | (segment & 0x7FFFFF) << 1 | static_cast<std::uint64_t>(phase);
  }
  void receive(UnboundBuffer& buffer);
  void sent(UnboundBuffer& buffer);
  template <class Wait>
  void wait(UnboundBuffer& buffer, Wait&& wait_one);
  void wake_waits() noexcept;
  template <class F>
  void for_others(F&& f) const {  // beginning behind this rank, so that not all begin with rank 0
    for (int i = 1; i < world_size(); ++i) f((rank() + i) % world_size());
  }

  std::unique_ptr<StoreServer> server_;
  std::unique_ptr<Membership> membership_;
  std::unique_ptr<StoreClient> keys_;
  GlooMesh mesh_;
  std::string address_;
  Stage stages_[2];
  Pack packs_[2];
  std::uint64_t signature_ = 0;
  Clock::time_point deadline_{};
  std::mutex wait_mutex_;
  UnboundBuffer* waiting_ = nullptr;
  std::atomic<bool> interrupted_{false};
};

void GlooCommunicator::connect(const MemberOptions& options) {
  deadline_ = Clock::now() + patience();
  keys_ = std::make_unique<StoreClient>(options);
  gloo::transport::tcp::attr attributes;
  attributes.hostname = address_;
  membership_->entered(0, "connecting");
  mesh_.connect(*keys_, gloo::transport::tcp::CreateDevice(attributes), patience());
  membership_->finished();
}

void GlooCommunicator::wake_waits() noexcept {
  interrupted_ = true;
  const std::lock_guard lock(wait_mutex_);
  if (waiting_ == nullptr) return;
  waiting_->abortWaitRecv();
  waiting_->abortWaitSend();
}

template <class Wait>
void GlooCommunicator::wait(UnboundBuffer& buffer, Wait&& wait_one) {
  const auto set_waiting = [this](UnboundBuffer* waiting) {
    const std::lock_guard lock(wait_mutex_);
    waiting_ = waiting;
  };
  set_waiting(&buffer);
  const auto left = std::chrono::ceil<milliseconds>(deadline_ - Clock::now());
  bool done = false;
  try {
    done = !interrupted_ && wait_one(std::max(left, milliseconds(1)));
  } catch (...) {
    set_waiting(nullptr);
    throw;
  }
  set_waiting(nullptr);
  if (!done) throw gloo::IoException("interrupted");
}

void GlooCommunicator::receive(UnboundBuffer& buffer) {
  wait(buffer, [&](milliseconds left) { return buffer.waitRecv(left); });
}
void GlooCommunicator::sent(UnboundBuffer& buffer) {
  wait(buffer, [&](milliseconds left) { return buffer.waitSend(left); });
}

void GlooCommunicator::execute(const Operation& operation) {
  const std::string text = operation.text();
  const std::uint64_t all_bits = std::hash<std::string>{}(text);
  signature_ = (all_bits ^ all_bits >> 40) & 0xFFFFFFFFFF;
  deadline_ = Clock::now() + patience();
  membership_->entered(static_cast<std::int64_t>(operation.sequence), text);
  try {
    switch (operation.kind) {
      case Operation::Kind::kAllReduce:
        operation.piece_count() == 1 ? all_reduce(operation) : all_reduce_packed(operation);
        break;
      case Operation::Kind::kBroadcast:
        broadcast(operation);
        break;
      case Operation::Kind::kBarrier:
      case Operation::Kind::kAllGather:
        all_gather(operation);
        break;
    }
  } catch (const gloo::Exception& error) {
    const auto first = first_failure();
    const Failure failure = first.value_or(Failure{std::nullopt, error.what()});
    if (!first) membership_->fail(failure.reason);
    throw CommError(rank(), text, failure);
  }
  membership_->finished();
}

Piece GlooCommunicator::piece_of(const Operation& operation, std::size_t segment, int owner) const {
  const std::size_t size = element_bytes(operation.type);
  const std::size_t begin = segment * segment_elements(operation);
  const std::size_t count = std::min(segment_elements(operation), operation.bytes() / size - begin);
  const Part part = part_of(count, world_size(), owner);
  return {(begin + part.begin) * size, part.size() * size};
}

// Asks for this rank's part from all others, and sends them theirs.
void GlooCommunicator::begin_segment(const Operation& operation, const Place& at,
                                     std::size_t segment) {
  Stage& stage = stages_[segment % 2];
  const Piece mine = piece_of(operation, segment, rank());
  for_others([&](int other) {
    const auto place = static_cast<std::size_t>(other < rank() ? other : other - 1);
    if (mine.bytes > 0) stage.buffer->recv(other, slot(segment, 0), place * kPartBytes, mine.bytes);
    const Piece theirs = piece_of(operation, segment, other);
    if (theirs.bytes > 0)
      at.buffer.send(other, slot(segment, 0), theirs.offset - at.begin, theirs.bytes);
  });
}

// Adds up this rank's part, sends the sum to all, and asks for theirs.
void GlooCommunicator::end_segment(const Operation& operation, const Place& at,
                                   std::size_t segment) {
  Stage& stage = stages_[segment % 2];
  const Piece mine = piece_of(operation, segment, rank());
  const std::size_t count = mine.bytes / element_bytes(operation.type);
  if (mine.bytes > 0) for_others([&](int) { receive(*stage.buffer); });
  std::byte* own = at.memory + (mine.offset - at.begin);
  // ((x0 + x1) + x2) + ...: own values are one of the terms, and the sum grows in place of x0.
  std::byte* sum = rank() == 0 ? own : stage.bytes.data();
  for (int r = 1; r < world_size() && count > 0; ++r) {
    const auto place = static_cast<std::size_t>(r < rank() ? r : r - 1);
    const std::byte* term = r == rank() ? own : stage.bytes.data() + place * kPartBytes;
    combine(sum, term, count, operation.type, operation.reduction);
  }
  if (sum != own && count > 0) std::memcpy(own, sum, mine.bytes);
  for_others([&](int other) {
    if (mine.bytes > 0) at.buffer.send(other, slot(segment, 1), mine.offset - at.begin, mine.bytes);
    const Piece theirs = piece_of(operation, segment, other);
    if (theirs.bytes > 0)
      at.buffer.recv(other, slot(segment, 1), theirs.offset - at.begin, theirs.bytes);
  });
}

// Of one segment in the operation's own bytes; receives into the stages are not among them.
GlooCommunicator::Messages GlooCommunicator::messages_of(const Operation& operation,
                                                         std::size_t segment) const {
  Messages messages;
  for_others([&](int other) {
    if (piece_of(operation, segment, rank()).bytes > 0) ++messages.sends;
    if (piece_of(operation, segment, other).bytes == 0) return;
    ++messages.sends;
    ++messages.receives;
  });
  return messages;
}

void GlooCommunicator::settle(UnboundBuffer& buffer, Messages messages) {
  for (; messages.receives > 0; --messages.receives) receive(buffer);
  for (; messages.sends > 0; --messages.sends) sent(buffer);
}

void GlooCommunicator::all_reduce(const Operation& operation) {
  const std::size_t segments = segments_of(operation);
  if (segments == 0) return;
  for (Stage& stage : stages_)
    stage.buffer = mesh_.createUnboundBuffer(stage.bytes.data(), stage.bytes.size());
  const std::span<std::byte> data = operation.piece(0);
  const Buffer buffer = mesh_.createUnboundBuffer(data.data(), data.size());
  const Place place{data.data(), *buffer, 0};
  // While one segment is added up, the parts of the next one travel.
  begin_segment(operation, place, 0);
  Messages messages;
  for (std::size_t segment = 0; segment < segments; ++segment) {
    if (segment + 1 < segments) begin_segment(operation, place, segment + 1);
    end_segment(operation, place, segment);
    const Messages more = messages_of(operation, segment);
    messages.sends += more.sends;
    messages.receives += more.receives;
  }
  settle(*buffer, messages);
}

// Gloo sends what lies together. Pieces may be small and many, so a segment is packed and unpacked
// as a whole.
void GlooCommunicator::all_reduce_packed(const Operation& operation) {
  const std::size_t segments = segments_of(operation);
  for (Stage& stage : stages_)
    stage.buffer = mesh_.createUnboundBuffer(stage.bytes.data(), stage.bytes.size());
  for (Pack& pack : packs_)
    pack.buffer = mesh_.createUnboundBuffer(pack.bytes.data(), pack.bytes.size());
  const std::size_t segment_bytes = segment_elements(operation) * element_bytes(operation.type);
  const auto place_of = [&](std::size_t segment) {
    Pack& pack = packs_[segment % 2];
    return Place{pack.bytes.data(), *pack.buffer, segment * segment_bytes};
  };
  const auto begin = [&](std::size_t segment) {
    copy_segment(operation, segment, [](std::byte* packed, std::byte* own, std::size_t bytes) {
      std::memcpy(packed, own, bytes);
    });
    begin_segment(operation, place_of(segment), segment);
  };
  const auto finish = [&](std::size_t segment) {
    settle(*packs_[segment % 2].buffer, messages_of(operation, segment));
    copy_segment(operation, segment, [](std::byte* packed, std::byte* own, std::size_t bytes) {
      std::memcpy(own, packed, bytes);
    });
  };
  for (std::size_t segment = 0; segment < segments; ++segment) {
    if (segment == 0) begin(0);
    if (segment > 0) finish(segment - 1);  // its pack is the next one's
    if (segment + 1 < segments) begin(segment + 1);
    end_segment(operation, place_of(segment), segment);
  }
  if (segments > 0) finish(segments - 1);
}

// copy(packed, own, bytes) for each stretch of a segment that lies together in a piece.
template <class Copy>
void GlooCommunicator::copy_segment(const Operation& operation, std::size_t segment, Copy&& copy) {
  const std::size_t segment_bytes = segment_elements(operation) * element_bytes(operation.type);
  const std::size_t begin = segment * segment_bytes;
  const std::size_t end = begin + segment_bytes;
  std::byte* const packed = packs_[segment % 2].bytes.data();
  std::size_t at = 0;  // of the piece in the operation
  for (std::size_t i = 0; i < operation.piece_count() && at < end; ++i) {
    const std::span<std::byte> piece = operation.piece(i);
    const std::size_t from = std::max(begin, at);
    const std::size_t to = std::min(end, at + piece.size());
    if (from < to) copy(packed + (from - begin), piece.data() + (from - at), to - from);
    at += piece.size();
  }
}

void GlooCommunicator::broadcast(const Operation& operation) {
  if (operation.data.empty()) return;
  const Buffer buffer = mesh_.createUnboundBuffer(operation.data.data(), operation.data.size());
  if (rank() != operation.root) {
    buffer->recv(operation.root, slot(0, 0));
    return receive(*buffer);
  }
  for_others([&](int other) { buffer->send(other, slot(0, 0)); });
  for_others([&](int) { sent(*buffer); });
}

// Lengths first, then as many bytes. A barrier is one of lengths alone.
void GlooCommunicator::all_gather(const Operation& operation) {
  const bool barrier = operation.kind == Operation::Kind::kBarrier;
  const auto ranks = static_cast<std::size_t>(world_size());
  std::vector<std::uint64_t> lengths(ranks);
  lengths[static_cast<std::size_t>(rank())] = operation.mine.size();
  const Buffer length_buffer =
      mesh_.createUnboundBuffer(lengths.data(), ranks * sizeof(std::uint64_t));
  const auto at = [](int r) { return static_cast<std::size_t>(r) * sizeof(std::uint64_t); };
  for_others([&](int other) {
    length_buffer->recv(other, slot(0, 0), at(other), sizeof(std::uint64_t));
    length_buffer->send(other, slot(0, 0), at(rank()), sizeof(std::uint64_t));
  });
  for_others([&](int) { receive(*length_buffer); });
  for_others([&](int) { sent(*length_buffer); });
  if (barrier) return;
  std::vector<std::string>& all = *operation.gathered;
  all.resize(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    if (lengths[r] > kGatherBytes)
      throw base::device_error("rank {} sends {} bytes, more than {}", r, lengths[r], kGatherBytes);
    all[r].resize(lengths[r]);
  }
  all[static_cast<std::size_t>(rank())] = operation.mine;
  std::vector<Buffer> buffers(ranks);
  for (std::size_t r = 0; r < ranks; ++r)
    if (lengths[r] > 0) buffers[r] = mesh_.createUnboundBuffer(all[r].data(), all[r].size());
  const Buffer& own = buffers[static_cast<std::size_t>(rank())];
  for_others([&](int other) {
    if (const Buffer& theirs = buffers[static_cast<std::size_t>(other)])
      theirs->recv(other, slot(0, 1));
    if (own) own->send(other, slot(0, 1));
  });
  for_others([&](int other) {
    if (const Buffer& theirs = buffers[static_cast<std::size_t>(other)]) receive(*theirs);
  });
  for_others([&](int) {
    if (own) sent(*own);
  });
}

}  // namespace

std::unique_ptr<Communicator> make_gloo_group(
    const CommOptions& options, GlooGroup group,
    const std::function<std::string(const std::string&)>& address) {
  return std::make_unique<GlooCommunicator>(options, std::move(group), address);
}

}  // namespace reprise::runtime::comm
