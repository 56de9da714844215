#pragma once

// A problem seen as one chain: what a plan would cost at which memory, before any order is made.
// Memory is what the chain's tables count; whatever stays for the whole step is not in it. So views
// of one problem can be compared with each other, and that is all that it is for.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "planner/chain/program.h"
#include "planner/chain/solve.h"
#include "planner/chain/stages.h"

namespace reprise::planner {

class ChainView {
 public:
  virtual ~ChainView() = default;
  [[nodiscard]] virtual std::string label() const = 0;
  [[nodiscard]] virtual const StagedGraph& graph() const = 0;
  [[nodiscard]] virtual Bytes floor() const = 0;  // least memory of any plan
  [[nodiscard]] virtual Bytes all() const = 0;    // enough to run nothing again
  // About what the order will cost; nothing below the floor.
  [[nodiscard]] virtual std::optional<std::int64_t> predict(Bytes memory) const = 0;
  [[nodiscard]] virtual std::optional<ChainProgram> plan(Bytes memory) const = 0;
};

// Stages that may differ, solved by the staircase programme with a choice of records. Null when
// stopped.
[[nodiscard]] std::unique_ptr<ChainView> view_as_chain(std::shared_ptr<const StagedGraph> graph,
                                                       const Request& request);

// All stages as the middle one, which records by `option`, or some by `larger` where memory allows.
// Null where the stages carry nothing.
[[nodiscard]] std::unique_ptr<ChainView> view_as_uniform(std::shared_ptr<const StagedGraph> graph,
                                                         Index option, Index larger,
                                                         std::string label);

}  // namespace reprise::planner
