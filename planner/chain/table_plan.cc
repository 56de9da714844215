#include <algorithm>
#include <map>

#include "base/error.h"
#include "planner/chain/table.h"

namespace reprise::planner {

// From choices to instructions, on a stack of its own.
class ChainTable::Unfolding {
 public:
  explicit Unfolding(const ChainTable& table) : t_(table) {}

  std::vector<ChainInstruction> run(Bytes memory) {
    todo_.push_back({Part{false, 0, t_.length_, memory}, {}, true});
    while (!todo_.empty()) {
      const Task task = todo_.back();
      todo_.pop_back();
      if (task.is_part) {
        unfold(task.part);
      } else {
        out_.push_back(task.instruction);
      }
    }
    return std::move(out_);
  }

 private:
  struct Task {
    Part part;
    ChainInstruction instruction;
    bool is_part = false;
  };

  void later(Part part) { todo_.push_back({part, {}, true}); }
  void later(ChainStep step, Stage32 stage, std::int32_t option) {
    todo_.push_back({{}, {step, stage, option}, false});
  }
  void now(ChainStep step, Stage32 stage, std::int32_t option = 0) {
    out_.push_back({step, stage, option});
  }
  const StageOption& option(Stage32 i, std::int32_t k) const {
    return t_.problem_.stages[static_cast<std::size_t>(i)].options[static_cast<std::size_t>(k)];
  }
  // Fck(i) Fnone(i+1) ... up to x_j.
  void advance(Stage32 i, Stage32 j) {
    for (Stage32 k = i; k < j; ++k) {
      now(k == i ? ChainStep::kForwardKeep : ChainStep::kForwardDrop, k);
    }
  }

  // What comes last is put on the stack first.
  void unfold(const Part& part) {
    const StairStep* step =
        step_within(t_.at(part.recorded, part.first, part.last).steps, part.memory);
    REPRISE_CHECK(step != nullptr, "stages {}..{} within {} bytes have no plan", part.first,
                  part.last, part.memory);
    const ChainChoice& choice = step->choice;
    const Stage32 i = part.first, j = choice.split, l = part.last;
    switch (choice.move) {
      case ChainMove::kLeaf:
        return leaf(part, choice.option);
      case ChainMove::kRecord:
        now(ChainStep::kForwardAll, i, choice.option);
        later(ChainStep::kBackward, i, choice.option);
        later(Part{part.recorded, i + 1, l, part.memory - option(i, choice.option).record});
        return;
      case ChainMove::kRecordMany:
        return record_many(part, j);
      case ChainMove::kCheckpoint:
        advance(i, j);
        later(Part{false, i, j - 1, part.memory});
        later(Part{part.recorded, j, l, part.memory - t_.a_[static_cast<std::size_t>(j)]});
        return;
      case ChainMove::kDropInput: {
        const Bytes rest = part.memory - option(j, choice.option).record;
        advance(i, j);
        now(ChainStep::kForwardAll, j, choice.option);
        now(ChainStep::kDropInput, j);
        recorded_option_[j] = choice.option;
        later(Part{true, i, j, rest});
        later(Part{part.recorded, j + 1, l, rest});
        return;
      }
    }
  }

  void leaf(const Part& part, std::int32_t k) {
    if (part.first == t_.length_) {
      now(ChainStep::kLoss, 0);
    } else if (part.recorded) {
      now(ChainStep::kBackward, part.first, recorded_option_.at(part.first));
    } else {
      now(ChainStep::kForwardAll, part.first, k);
      now(ChainStep::kBackward, part.first, k);
    }
  }

  void record_many(const Part& part, Stage32 end) {
    Bytes memory = part.memory;
    for (Stage32 k = part.first; k < end; ++k) {
      now(ChainStep::kForwardAll, k);
      later(ChainStep::kBackward, k, 0);
      memory -= option(k, 0).record;
    }
    later(Part{part.recorded, end, part.last, memory});
  }

  const ChainTable& t_;
  std::vector<Task> todo_;
  std::vector<ChainInstruction> out_;
  std::map<Stage32, std::int32_t> recorded_option_;  // of stages whose record waits
};

std::vector<ChainInstruction> ChainTable::plan(Bytes budget) const {
  const StairStep* step = step_within(answers_, budget);
  if (step == nullptr) return {};
  return Unfolding(*this).run(step->memory - a_[0]);
}

}  // namespace reprise::planner
