#include "planner/chain/program.h"

namespace reprise::planner {

void ChainProgram::push(ChainInstruction in, std::int32_t count) {
  if (count <= 0) return;
  count_ += count;
  if (!runs_.empty()) {
    ChainRun& last = runs_.back();
    const std::int32_t next = last.stage + (upwards(in.step) ? last.count : -last.count);
    if (last.step == in.step && last.option == in.option && next == in.stage &&
        in.step != ChainStep::kLoss) {
      last.count += count;
      return;
    }
  }
  runs_.push_back({in.step, in.stage, in.option, count});
}

std::vector<ChainInstruction> ChainProgram::instructions() const {
  std::vector<ChainInstruction> result;
  result.reserve(static_cast<std::size_t>(count_));
  for_each([&](ChainInstruction in) { result.push_back(in); });
  return result;
}

}  // namespace reprise::planner
