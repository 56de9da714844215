#include "planner/chain_view.h"

#include <algorithm>
#include <utility>

#include "fmt/format.h"

#include "planner/chain/stage_sizes.h"
#include "planner/chain/uniform.h"

namespace reprise::planner {
namespace {

std::int64_t program_cost(const StagedGraph& graph) {
  std::int64_t cost = 0;
  const Structure& s = graph.structure();
  for (Index i = 0; i < s.ops(); ++i) {
    if (s.required(i)) cost += s.op(i).cost;
  }
  return cost;
}

std::int64_t backward_cost(const StagedGraph& graph, Index stage) {
  std::int64_t cost = 0;
  for (Index op : graph.backward(stage)) cost += graph.structure().op(op).cost;
  return cost;
}

class ExactView final : public ChainView {
 public:
  ExactView(std::shared_ptr<const StagedGraph> graph, const Request& request)
      : graph_(std::move(graph)),
        solver_(StageMeter(*graph_).chain(), {request.stop, false, request.threads}) {
    offset_ = program_cost(*graph_);
    const auto& stages = solver_.problem().stages;
    for (Index i = 0; i < graph_->stages(); ++i) {
      offset_ -= stages[static_cast<std::size_t>(i)].forward_cost + backward_cost(*graph_, i);
    }
  }

  [[nodiscard]] bool solved() const { return !solver_.answers().empty(); }
  std::string label() const override { return fmt::format("chain({})", graph_->stages()); }
  const StagedGraph& graph() const override { return *graph_; }
  Bytes floor() const override { return solver_.answers().front().memory; }
  Bytes all() const override { return solver_.answers().back().memory; }
  std::optional<std::int64_t> predict(Bytes memory) const override {
    const StairStep* step = step_within(solver_.answers(), memory);
    if (step == nullptr) return std::nullopt;
    return step->cost + offset_;
  }
  std::optional<ChainProgram> plan(Bytes memory) const override {
    ChainOutcome outcome = solver_.plan(memory);
    auto* plan = std::get_if<ChainPlan>(&outcome);
    if (plan == nullptr) return std::nullopt;
    return std::move(plan->program);
  }

 private:
  std::shared_ptr<const StagedGraph> graph_;
  ChainSolver solver_;
  std::int64_t offset_ = 0;  // of an order's cost to the chain's
};

// Up to so many stages the tables are exact; of longer chains, parts of the second length.
constexpr Index kMostStagesExact = 300, kStagesOfParts = 200;

// Where memory allows more than all records of the option, as many of the last stages as fit record
// by `larger`: what they hold is gone before earlier stages make much again.
class UniformView final : public ChainView {
 public:
  UniformView(std::shared_ptr<const StagedGraph> graph, Index option, Index larger,
              std::string label)
      : graph_(std::move(graph)), option_(option), larger_(larger), label_(std::move(label)) {
    const Index middle = graph_->stages() / 2;
    const Stage stage = StageMeter(*graph_).measure(middle);
    const StageOption& o = stage.options[static_cast<std::size_t>(option)];
    const StageOption& l = stage.options[static_cast<std::size_t>(larger)];
    again_ = stage.forward_cost;
    record_again_ = o.forward_cost;
    more_ = l.record - o.record;
    saving_ = o.backward_cost - l.backward_cost;
    // Plans with the fewest forward runs: what they cost follows from their number (predict).
    chain_.steps = graph_->stages();
    chain_.a = stage.output;
    chain_.b = o.record;
    chain_.g = stage.output_gradient;
    chain_.uf = 1;
    chain_.of = std::max(stage.forward_workspace, o.forward_workspace);
    chain_.ob = o.backward_workspace;
    all_ = chain_.a + chain_.steps * chain_.b + 2 * chain_.g + chain_.of + chain_.ob;
    least_ =
        program_cost(*graph_) + chain_.steps * (o.backward_cost - backward_cost(*graph_, middle));
    if (chain_.a > 0) slopes_.emplace(chain_, all_);
  }

  [[nodiscard]] bool carries() const { return chain_.a > 0; }
  std::string label() const override { return label_; }
  const StagedGraph& graph() const override { return *graph_; }
  Bytes floor() const override { return slopes_->floor(true, chain_.steps); }
  Bytes all() const override { return all_ + (more_ > 0 ? chain_.steps * more_ : 0); }
  std::optional<std::int64_t> predict(Bytes memory) const override {
    if (memory >= all_) return least_ - larger_records(memory) * saving_;
    const auto runs = slopes_->bound(true, chain_.steps, memory, true);
    if (!runs) return std::nullopt;
    // Beyond the first run of each stage: that of its record, all others lead to a cut alone.
    const std::int64_t more = *runs - chain_.steps;
    const std::int64_t records = std::min(more, chain_.steps);
    return least_ + records * record_again_ + (more - records) * again_;
  }
  std::optional<ChainProgram> plan(Bytes memory) const override {
    if (memory >= all_) return record_all(larger_records(memory));
    if (memory < floor()) return std::nullopt;
    if (!table_) {
      const auto parts = static_cast<std::int32_t>(
          chain_.steps <= kMostStagesExact ? chain_.steps : kStagesOfParts);
      table_.emplace(chain_, parts, parts, all_, std::function<bool()>());
    }
    const ChainProgram rolled = roll_out(chain_, *table_, *slopes_, memory);
    ChainProgram program;
    for (const ChainRun& run : rolled.runs()) {
      program.push({run.step, run.stage, option_}, run.count);
    }
    return program;
  }

 private:
  std::int64_t larger_records(Bytes memory) const {
    if (more_ <= 0 || saving_ <= 0) return 0;
    return std::min<std::int64_t>((memory - all_) / more_, chain_.steps);
  }
  ChainProgram record_all(std::int64_t larger) const {
    const Index n = graph_->stages();
    const auto many = static_cast<Index>(larger);
    ChainProgram program;
    const auto push = [&](ChainStep step, Index stage, Index option, Index count) {
      if (count > 0) program.push({step, stage, option}, count);
    };
    push(ChainStep::kForwardAll, 0, option_, n - many);
    push(ChainStep::kForwardAll, n - many, larger_, many);
    push(ChainStep::kLoss, 0, 0, 1);
    push(ChainStep::kBackward, n - 1, larger_, many);
    push(ChainStep::kBackward, n - many - 1, option_, n - many);
    return program;
  }

  std::shared_ptr<const StagedGraph> graph_;
  const Index option_, larger_;
  const std::string label_;
  UniformChain chain_;
  Bytes all_ = 0;                  // of all records by `option`
  std::int64_t again_ = 0;         // a further run of a stage that leads to its output
  std::int64_t record_again_ = 0;  // and one that makes the record
  std::int64_t least_ = 0;         // of an order that runs no stage again
  Bytes more_ = 0;                 // that a record by `larger` takes
  std::int64_t saving_ = 0;        // in the backward stage, for it
  std::optional<UniformSlopes> slopes_;
  mutable std::optional<UniformTable> table_;
};

}  // namespace

std::unique_ptr<ChainView> view_as_chain(std::shared_ptr<const StagedGraph> graph,
                                         const Request& request) {
  auto view = std::make_unique<ExactView>(std::move(graph), request);
  if (!view->solved()) return nullptr;
  return view;
}

std::unique_ptr<ChainView> view_as_uniform(std::shared_ptr<const StagedGraph> graph, Index option,
                                           Index larger, std::string label) {
  auto view = std::make_unique<UniformView>(std::move(graph), option, larger, std::move(label));
  if (!view->carries()) return nullptr;
  return view;
}

}  // namespace reprise::planner
