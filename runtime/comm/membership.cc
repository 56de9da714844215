#include "runtime/comm/membership.h"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"
#include "runtime/comm/store_server.h"

namespace reprise::runtime::comm {
namespace {

using std::chrono::milliseconds;

Frame hello(const MemberOptions& options, bool member) {
  return Frame(FrameType::kHello)
      .add(options.job)
      .add_number(options.world_size)
      .add_number(options.rank)
      .add_number(member ? 1 : 0);
}

base::Error refused_by(const MemberOptions& options, const std::string& reason) {
  return base::device_error(
      "rank {} was refused by the store at {}: {}; give each job a port of its own ({})",
      options.rank, options.store.text(), reason, options.store.port_origin);
}

}  // namespace

Membership::Membership(MemberOptions options)
    : options_(std::move(options)),
      socket_(connect_to(options_.store, Clock::now() + options_.timeout)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      own_address_(local_address(socket_)) {
  heard_ = Clock::now();
  send(hello(options_, true));
  thread_ = std::thread([this] { loop(); });
  try {
    wait_for_all();
  } catch (...) {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = gave_up_ = true;
    }
    wake();
    thread_.join();
    throw;
  }
}

void Membership::wait_for_all() {
  std::unique_lock lock(mutex_);
  const auto settled = [&] {
    return refused_ || failure_ || ended_ || (missing_ && missing_->empty());
  };
  const bool in_time = changed_.wait_for(lock, options_.timeout, settled);
  if (refused_) throw refused_by(options_, *refused_);
  if (failure_) throw CommError(options_.rank, "joining the group", *failure_);
  if (in_time && !ended_) return;
  if (ended_ || !missing_) {
    throw base::device_error(
        "rank {} at {}: whatever listens at {} is no store of Reprise; choose another port by {}",
        options_.rank, own_address_, options_.store.text(), options_.store.port_origin);
  }
  lock.unlock();
  send(progress(FrameType::kStalled));  // the others hear who is missing
  throw CommError(options_.rank, "joining the group",
                  {std::atoi(missing_->c_str()),
                   fmt::format("of {} ranks these did not join within {} ms: {} (store at {})",
                               options_.world_size, options_.timeout.count(), *missing_,
                               options_.store.text())});
}

Membership::~Membership() {
  bool say_goodbye = false;
  {
    const std::lock_guard lock(mutex_);
    say_goodbye = !gave_up_;
    stopping_ = true;
  }
  if (say_goodbye) send(progress(FrameType::kBye));
  wake();
  thread_.join();
}

void Membership::wake() noexcept {
  const std::uint64_t one = 1;
  (void)!::write(wake_.fd(), &one, sizeof(one));
}

void Membership::send(const Frame& frame) noexcept {
  const std::lock_guard lock(send_mutex_);
  (void)send_all(socket_.fd(), frame.encoded(), Clock::now() + options_.timeout);
}

Frame Membership::progress(FrameType type) const {
  const std::lock_guard lock(mutex_);
  return Frame(type).add_number(entered_).add(operation_);
}

void Membership::entered(std::int64_t count, const std::string& operation) {
  const std::lock_guard lock(mutex_);
  entered_ = count;
  operation_ = operation;
}

void Membership::finished() {
  const std::lock_guard lock(mutex_);
  operation_.clear();
}

std::optional<Failure> Membership::stalled(milliseconds wait) {
  send(progress(FrameType::kStalled));
  if (auto known = failure(wait)) return known;
  const auto silence = [&] {
    const std::lock_guard lock(mutex_);
    return Clock::now() - heard_;
  }();
  if (silence > 4 * beat_interval(options_.timeout)) {
    note_failure({0, silence_reason(std::chrono::duration<double>(silence).count(), own_address_,
                                    options_.store.text())});
  }
  return failure();
}

void Membership::fail(const std::string& reason) noexcept {
  std::optional<Failure> known;
  {
    const std::lock_guard lock(mutex_);
    if (gave_up_) return;
    gave_up_ = true;
    known = failure_;
  }
  // Because of another: a store that stood still itself learns that it was, and not that this did.
  if (known && known->rank && *known->rank != options_.rank) {
    send(Frame(FrameType::kFailure).add_number(*known->rank).add(known->reason));
  } else {
    send(Frame(FrameType::kFailed).add(reason));
  }
  note_failure({options_.rank, reason});
}

std::optional<Failure> Membership::failure(milliseconds wait) const {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, wait, [&] { return failure_.has_value(); });
  return failure_;
}

void Membership::note_failure(const Failure& failure) {
  {
    const std::lock_guard lock(mutex_);
    if (failure_) return;
    failure_ = failure;
  }
  changed_.notify_all();
  if (options_.failed) options_.failed(failure);
}

void Membership::loop() {
  const auto interval = beat_interval(options_.timeout);
  auto next_beat = Clock::now();
  auto last_turn = next_beat;
  while (true) {
    {
      const std::lock_guard lock(mutex_);
      if (stopping_ || ended_) return;
    }
    const auto now = Clock::now();
    if (now - last_turn > 4 * interval) {  // this process stood still itself: it may have news
      const std::lock_guard lock(mutex_);
      heard_ += now - last_turn;
    }
    last_turn = now;
    if (now >= next_beat) {
      send(progress(FrameType::kBeat));
      next_beat = now + interval;
    }
    // Before the welcome, joining has a deadline of its own.
    if (missing_ && now - heard_ > most_silence(options_.timeout)) {
      note_failure({0, silence_reason(std::chrono::duration<double>(now - heard_).count(),
                                      own_address_, options_.store.text())});
    }
    std::array<pollfd, 2> polled{{{wake_.fd(), POLLIN, 0}, {socket_.fd(), POLLIN, 0}}};
    const auto pause = std::chrono::ceil<milliseconds>(next_beat - now).count();
    (void)::poll(polled.data(), polled.size(), static_cast<int>(std::max<std::int64_t>(0, pause)));
    if (polled[1].revents != 0) take_frames();
  }
}

void Membership::take_frames() {
  char bytes[16384];
  const ssize_t got = ::recv(socket_.fd(), bytes, sizeof(bytes), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) return;
  if (got > 0) in_.append({bytes, static_cast<std::size_t>(got)});
  const int code = got < 0 ? errno : 0;
  std::optional<Failure> news;
  bool over = got <= 0;
  {
    const std::lock_guard lock(mutex_);
    while (const auto frame = in_.next()) {
      heard_ = Clock::now();
      FieldReader fields(frame->fields);
      if (frame->type == FrameType::kWelcome) missing_ = fields.text();
      if (frame->type == FrameType::kRefused) refused_ = fields.text().value_or("no reason given");
      if (frame->type == FrameType::kFailure) {
        const auto rank = fields.number().value_or(-1);
        news = Failure{rank < 0 ? std::nullopt : std::optional(static_cast<int>(rank)),
                       fields.text().value_or("")};
      }
    }
    over = over || in_.broken();
    ended_ = ended_ || over;
  }
  if (news) note_failure(*news);
  if (over) {
    const bool welcome = [&] {
      const std::lock_guard lock(mutex_);
      return missing_.has_value() && !stopping_;
    }();
    if (welcome) note_failure({0, break_reason(code, own_address_, options_.store.text())});
  }
  changed_.notify_all();
}

StoreClient::StoreClient(const MemberOptions& options)
    : options_(options), socket_(connect_to(options_.store, Clock::now() + options_.timeout)) {
  send(hello(options_, false));
}

void StoreClient::send(const Frame& frame) {
  if (send_all(socket_.fd(), frame.encoded(), Clock::now() + options_.timeout)) return;
  throw base::device_error("the store of rank 0 at {} takes nothing any more (it ended, or stands)",
                           options_.store.text());
}

Frame StoreClient::receive(FrameType type, const std::string& what, Clock::time_point deadline) {
  while (true) {
    if (const auto frame = in_.next()) {
      if (frame->type == type) return *frame;
      if (frame->type == FrameType::kRefused)
        throw refused_by(options_, FieldReader(frame->fields).text().value_or("no reason given"));
      continue;
    }
    if (in_.broken())
      throw base::device_error("{} is no store of Reprise; choose another port by {}",
                               options_.store.text(), options_.store.port_origin);
    if (!wait_readable(socket_.fd(), deadline)) {
      throw base::device_error("rank {}: the store at {} has no {} within the time-out",
                               options_.rank, options_.store.text(), what);
    }
    char bytes[16384];
    const ssize_t got = ::recv(socket_.fd(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got > 0) in_.append({bytes, static_cast<std::size_t>(got)});
    if (got == 0 || (got < 0 && errno != EAGAIN && errno != EINTR))
      throw base::device_error("rank {}: the store at {} ended before it had {}", options_.rank,
                               options_.store.text(), what);
  }
}

void StoreClient::interrupt() noexcept {
  ::shutdown(socket_.fd(), SHUT_RDWR);
}

void StoreClient::set(const std::string& key, std::string_view value) {
  send(Frame(FrameType::kSet).add(key).add(value));
}

std::string StoreClient::get(const std::string& key, Clock::time_point deadline) {
  send(Frame(FrameType::kGet).add(key));
  const Frame frame = receive(FrameType::kValue, fmt::format("key '{}'", key), deadline);
  return FieldReader(frame.fields).text().value_or("");
}

std::int64_t StoreClient::add(const std::string& key, std::int64_t number) {
  send(Frame(FrameType::kAdd).add(key).add_number(number));
  const Frame frame =
      receive(FrameType::kNumber, fmt::format("key '{}'", key), Clock::now() + options_.timeout);
  return FieldReader(frame.fields).number().value_or(0);
}

}  // namespace reprise::runtime::comm
