#pragma once

// Which of two operations is certain to be over before the other begins (happens-before), by vector
// clocks, and the accesses to common bytes that are not so ordered.
//
// Operations of one stream form a chain; so do the host's actions, all of its threads taken
// together, and the nodes of a graph that were recorded from one stream. The clock of an operation
// holds, for each chain, how many of its operations are over when it begins. An access to bytes is
// held against the last write of each byte and the reads since; that finds the first unordered pair
// whatever order things happen to run in.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reprise::test::cuda {

using Chain = std::size_t;

class Clock {
 public:
  void join(const Clock& other);
  void set(Chain chain, std::uint64_t tick);
  [[nodiscard]] std::uint64_t at(Chain chain) const {
    return chain < ticks_.size() ? ticks_[chain] : 0;
  }

 private:
  std::vector<std::uint64_t> ticks_;
};

// Who touches bytes: its place in the order, and its name for messages.
struct Actor {
  Chain chain = 0;
  std::uint64_t tick = 0;
  std::shared_ptr<const std::string> name;
};

class Order {
 public:
  [[nodiscard]] Chain new_chain();
  [[nodiscard]] std::uint64_t next_tick(Chain chain) { return ++ticks_[chain]; }

  // Notes an access; `before` is what is over when it begins. Returns the earlier accesses to some
  // of these bytes that are not, as one sentence each.
  [[nodiscard]] std::vector<std::string> access(const void* begin, std::size_t bytes, bool written,
                                                const Actor& actor, const Clock& before);
  // Is every write to these bytes over in the eyes of `known`?
  [[nodiscard]] bool writes_over(const void* begin, std::size_t bytes, const Clock& known) const;
  // These bytes are new, whoever touched them before.
  void forget(const void* begin, std::size_t bytes);

 private:
  struct Segment {
    std::uintptr_t end = 0;
    std::optional<Actor> write;
    std::vector<Actor> reads;  // since the write, the last of each chain
  };
  using Segments = std::map<std::uintptr_t, Segment>;

  void split_at(std::uintptr_t address);
  void cover(std::uintptr_t begin, std::uintptr_t end);

  std::vector<std::uint64_t> ticks_;
  Segments segments_;
};

}  // namespace reprise::test::cuda
