#include "runtime/rank_sums.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <thread>

#include "base/error.h"

namespace reprise::runtime {

using graph::NodeId;
using graph::OpKind;

namespace {

using Clock = std::chrono::steady_clock;
constexpr const char* kDoing = "sums on the device";
constexpr std::chrono::milliseconds kMostGrace{2000};

// Inside a catch block.
std::string reason_in_flight() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception";
  }
}

}  // namespace

// The reference backend stores f32 values as f64; whatever else an f32 value is stored as, it is
// made of floats, with zeros between them where a layout has padding.
RankSums::RankSums(const graph::PreparedGraph& prepared, const schedule::Schedule& schedule,
                   comm::Communicator& communicator, base::Bytes bucket_bytes,
                   kernels::DeviceSums* device)
    : prepared_(prepared),
      communicator_(communicator),
      device_(device),
      type_(prepared.backend == "reference" ? comm::ElementType::kF64 : comm::ElementType::kF32),
      buckets_(schedule::cut_buckets(prepared, schedule, bucket_bytes)),
      members_(prepared.graph.nodes.size()),
      tickets_(buckets_.size()) {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const auto& members = buckets_[b].members;
    for (std::size_t i = 0; i < members.size(); ++i) members_[members[i]] = {b, i};
    pieces_.emplace_back(members.size());
  }
  begun_.reserve(buckets_.size());
}

bool RankSums::run(NodeId id, const kernels::Call& call) {
  const graph::Node& node = prepared_.graph.nodes[id];
  if (node.op == OpKind::kAllReduce) {
    const auto [bucket, place] = members_[id];
    auto& pieces = pieces_[bucket];
    const auto bytes = static_cast<std::size_t>(prepared_.value_bytes[node.outputs[0]]);
    pieces[place] = {call.outputs[0], bytes};
    if (place + 1 < pieces.size()) return true;  // its last member starts it
    start(bucket, prepared_.graph.values[node.outputs[0]].dtype);
    return true;
  }
  if (node.op != OpKind::kAwait) return false;
  const std::size_t bucket = members_[prepared_.graph.values[node.inputs[0]].producer].bucket;
  if (device_ != nullptr) {
    device_->wait(bucket);
  } else {
    communicator_.wait(tickets_[bucket]);
  }
  return true;
}

void RankSums::start(std::size_t bucket, graph::DType type) {
  if (device_ != nullptr) {
    device_->start(bucket, pieces_[bucket], type);
    begun_.push_back(bucket);
    return;
  }
  newest_ = communicator_.start_all_reduce_pieces(pieces_[bucket], type_, comm::Reduction::kSum);
  tickets_[bucket] = newest_;
}

void RankSums::begin_step() {
  begun_.clear();
  if (device_ != nullptr) communicator_.check(kDoing);
}

void RankSums::wait_all() {
  if (device_ == nullptr) {
    if (newest_.sequence != 0) communicator_.wait(newest_);
    return;
  }
  if (begun_.empty()) return;
  for (const std::size_t bucket : begun_) device_->wait(bucket);
  begun_.clear();
  await_device();
}

void RankSums::end_step() {
  if (device_ != nullptr) await_device();
}

// All ranks tell each other that they have queued the step: one that does not come is found out,
// and named, by the communicator. From then on only the devices can be late.
void RankSums::await_device() {
  present_ = 1;
  newest_ = communicator_.start_all_reduce(std::as_writable_bytes(std::span(&present_, 1)),
                                           comm::ElementType::kU64, comm::Reduction::kSum);
  const auto begin = Clock::now();
  auto all_here = begin;
  for (bool met = false;;) {
    if (!met && communicator_.done(newest_)) {
      met = true;
      all_here = Clock::now();
    }
    communicator_.check(kDoing);
    const bool idle = device_is_idle();
    if (met && idle) return;
    const auto now = Clock::now();
    const auto timeout = communicator_.options().timeout;
    if (met && now - all_here > timeout) {
      const auto reason = fmt::format(
          "all ranks have queued the step, but it did not end within {} ms", timeout.count());
      throw comm::CommError(communicator_.rank(), kDoing, {std::nullopt, reason});
    }
    // A step is over in milliseconds, or takes long enough for a nap not to matter.
    if (now - begin < std::chrono::milliseconds(20)) {
      std::this_thread::yield();
    } else {
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }
}

// A rank that is gone breaks the group on the device too, and perhaps before the communicator
// hears of it: then its name is the news.
bool RankSums::device_is_idle() {
  try {
    return device_->idle();
  } catch (const base::Error&) {
    const auto grace = std::min(communicator_.options().timeout / 10, kMostGrace);
    for (const auto end = Clock::now() + grace; Clock::now() < end;) {
      communicator_.check(kDoing);
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    throw;
  }
}

void RankSums::give_up(std::string_view place, std::uint64_t step) noexcept {
  try {
    communicator_.abort(fmt::format("step {}, {}: {}", step + 1, place, reason_in_flight()));
  } catch (...) {  // no memory for a long reason
    communicator_.abort("out of memory");
  }
  if (device_ != nullptr) device_->abort();
  try {
    if (newest_.sequence != 0) communicator_.wait(newest_);
  } catch (...) {  // it says once more what is known
  }
}

}  // namespace reprise::runtime
