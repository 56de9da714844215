#pragma once

// A hash of a sequence of whole numbers: the same on every machine.

#include <cstdint>

namespace reprise::planner {

class SequenceHash {
 public:
  void add(std::int64_t value) {
    state_ ^= static_cast<std::uint64_t>(value);
    state_ += 0x9E3779B97F4A7C15ULL;  // the steps of splitmix64
    state_ = (state_ ^ (state_ >> 30)) * 0xBF58476D1CE4E5B9ULL;
    state_ = (state_ ^ (state_ >> 27)) * 0x94D049BB133111EBULL;
    state_ ^= state_ >> 31;
  }
  [[nodiscard]] std::uint64_t value() const { return state_; }

 private:
  std::uint64_t state_ = 0;
};

}  // namespace reprise::planner
