#include "runtime/comm/store_server.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"

namespace reprise::runtime::comm {
namespace {

using std::chrono::milliseconds;

constexpr std::size_t kMostUnsent = std::size_t{1} << 24;

std::int64_t to_number(const std::string& text) {
  std::int64_t number = 0;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

milliseconds beat_interval(milliseconds timeout) {
  return std::clamp(timeout / 20, milliseconds(20), milliseconds(1000));
}

milliseconds most_silence(milliseconds timeout) {
  return timeout * 8 / 10;
}

StoreServer::StoreServer(Socket listening, StoreOptions options)
    : options_(std::move(options)),
      listening_(std::move(listening)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      members_(static_cast<std::size_t>(options_.world_size)) {
  if (!wake_.open()) throw base::device_error("no event descriptor for the store of rank 0");
  thread_ = std::thread([this] { serve(); });
}

StoreServer::~StoreServer() {
  stopping_ = true;
  const std::uint64_t one = 1;
  (void)!::write(wake_.fd(), &one, sizeof(one));
  thread_.join();
}

bool StoreServer::all_gone() const {
  return std::all_of(connections_.begin(), connections_.end(),
                     [](const auto& each) { return each->member < 0; });
}

void StoreServer::serve() {
  while (true) {
    const auto now = Clock::now();
    if (stopping_ && !stop_by_) stop_by_ = now + options_.timeout;
    if (stop_by_ && failure_) stop_by_ = std::min(*stop_by_, now + std::chrono::seconds(1));
    if (stop_by_ && (all_gone() || now >= *stop_by_)) return;
    if (now >= next_tick_) tick(now);
    std::vector<pollfd> polled{{wake_.fd(), POLLIN, 0}, {listening_.fd(), POLLIN, 0}};
    for (const auto& each : connections_) {
      const short events = each->out.empty() ? POLLIN : POLLIN | POLLOUT;
      polled.push_back({each->socket.fd(), events, 0});
    }
    const auto pause = std::chrono::ceil<milliseconds>(next_tick_ - now).count();
    (void)::poll(polled.data(), polled.size(), static_cast<int>(std::max<std::int64_t>(0, pause)));
    if (polled[0].revents != 0) {
      std::uint64_t count = 0;
      (void)!::read(wake_.fd(), &count, sizeof(count));
    }
    for (std::size_t i = 2; i < polled.size(); ++i) {  // accepting appends, so it comes after
      Connection& each = *connections_[i - 2];
      if ((polled[i].revents & POLLOUT) != 0) flush(each);
      if ((polled[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) read_from(each);
    }
    if (polled[1].revents != 0) accept_all();
    std::erase_if(connections_, [](const auto& each) { return each->gone; });
  }
}

// Beyond what a job needs, strangers make room for newcomers: the oldest that has not said hello.
void StoreServer::accept_all() {
  const std::size_t most = 4 * static_cast<std::size_t>(options_.world_size) + 64;
  while (true) {
    Socket socket(::accept4(listening_.fd(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.open()) return;
    if (connections_.size() >= most) {
      const auto stranger = std::find_if(connections_.begin(), connections_.end(),
                                         [](const auto& each) { return !each->greeted; });
      if (stranger == connections_.end()) continue;  // closed at once
      connections_.erase(stranger);
    }
    connections_.push_back(std::make_unique<Connection>());
    connections_.back()->socket = std::move(socket);
  }
}

void StoreServer::read_from(Connection& connection) {
  char bytes[16384];
  while (!connection.gone) {
    const ssize_t got = ::recv(connection.socket.fd(), bytes, sizeof(bytes), MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (got <= 0) return ended(connection, got < 0 ? errno : 0);
    if (connection.closing) continue;
    connection.in.append({bytes, static_cast<std::size_t>(got)});
    while (const auto frame = connection.in.next()) {
      if (!connection.gone && !connection.closing) handle(connection, *frame);
    }
    if (connection.in.broken()) return ended(connection);
  }
}

void StoreServer::handle(Connection& connection, const Frame& frame) {
  if (!connection.greeted) {
    if (frame.type != FrameType::kHello) return ended(connection);
    return hello(connection, frame);
  }
  return connection.member >= 0 ? handle_member(connection, frame) : handle_keys(connection, frame);
}

void StoreServer::hello(Connection& connection, const Frame& frame) {
  FieldReader fields(frame.fields);
  const auto job = fields.text();
  const auto world_size = fields.number(), rank = fields.number(), is_member = fields.number();
  if (!job || !world_size || !rank || !is_member) return ended(connection);
  if (*job != options_.job) {
    return refuse(connection, fmt::format("job '{}' runs there, not '{}'", options_.job, *job));
  }
  if (*world_size != options_.world_size) {
    return refuse(connection, fmt::format("rank 0 has world size {}, rank {} has {}",
                                          options_.world_size, *rank, *world_size));
  }
  if (*rank < 0 || *rank >= options_.world_size)
    return refuse(connection, fmt::format("there is no rank {}", *rank));
  connection.greeted = true;
  if (*is_member == 0) return;
  Member& member = members_[static_cast<std::size_t>(*rank)];
  if (member.joined) {
    return refuse(connection,
                  fmt::format("rank {} is taken, by a process at {}", *rank, member.address));
  }
  connection.member = static_cast<int>(*rank);
  member.joined = true;
  member.connection = &connection;
  member.heard = Clock::now();
  member.address = peer_address(connection.socket);
  member.own_address = local_address(connection.socket);
  send_missing();
  if (failure_) {
    send(connection,
         Frame(FrameType::kFailure).add_number(failure_->rank.value_or(-1)).add(failure_->reason));
  }
}

void StoreServer::send_missing() {
  std::string missing;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (!members_[rank].joined) missing += fmt::format("{}{}", missing.empty() ? "" : ", ", rank);
  }
  for (const Member& member : members_) {
    if (member.connection != nullptr)
      send(*member.connection, Frame(FrameType::kWelcome).add(missing));
  }
}

void StoreServer::handle_keys(Connection& connection, const Frame& frame) {
  FieldReader fields(frame.fields);
  const auto key = fields.text();
  if (!key) return ended(connection);
  if (frame.type == FrameType::kSet) {
    const auto value = fields.text();
    if (!value) return ended(connection);
    values_[*key] = *value;
    answer_waiting(*key);
  } else if (frame.type == FrameType::kGet) {
    connection.waits_for = *key;
    if (values_.count(*key) != 0) answer_waiting(*key);
  } else if (frame.type == FrameType::kAdd) {
    const auto number = fields.number();
    if (!number) return ended(connection);
    const std::int64_t sum = to_number(values_[*key]) + *number;
    values_[*key] = std::to_string(sum);
    send(connection, Frame(FrameType::kNumber).add_number(sum));
    answer_waiting(*key);
  } else {
    ended(connection);
  }
}

void StoreServer::answer_waiting(const std::string& key) {
  for (const auto& each : connections_) {
    if (each->gone || each->member >= 0 || each->waits_for != key || key.empty()) continue;
    each->waits_for.clear();
    send(*each, Frame(FrameType::kValue).add(values_[key]));
  }
}

void StoreServer::send(Connection& connection, const Frame& frame) {
  if (connection.gone) return;
  connection.out += frame.encoded();
  if (connection.out.size() > kMostUnsent) return ended(connection);  // it does not read
  flush(connection);
}

void StoreServer::flush(Connection& connection) {
  while (!connection.out.empty() && !connection.gone) {
    const ssize_t sent = ::send(connection.socket.fd(), connection.out.data(),
                                connection.out.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR) continue;
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
    if (sent < 0) return ended(connection, errno);
    connection.out.erase(0, static_cast<std::size_t>(sent));
  }
  // The peer reads the reason, then closes; what it sent meanwhile must not cut that off.
  if (connection.closing) ::shutdown(connection.socket.fd(), SHUT_WR);
}

void StoreServer::refuse(Connection& connection, const std::string& reason) {
  connection.closing = true;
  send(connection, Frame(FrameType::kRefused).add(reason));
}

void StoreServer::ended(Connection& connection, int code) {
  if (connection.gone) return;
  connection.gone = true;
  connection.socket.close();
  if (connection.member < 0) return;
  Member& member = members_[static_cast<std::size_t>(connection.member)];
  member.connection = nullptr;
  if (member.left) return;
  member.left = true;
  fail({connection.member, break_reason(code, member.own_address, member.address)});
}

}  // namespace reprise::runtime::comm
