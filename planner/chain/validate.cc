#include "base/error.h"
#include "planner/chain/simulate.h"

namespace reprise::planner {
namespace {

class Sums {
 public:
  void add(std::int64_t value, const char* name, std::size_t stage) {
    if (value < 0) {
      throw base::input_error("chain: {} of stage {} is {}; it must not be negative", name, stage,
                              value);
    }
    total_ = base::checked_add(total_, value, "chain: the sum of all sizes and costs");
  }
  [[nodiscard]] std::int64_t total() const { return total_; }

 private:
  std::int64_t total_ = 0;
};

void add_option(const Stage& stage, const StageOption& option, std::size_t i, Sums& bytes,
                Sums& costs) {
  bytes.add(option.record, "record", i);
  bytes.add(option.forward_workspace, "forward workspace", i);
  bytes.add(option.backward_workspace, "backward workspace", i);
  costs.add(option.forward_cost, "forward cost", i);
  costs.add(option.backward_cost, "backward cost", i);
  if (option.record < stage.output) {
    throw base::input_error(
        "chain: the record of stage {} takes {} bytes, less than its output of {}, which is part "
        "of it",
        i, option.record, stage.output);
  }
}

}  // namespace

void validate(const ChainProblem& problem) {
  Sums bytes, costs;
  bytes.add(problem.input, "input", 0);
  bytes.add(problem.input_gradient, "input gradient", 0);
  const std::size_t length = problem.stages.size();
  for (std::size_t i = 0; i < length; ++i) {
    const Stage& stage = problem.stages[i];
    bytes.add(stage.output, "output", i);
    bytes.add(stage.output_gradient, "output gradient", i);
    bytes.add(stage.forward_workspace, "forward workspace", i);
    costs.add(stage.forward_cost, "forward cost", i);
    if (stage.options.empty()) throw base::input_error("chain: stage {} has no option", i);
    for (const StageOption& option : stage.options) add_option(stage, option, i, bytes, costs);
  }
  costs.add(problem.loss_cost, "loss cost", length);
  bytes.add(problem.loss_workspace, "loss workspace", length);
  // No stage runs more often than there are stages, twice that with inputs dropped.
  (void)base::checked_mul(base::checked_mul(costs.total(), static_cast<std::int64_t>(length) + 1,
                                            "chain: costs times stages"),
                          4, "chain: four times costs times stages");
  (void)base::checked_mul(bytes.total(), 4, "chain: four times the sum of all sizes");
}

}  // namespace reprise::planner
