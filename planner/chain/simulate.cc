#include "planner/chain/simulate.h"

#include <algorithm>

#include "base/error.h"

namespace reprise::planner {
namespace {

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

bool is_forward(ChainStep step) {
  return step == ChainStep::kForwardAll || step == ChainStep::kForwardKeep ||
         step == ChainStep::kForwardDrop;
}

}  // namespace

const char* chain_step_name(ChainStep step) {
  switch (step) {
    case ChainStep::kForwardAll:
      return "Fall";
    case ChainStep::kForwardKeep:
      return "Fck";
    case ChainStep::kForwardDrop:
      return "Fnone";
    case ChainStep::kLoss:
      return "Loss";
    case ChainStep::kBackward:
      return "B";
    case ChainStep::kDropInput:
      return "DropX";
    case ChainStep::kDropRecord:
      return "DropXB";
  }
  return "?";
}

ChainMachine::ChainMachine(const ChainProblem& problem)
    : problem_(problem),
      plain_(problem.stages.size() + 1, false),
      record_(problem.stages.size() + 1, -1),
      gradient_(problem.stages.size() + 1),
      resident_(problem.input) {
  plain_[0] = true;
  replay_.peak = resident_;
}

Bytes ChainMachine::output_bytes(Count i) const {
  return i == 0 ? problem_.input : problem_.stages[i - 1].output;
}

Bytes ChainMachine::gradient_bytes(Count i) const {
  return i == 0 ? problem_.input_gradient : problem_.stages[i - 1].output_gradient;
}

Bytes ChainMachine::record_bytes(Count i) const {
  return problem_.stages[i - 1].options[at(record_[i])].record;
}

std::string ChainMachine::refuse_forward(ChainInstruction in) const {
  const Count i = at(in.stage);
  if (in.step == ChainStep::kForwardDrop) {
    if (i == 0) return "x_0 stays until B 0";
    if (!plain_[i]) return fmt::format("x_{} is not there by itself", i);
  } else if (!plain_[i] && record_[i] < 0) {
    return fmt::format("neither x_{} nor xbar_{} is there", i, i);
  }
  if (in.step == ChainStep::kForwardAll) {
    if (record_[i + 1] >= 0) return fmt::format("xbar_{} is there already", i + 1);
  } else if (plain_[i + 1]) {
    return fmt::format("x_{} is there already", i + 1);
  }
  return {};
}

std::string ChainMachine::refuse_backward(ChainInstruction in) const {
  const Count i = at(in.stage);
  if (gradient_ != i + 1) return fmt::format("y_{} is not there", i + 1);
  if (record_[i + 1] < 0) return fmt::format("xbar_{} is not there", i + 1);
  if (record_[i + 1] != in.option) {
    return fmt::format("xbar_{} was recorded with option {}, not {}", i + 1, record_[i + 1],
                       in.option);
  }
  if (!plain_[i] && record_[i] < 0) return fmt::format("neither x_{} nor xbar_{} is there", i, i);
  return {};
}

std::string ChainMachine::refusal(ChainInstruction in) const {
  const Count length = problem_.stages.size();
  if (in.step == ChainStep::kLoss) {
    if (gradient_ <= length) return "the loss ran already";
    if (!plain_[length] && record_[length] < 0) {
      return fmt::format("neither x_{} nor xbar_{} is there", length, length);
    }
    return {};
  }
  const bool drop = in.step == ChainStep::kDropInput || in.step == ChainStep::kDropRecord;
  if (in.stage < 0 || at(in.stage) >= length + (drop ? 1 : 0)) {
    return fmt::format("there are {} stages", length);
  }
  if (in.step == ChainStep::kDropInput) {
    if (in.stage == 0) return "x_0 stays until B 0";
    return plain_[at(in.stage)] ? "" : fmt::format("x_{} is not there by itself", in.stage);
  }
  if (in.step == ChainStep::kDropRecord) {
    return record_[at(in.stage)] >= 0 ? "" : fmt::format("xbar_{} is not there", in.stage);
  }
  const Count options = problem_.stages[at(in.stage)].options.size();
  if (in.option < 0 || at(in.option) >= options) {
    return fmt::format("option {} of {}", in.option, options);
  }
  return is_forward(in.step) ? refuse_forward(in) : refuse_backward(in);
}

void ChainMachine::during(Bytes more, std::int64_t cost) {
  replay_.peak = std::max(replay_.peak, resident_ + more);
  replay_.cost += cost;
}

void ChainMachine::drop_plain(Count i) {
  if (!plain_[i]) return;
  plain_[i] = false;
  resident_ -= output_bytes(i);
}

void ChainMachine::forward(ChainInstruction in) {
  const Count i = at(in.stage);
  const Stage& stage = problem_.stages[i];
  if (in.step == ChainStep::kForwardAll) {
    const StageOption& option = stage.options[at(in.option)];
    during(option.record + option.forward_workspace, option.forward_cost);
    record_[i + 1] = in.option;
    resident_ += option.record;
    return;
  }
  during(stage.output + stage.forward_workspace, stage.forward_cost);
  plain_[i + 1] = true;
  resident_ += stage.output;
  if (in.step == ChainStep::kForwardDrop) drop_plain(i);
}

void ChainMachine::loss() {
  const Count length = problem_.stages.size();
  during(gradient_bytes(length) + problem_.loss_workspace, problem_.loss_cost);
  resident_ += gradient_bytes(length);
  gradient_ = length;
  drop_plain(length);
}

void ChainMachine::backward(ChainInstruction in) {
  const Count i = at(in.stage);
  const StageOption& option = problem_.stages[i].options[at(in.option)];
  during(gradient_bytes(i) + option.backward_workspace, option.backward_cost);
  resident_ += gradient_bytes(i) - gradient_bytes(i + 1) - option.record;
  record_[i + 1] = -1;
  gradient_ = i;
  drop_plain(i);
}

void ChainMachine::run(ChainInstruction in) {
  if (replay_.fault) return;
  if (std::string why = refusal(in); !why.empty()) {
    replay_.fault = {step_, fmt::format("instruction {}, {} {}: {}", step_,
                                        chain_step_name(in.step), in.stage, why)};
    return;
  }
  ++step_;
  if (is_forward(in.step)) {
    forward(in);
  } else if (in.step == ChainStep::kLoss) {
    loss();
  } else if (in.step == ChainStep::kBackward) {
    backward(in);
  } else if (in.step == ChainStep::kDropInput) {
    drop_plain(at(in.stage));
  } else {
    resident_ -= record_bytes(at(in.stage));
    record_[at(in.stage)] = -1;
  }
}

ChainReplay ChainMachine::finish() const {
  ChainReplay result = replay_;
  if (!result.fault && gradient_ != 0) {
    result.fault = {step_, fmt::format("ends after {} instructions without y_0", step_)};
  }
  return result;
}

ChainReplay replay(const ChainProblem& problem, std::span<const ChainInstruction> instructions) {
  ChainMachine machine(problem);
  for (const ChainInstruction& in : instructions) machine.run(in);
  return machine.finish();
}

}  // namespace reprise::planner
