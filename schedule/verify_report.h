#pragma once

// What the parts of the verifier share: the graph's facts that they check against, and the list of
// violations with its way of naming things.

#include <string>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include "base/error.h"
#include "schedule/byte_owners.h"
#include "schedule/verify.h"

namespace reprise::schedule {

class VerifyReport {
 public:
  VerifyReport(const graph::PreparedGraph& prepared, const Schedule& schedule, std::size_t limit);

  template <class... Args>
  void add(Rule rule, std::int64_t instruction, fmt::format_string<Args...> format,
           Args&&... args) {
    if (full()) return;
    std::string message = instruction < 0 ? std::string() : step_name(instruction) + ": ";
    message += fmt::format(format, std::forward<Args>(args)...);
    violations_.push_back({rule, instruction, std::move(message)});
  }
  [[nodiscard]] bool full() const { return violations_.size() >= limit_; }
  [[nodiscard]] std::vector<Violation> take() { return std::move(violations_); }
  [[nodiscard]] bool empty() const { return violations_.empty(); }

  // "slot 7 ('relu1', bytes [0, 64))"
  [[nodiscard]] std::string slot_name(SlotId slot) const;
  [[nodiscard]] const std::string& value_name(ValueId value) const;
  [[nodiscard]] std::string step_name(std::int64_t instruction) const;  // "step 3 'conv1'"

  // The value whose bytes `value` is: the input of a reshape is what its output is.
  [[nodiscard]] ValueId root(ValueId value) const { return roots_[value]; }

  const graph::PreparedGraph& prepared;
  const graph::Graph& graph;
  const Schedule& schedule;

 private:
  std::size_t limit_;
  base::IdVector<ValueId, ValueId> roots_;
  std::vector<Violation> violations_;
};

// Rules of the tables: ids and arities. Nothing else can be checked while these are broken.
void verify_ids(VerifyReport& report);
// Rules of single slots, of entry and of the arena's size.
void verify_tables(VerifyReport& report);

// What the replay of all instructions leaves behind.
struct ReplayEnd {
  ByteOwners owners;
  base::IdVector<SlotId, bool> written;
  base::IdVector<NodeId, int> runs;
};
// Rules of the execution, from the entry slots to the last instruction.
[[nodiscard]] ReplayEnd verify_replay(VerifyReport& report);
// Is everything there that the step was for? Needed nodes and exit slots.
void verify_end(VerifyReport& report, const ReplayEnd& end);

// Why `slot` does not own its bytes: "slot 7 (...) took bytes [0, 64)".
[[nodiscard]] std::string describe_overwriter(const VerifyReport& report, const ByteOwners& owners,
                                              SlotId slot);

}  // namespace reprise::schedule
