#pragma once

// Fills a StepRecord while a step runs.

#include <chrono>
#include <vector>

#include "runtime/rank_sums.h"
#include "runtime/step_record.h"

namespace reprise::runtime {

class Recorder {
 public:
  // From construction to finish(), or destruction, `sums` (null: there are none) must live and its
  // communicator is watched. Sums on a device are not.
  Recorder(StepRecord& record, const RankSums* sums);
  ~Recorder();
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  void begin_instruction() { instruction_begin_ = since_begin(Clock::now()); }
  void end_instruction() {
    record_.instructions.push_back({instruction_begin_, since_begin(Clock::now())});
  }
  // Once all instructions have run, and with them all sums.
  void finish();

 private:
  using Clock = std::chrono::steady_clock;
  [[nodiscard]] std::int64_t since_begin(Clock::time_point time) const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time - begin_).count();
  }
  void stop_watching();

  StepRecord& record_;
  const RankSums* sums_;
  const Clock::time_point begin_ = Clock::now();
  std::int64_t instruction_begin_ = 0;
  std::vector<comm::OperationRun> runs_;  // written by the communication thread until finish()
};

}  // namespace reprise::runtime
