#pragma once

// The fault of a group of ranks: who noticed, in which operation, and who failed first.

#include <optional>
#include <string>

#include "base/error.h"

namespace reprise::runtime::comm {

// The first thing that went wrong in a group.
struct Failure {
  std::optional<int> rank;  // who failed; empty where that cannot be known
  std::string reason;       // "its process ended", ...
  friend bool operator==(const Failure&, const Failure&) = default;
};

// Reasons of a member that fell silent, and of one whose connection broke with that errno (0: it
// was closed), seen from the address `here`.
[[nodiscard]] std::string silence_reason(double seconds, const std::string& here,
                                         const std::string& there);
[[nodiscard]] std::string break_reason(int code, const std::string& here, const std::string& there);

class CommError : public base::Error {
 public:
  // "rank 1, all_reduce 17 (f32 x 1000, sum): rank 2 failed first: its process ended"
  CommError(int rank, std::string operation, Failure failure);

  [[nodiscard]] int rank() const { return rank_; }  // who noticed
  [[nodiscard]] const std::string& operation() const { return operation_; }
  [[nodiscard]] const Failure& failure() const { return failure_; }

 private:
  int rank_;
  std::string operation_;
  Failure failure_;
};

}  // namespace reprise::runtime::comm
