#pragma once

// One rank's side of the store: its place on the roll, and its keys.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "runtime/comm/comm_error.h"
#include "runtime/comm/frame.h"
#include "runtime/comm/rank_environment.h"
#include "runtime/comm/socket.h"

namespace reprise::runtime::comm {

struct MemberOptions {
  std::string job;
  int rank = 0, world_size = 1;
  Endpoint store;
  std::chrono::milliseconds timeout{30'000};
  // Called once, on the membership's thread, when the group has failed.
  std::function<void(const Failure&)> failed{};
};

class Membership {
 public:
  // Connects and waits until every rank is there. Throws CommError naming those that are not, and
  // Error(kDevice) naming both addresses when the store is out of reach, or is another job's.
  explicit Membership(MemberOptions options);
  ~Membership();  // leaves in peace, unless fail() was called

  // The address by which this rank reached the store.
  [[nodiscard]] const std::string& own_address() const { return own_address_; }

  // What this rank is at, for the beats: operations entered so far, and the one under way.
  void entered(std::int64_t count, const std::string& operation);
  void finished();
  // The operation under way has met its deadline: asks the store whose fault it is, and waits for
  // the answer at most so long. A store that does not answer is at fault itself.
  [[nodiscard]] std::optional<Failure> stalled(std::chrono::milliseconds wait);
  // This rank gives up.
  void fail(const std::string& reason) noexcept;
  // The first failure of the group, waited for at most so long.
  [[nodiscard]] std::optional<Failure> failure(std::chrono::milliseconds wait = {}) const;

 private:
  void wait_for_all();
  void loop();
  void take_frames();
  void note_failure(const Failure& failure);
  void send(const Frame& frame) noexcept;
  void wake() noexcept;
  [[nodiscard]] Frame progress(FrameType type) const;

  const MemberOptions options_;
  Socket socket_, wake_;
  std::string own_address_;
  FrameBuffer in_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::mutex send_mutex_;
  std::int64_t entered_ = 0;
  std::string operation_;
  std::optional<std::string> missing_;  // ranks that have not joined; unknown before the welcome
  std::optional<std::string> refused_;
  std::optional<Failure> failure_;
  bool ended_ = false;  // the store's connection
  bool gave_up_ = false;
  bool stopping_ = false;
  Clock::time_point heard_ = Clock::now();
  std::thread thread_;
};

// Keys and values, shared by all ranks of a job.
class StoreClient {
 public:
  explicit StoreClient(const MemberOptions& options);

  void set(const std::string& key, std::string_view value);
  // Waits for the key; Error(kDevice) names it, and the store's address, at the deadline.
  [[nodiscard]] std::string get(const std::string& key, Clock::time_point deadline);
  // Adds to a number that begins at 0, and returns the sum.
  [[nodiscard]] std::int64_t add(const std::string& key, std::int64_t number);
  // Ends a call that waits, and every later one, with an error. From any thread.
  void interrupt() noexcept;

 private:
  void send(const Frame& frame);
  Frame receive(FrameType type, const std::string& what, Clock::time_point deadline);

  const MemberOptions options_;
  Socket socket_;
  FrameBuffer in_;
};

}  // namespace reprise::runtime::comm
