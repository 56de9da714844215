#pragma once

// The store that rank 0 hosts: keys and values for rendezvous, and the roll of the group's members.
//
// Each rank holds two connections: one for keys, one as a member. Over the second it says every so
// often that it is alive and how many operations it has entered; the store answers likewise. From
// that the store knows who failed first, and tells all others: a member whose connection ends
// without a goodbye (its process ended), one that gives up and says why, one that is not heard of
// for the time-out (stopped, or the way to it is cut), and, when somebody's operation has met its
// deadline, the one that is behind. Members that wait in different operations of the same number
// are found out too.
//
// Connections that do not begin with a hello of this job are hung up on.

#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/comm_error.h"
#include "runtime/comm/frame.h"
#include "runtime/comm/socket.h"

namespace reprise::runtime::comm {

// How often members and store say that they are alive.
[[nodiscard]] std::chrono::milliseconds beat_interval(std::chrono::milliseconds timeout);
// Who is not heard of for longer has failed; the rest of the time-out is for ending.
[[nodiscard]] std::chrono::milliseconds most_silence(std::chrono::milliseconds timeout);

struct StoreOptions {
  std::string job;
  int world_size = 1;
  std::chrono::milliseconds timeout{30'000};
};

class StoreServer {
 public:
  // Serves on a thread of its own from here on.
  StoreServer(Socket listening, StoreOptions options);
  // Waits for the members to leave, as long as the time-out; a second after a failure.
  ~StoreServer();

 private:
  struct Connection {
    Socket socket;
    FrameBuffer in;
    std::string out;  // not sent yet
    Clock::time_point since = Clock::now();
    bool greeted = false;
    bool closing = false;  // once `out` is sent
    bool gone = false;
    int member = -1;        // rank, for a member's connection
    std::string waits_for;  // key
  };
  struct Member {
    Connection* connection = nullptr;
    Clock::time_point heard{};
    std::int64_t entered = 0;  // operations
    std::string operation;     // the one under way, or empty
    bool joined = false, left = false;
    std::string address, own_address;  // the member's, and the store's as it reached it
  };

  void serve();
  void accept_all();
  void read_from(Connection& connection);
  void handle(Connection& connection, const Frame& frame);
  void hello(Connection& connection, const Frame& frame);
  void handle_keys(Connection& connection, const Frame& frame);
  void handle_member(Connection& connection, const Frame& frame);
  void note_progress(int rank, FieldReader& fields);
  void compare_operations(int rank);
  void diagnose(int rank, const std::string& operation);
  void answer_waiting(const std::string& key);
  void ended(Connection& connection, int code = 0);  // errno, or 0
  void fail(Failure failure);
  void tick(Clock::time_point now);
  void send(Connection& connection, const Frame& frame);
  void flush(Connection& connection);
  void refuse(Connection& connection, const std::string& reason);
  void send_missing();
  [[nodiscard]] bool all_gone() const;

  const StoreOptions options_;
  Socket listening_;
  Socket wake_;  // an eventfd
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<Member> members_;
  std::map<std::string, std::string> values_;
  std::optional<Failure> failure_;
  Clock::time_point next_tick_{}, last_tick_ = Clock::now();
  std::atomic<bool> stopping_{false};
  std::optional<Clock::time_point> stop_by_;
  std::thread thread_;
};

}  // namespace reprise::runtime::comm
