#include "runtime/comm/socket.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

#include "base/error.h"

namespace reprise::runtime::comm {
namespace {

using Addresses = std::unique_ptr<addrinfo, void (*)(addrinfo*)>;

// Throws Error(kInput) for a name that does not resolve.
Addresses resolve(const Endpoint& at) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int code = getaddrinfo(at.host.c_str(), std::to_string(at.port).c_str(), &hints, &found);
  if (code != 0) {
    throw base::input_error("'{}' (MASTER_ADDR) is no host of this network: {}", at.host,
                            gai_strerror(code));
  }
  return {found, freeaddrinfo};
}

std::string address_text(const sockaddr* address, socklen_t size) {
  char text[NI_MAXHOST] = {};
  if (getnameinfo(address, size, text, sizeof(text), nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return text;
}

int milliseconds_until(Clock::time_point deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 1'000'000));
}

bool wait_for(int fd, short events, Clock::time_point deadline) {
  while (true) {
    pollfd each{fd, events, 0};
    const int ready = poll(&each, 1, milliseconds_until(deadline));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) return true;  // the call that follows says what is wrong
    if (Clock::now() >= deadline) return false;
  }
}

// One try; 0 or the errno of its failure.
int try_connect(const addrinfo& to, Clock::time_point deadline, Socket& into) {
  Socket socket(::socket(to.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) return errno;
  if (::connect(socket.fd(), to.ai_addr, to.ai_addrlen) != 0) {
    if (errno != EINPROGRESS) return errno;
    if (!wait_for(socket.fd(), POLLOUT, deadline)) return ETIMEDOUT;
    int code = 0;
    socklen_t size = sizeof(code);
    getsockopt(socket.fd(), SOL_SOCKET, SO_ERROR, &code, &size);
    if (code != 0) return code;
  }
  const int on = 1;
  setsockopt(socket.fd(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  into = std::move(socket);
  return 0;
}

sockaddr_storage any_address(int family, std::uint16_t port, socklen_t& size) {
  sockaddr_storage storage = {};
  if (family == AF_INET6) {
    auto* v6 = reinterpret_cast<sockaddr_in6*>(&storage);
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    size = sizeof(*v6);
  } else {
    auto* v4 = reinterpret_cast<sockaddr_in*>(&storage);
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    size = sizeof(*v4);
  }
  return storage;
}

// 0 or an errno.
int try_listen(int family, const sockaddr* address, socklen_t size, Socket& into) {
  Socket socket(::socket(family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.open()) return errno;
  const int on = 1, off = 0;
  setsockopt(socket.fd(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (family == AF_INET6) setsockopt(socket.fd(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  if (::bind(socket.fd(), address, size) != 0 || ::listen(socket.fd(), 1024) != 0) return errno;
  into = std::move(socket);
  return 0;
}

}  // namespace

Socket& Socket::operator=(Socket&& other) noexcept {
  if (this != &other) {
    close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

void Socket::close() {
  if (fd_ >= 0) ::close(fd_);
  fd_ = -1;
}

std::string Endpoint::text() const {
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format(fmt::runtime(v6 ? "[{}]:{}" : "{}:{}"), host, port);
}

Socket listen_at(const Endpoint& at) {
  const Addresses found = resolve(at);
  Socket socket;
  int code = 0;
  if (is_loopback(address_text(found->ai_addr, found->ai_addrlen))) {
    code = try_listen(found->ai_family, found->ai_addr, found->ai_addrlen, socket);
  } else {
    for (const int family : {AF_INET6, AF_INET}) {  // the first takes IPv4 too, where it is there
      socklen_t size = 0;
      const sockaddr_storage any = any_address(family, at.port, size);
      code = try_listen(family, reinterpret_cast<const sockaddr*>(&any), size, socket);
      if (code == 0 || code == EADDRINUSE || code == EACCES) break;
    }
  }
  if (code != 0) {
    throw base::device_error(
        "rank 0 cannot listen at {} for the other ranks: {}; another port is chosen by {}",
        at.text(), std::strerror(code), at.port_origin);
  }
  return socket;
}

Socket connect_to(const Endpoint& to, Clock::time_point deadline) {
  const auto begin = Clock::now();
  auto pause = std::chrono::milliseconds(20);
  int code = 0;
  const Addresses found = resolve(to);
  do {
    for (const addrinfo* each = found.get(); each != nullptr; each = each->ai_next) {
      Socket socket;
      // No single try takes all the time: a host that comes up later is reached by the next one.
      code = try_connect(*each, std::min(deadline, Clock::now() + std::chrono::seconds(5)), socket);
      if (code == 0) return socket;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
    std::this_thread::sleep_for(std::clamp(left, std::chrono::milliseconds(0), pause));
    pause = std::min(pause * 2, std::chrono::milliseconds(500));
  } while (Clock::now() < deadline);
  const std::string from = address_towards(to.host);
  throw base::device_error(
      "no connection from {} to rank 0 at {} within {:.1f} s: {}; set MASTER_ADDR to an address of "
      "rank 0's machine that this one reaches (the port comes from {}), or raise --comm-timeout",
      from.empty() ? "this machine, which has no way there," : from, to.text(),
      std::chrono::duration<double>(Clock::now() - begin).count(), std::strerror(code),
      to.port_origin);
}

std::uint16_t local_port(const Socket& socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return 0;
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address)->sin_port);
}

namespace {

// An IPv4 address that arrives through an IPv6 socket reads "::ffff:10.0.0.1".
std::string plain(const std::string& address) {
  constexpr std::string_view kMapped = "::ffff:";
  return address.starts_with(kMapped) ? address.substr(kMapped.size()) : address;
}

}  // namespace

std::string local_address(const Socket& socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  return plain(address_text(reinterpret_cast<const sockaddr*>(&address), size));
}

std::string peer_address(const Socket& socket) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  if (getpeername(socket.fd(), reinterpret_cast<sockaddr*>(&address), &size) != 0) return "";
  return plain(address_text(reinterpret_cast<const sockaddr*>(&address), size));
}

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1";
}

std::string address_towards(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_DGRAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), "9", &hints, &found) != 0) return "";
  const Addresses owner(found, freeaddrinfo);
  const Socket socket(::socket(found->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  // Connecting a datagram socket only looks up the route.
  if (!socket.open() || ::connect(socket.fd(), found->ai_addr, found->ai_addrlen) != 0) return "";
  return local_address(socket);
}

bool wait_readable(int fd, Clock::time_point deadline) {
  return wait_for(fd, POLLIN, deadline);
}

bool send_all(int fd, std::string_view bytes, Clock::time_point deadline) {
  while (!bytes.empty()) {
    const ssize_t sent = ::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    } else if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      if (!wait_for(fd, POLLOUT, deadline)) return false;
    } else if (sent < 0 && errno != EINTR) {
      return false;
    }
  }
  return true;
}

void set_nonblocking(int fd) {
  fcntl(fd, F_SETFL, fcntl(fd, F_GETFL, 0) | O_NONBLOCK);
}

}  // namespace reprise::runtime::comm
