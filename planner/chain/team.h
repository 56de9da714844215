#pragma once

// Threads that share the work of one phase after the other.

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace reprise::planner {

class Team {
 public:
  // `threads` in all, the caller's among them; at least that one.
  explicit Team(int threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  [[nodiscard]] std::size_t size() const { return others_.size() + 1; }
  // work(worker, k) for each k below `count`, in any order; returns when all is done. `work` must
  // not throw.
  using Work = std::function<void(std::size_t worker, std::size_t k)>;
  void run(std::size_t count, const Work& work);

 private:
  void serve(std::size_t worker);
  void share(std::size_t worker);

  std::mutex mutex_;
  std::condition_variable begin_, end_;
  std::int64_t phase_ = 0;
  std::size_t busy_ = 0;  // others that have not ended this phase
  bool over_ = false;
  const Work* work_ = nullptr;
  std::size_t count_ = 0;
  std::atomic<std::size_t> next_ = 0;
  std::vector<std::jthread> others_;
};

}  // namespace reprise::planner
