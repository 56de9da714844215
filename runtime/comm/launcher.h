#pragma once

// Starts the ranks of one machine as child processes, watches them, and ends them together.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::runtime::comm {

// A rank that ends because another one failed ends with this code, so that its end is not taken for
// the cause.
inline constexpr int kExitOtherRankFailed = 4;

struct LaunchOptions {
  std::vector<std::string> command;  // program (found by PATH) and arguments
  int ranks = 1;                     // on this machine
  int nodes = 1, node = 0;           // machines, each with as many ranks
  // Empty and 0 on one machine: ports are chosen that no other job has.
  std::string master_address{};
  std::uint16_t master_port = 0;
  int threads = 0;  // OMP_NUM_THREADS of each rank; 0: left as it is
  // After a rank has failed, the others may end by themselves for so long, which gives them time to
  // say why; then they are asked to (SIGTERM) and, after the grace, killed.
  std::chrono::milliseconds settle{2'000}, grace{5'000};
  bool first_rank_plain = false;  // rank 0's standard output without its name before lines
  const std::atomic<bool>* stop = nullptr;  // set by a signal: the ranks get SIGTERM once
  // Whole lines, line end included. Standard error of all ranks goes to `error`.
  std::function<void(std::string_view)> output{}, error{};
};

struct RankEnd {
  int rank = 0;         // of the whole job
  int code = 0;         // exit code; 0 when a signal ended it
  int signal = 0;       // 0 when it exited
  bool killed = false;  // by the launcher, after another's failure
  bool stuck = false;   // it alone went on, or stood, when all others had ended because of it
  [[nodiscard]] bool failed() const { return code != 0 || signal != 0; }
  [[nodiscard]] std::string text() const;  // "rank 2 was killed by signal 9 (Killed)"
};

struct LaunchResult {
  std::vector<RankEnd> ends;            // by rank
  std::optional<RankEnd> first;         // the one that failed first
  bool stopped = false;                 // `stop` was set
  [[nodiscard]] int exit_code() const;  // 0, the first failed one's code, or 128 + its signal
};

// Each rank runs in a process group of its own, with /dev/null as standard input, and is killed by
// the system should the launcher end without its doing, by SIGKILL say. Throws Error(kInput) for
// options that contradict each other, Error(kDevice) when no process can be made or the program is
// not there.
[[nodiscard]] LaunchResult launch(const LaunchOptions& options);

// Threads for each rank such that all together are no more than the cores; at least one.
[[nodiscard]] int threads_per_rank(int cores, int ranks);

}  // namespace reprise::runtime::comm
