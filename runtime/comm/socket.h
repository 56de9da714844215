#pragma once

// TCP connections with deadlines. Every wait ends by its deadline; every error names both
// addresses.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

namespace reprise::runtime::comm {

using Clock = std::chrono::steady_clock;

// Owns a file descriptor.
class Socket {
 public:
  Socket() = default;
  explicit Socket(int fd) : fd_(fd) {}
  Socket(Socket&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Socket& operator=(Socket&& other) noexcept;
  ~Socket() { close(); }

  [[nodiscard]] int fd() const { return fd_; }
  [[nodiscard]] bool open() const { return fd_ >= 0; }
  void close();
  [[nodiscard]] int release() { return std::exchange(fd_, -1); }  // the caller owns it now

 private:
  int fd_ = -1;
};

struct Endpoint {
  std::string host;
  std::uint16_t port = 0;
  std::string port_origin;  // which option or variable the port comes from, for errors
  [[nodiscard]] std::string text() const;  // "10.0.0.1:30500", "[fd00::1]:30500"
};

// Listens, on loopback alone where the host is a loopback address and on all addresses else. A port
// of 0 takes any. Throws Error(kDevice) naming address, port and where it comes from.
[[nodiscard]] Socket listen_at(const Endpoint& at);
[[nodiscard]] std::uint16_t local_port(const Socket& socket);

// Tries again until the deadline, since the other side may start later. The error says from which
// address it tried, to which, how long, what the last try said, and what can be set.
[[nodiscard]] Socket connect_to(const Endpoint& to, Clock::time_point deadline);

// Addresses without ports: "10.0.0.1". Empty when the socket is not connected (any more).
[[nodiscard]] std::string local_address(const Socket& socket);
[[nodiscard]] std::string peer_address(const Socket& socket);
[[nodiscard]] bool is_loopback(std::string_view address);

// The address of this machine from which `host` is reached; empty where there is no way. Sends
// nothing.
[[nodiscard]] std::string address_towards(const std::string& host);

// Whether `fd` became readable (or ended) before the deadline.
[[nodiscard]] bool wait_readable(int fd, Clock::time_point deadline);
// All of it; false when the peer has gone or the deadline has passed.
[[nodiscard]] bool send_all(int fd, std::string_view bytes, Clock::time_point deadline);

void set_nonblocking(int fd);

}  // namespace reprise::runtime::comm
