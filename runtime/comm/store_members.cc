// The store's roll of members: who is alive, who is behind, who failed first.

#include "base/error.h"
#include "runtime/comm/store_server.h"

namespace reprise::runtime::comm {
namespace {

double seconds(Clock::duration time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

void StoreServer::handle_member(Connection& connection, const Frame& frame) {
  const int rank = connection.member;
  Member& member = members_[static_cast<std::size_t>(rank)];
  member.heard = Clock::now();
  FieldReader fields(frame.fields);
  switch (frame.type) {
    case FrameType::kBeat:
      return note_progress(rank, fields);
    case FrameType::kStalled:
      note_progress(rank, fields);
      return diagnose(rank, member.operation);
    case FrameType::kFailed:
      member.left = true;  // its end is no news any more
      return fail({rank, fields.text().value_or("no reason given")});
    case FrameType::kFailure: {  // it gives up because of another
      member.left = true;
      const auto culprit = fields.number();
      if (!culprit || *culprit < 0 || *culprit >= options_.world_size) return;
      return fail({static_cast<int>(*culprit), fields.text().value_or("no reason given")});
    }
    case FrameType::kBye:
      member.left = true;
      return;
    default:
      return;
  }
}

void StoreServer::note_progress(int rank, FieldReader& fields) {
  Member& member = members_[static_cast<std::size_t>(rank)];
  const auto entered = fields.number();
  const auto operation = fields.text();
  if (!entered || !operation) return;
  member.entered = *entered;
  member.operation = *operation;
  compare_operations(rank);
}

void StoreServer::compare_operations(int rank) {
  const Member& mine = members_[static_cast<std::size_t>(rank)];
  if (mine.operation.empty()) return;
  for (std::size_t other = 0; other < members_.size(); ++other) {
    const Member& theirs = members_[other];
    if (theirs.left && theirs.joined && theirs.entered < mine.entered)
      return fail({static_cast<int>(other), "it left the group"});
    if (theirs.operation.empty() || theirs.entered != mine.entered) continue;
    if (theirs.operation == mine.operation) continue;
    return fail({std::nullopt, fmt::format("rank {} calls {} where rank {} calls {}", rank,
                                           mine.operation, other, theirs.operation)});
  }
}

// Somebody's operation has met its deadline: the one to blame has not joined, is not heard of, or
// is behind; in this order, since each explains the next.
void StoreServer::diagnose(int rank, const std::string& operation) {
  const auto now = Clock::now();
  const auto interval = beat_interval(options_.timeout);
  const Member* silent = nullptr;
  const Member* behind = nullptr;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    const Member& member = members_[i];
    if (!member.joined) return fail({static_cast<int>(i), "it did not join the group in time"});
    if (member.left || static_cast<int>(i) == rank) continue;
    if (now - member.heard > 4 * interval && (silent == nullptr || member.heard < silent->heard))
      silent = &member;
    if (behind == nullptr || member.entered < behind->entered) behind = &member;
  }
  const auto rank_of = [&](const Member* member) {
    return static_cast<int>(member - members_.data());
  };
  if (silent != nullptr) {
    return fail({rank_of(silent), silence_reason(seconds(now - silent->heard), silent->own_address,
                                                 silent->address)});
  }
  const std::int64_t entered = members_[static_cast<std::size_t>(rank)].entered;
  if (behind != nullptr && behind->entered < entered) {
    return fail({rank_of(behind), fmt::format("it did not come to {} in time", operation)});
  }
  fail({std::nullopt,
        fmt::format("{} did not end in time, although all ranks take part", operation)});
}

void StoreServer::tick(Clock::time_point now) {
  // Who stood still itself, be it for want of a processor, cannot say that others were silent.
  const auto interval = beat_interval(options_.timeout);
  const auto stood = now - last_tick_;
  last_tick_ = now;
  next_tick_ = now + interval;
  if (stood > 4 * interval) {
    for (Member& member : members_) member.heard += stood;
  }
  for (const auto& each : connections_) {
    if (!each->greeted && now - each->since > std::chrono::seconds(10)) ended(*each);
  }
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    Member& member = members_[rank];
    if (member.connection == nullptr || member.left) continue;
    send(*member.connection, Frame(FrameType::kPing));
    if (now - member.heard > most_silence(options_.timeout)) {
      fail({static_cast<int>(rank),
            silence_reason(seconds(now - member.heard), member.own_address, member.address)});
    }
  }
}

void StoreServer::fail(Failure failure) {
  if (failure_) return;
  failure_ = std::move(failure);
  for (const Member& member : members_) {
    if (member.connection == nullptr) continue;
    send(*member.connection,
         Frame(FrameType::kFailure).add_number(failure_->rank.value_or(-1)).add(failure_->reason));
  }
}

}  // namespace reprise::runtime::comm
