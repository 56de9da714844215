// trace_order and profile_memory against a second reading of the memory model: sets of tensors
// replayed step by step, each question answered by walking the rest of the order.

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "gtest/gtest.h"

#include "schedule/simulate.h"
#include "tests/schedule/random_problem.h"

namespace reprise::schedule {
namespace {

struct Replay {
  std::vector<Bytes> live_bytes;
  std::int64_t cost = 0;
};

class Oracle {
 public:
  Oracle(const Problem& problem, const Order& order) : problem_(problem), order_(order) {}

  // Nothing when the order is no execution.
  std::optional<Replay> replay() {
    if (!runs_once_ops_once()) return std::nullopt;
    Replay result;
    std::set<std::size_t> present;
    for (std::size_t t = 0; t < problem_.tensors.size(); ++t) {
      if (initial(t)) present.insert(t);
    }
    for (std::size_t step = 0; step < order_.size(); ++step) {
      const Op& op = problem_.ops[order_[step]];
      for (TensorId t : op.inputs) {
        if (!present.contains(t.index())) return std::nullopt;
      }
      if (step > 0) {
        std::erase_if(present, [&](std::size_t t) { return !wanted(t, step); });
      }
      std::set<std::size_t> during = present;
      for (TensorId t : op.outputs) during.insert(t.index());
      Bytes bytes = op.workspace;
      for (std::size_t t : during) bytes += problem_.tensors[TensorId(t)].bytes;
      const std::set<std::size_t> passed_on = inplace_inputs(op, step);
      for (std::size_t t : passed_on) bytes -= problem_.tensors[TensorId(t)].bytes;
      result.live_bytes.push_back(bytes);
      result.cost += op.cost;
      for (std::size_t t : passed_on) during.erase(t);
      present = during;
    }
    for (std::size_t t = 0; t < problem_.tensors.size(); ++t) {
      if (problem_.tensors[TensorId(t)].kind == TensorKind::kOutput && !present.contains(t)) {
        return std::nullopt;
      }
    }
    return result;
  }

 private:
  TensorKind kind(std::size_t t) const { return problem_.tensors[TensorId(t)].kind; }
  bool initial(std::size_t t) const {
    return kind(t) == TensorKind::kResident || kind(t) == TensorKind::kInput;
  }

  bool runs_once_ops_once() const {
    for (std::size_t i = 0; i < problem_.ops.size(); ++i) {
      const auto runs = std::count(order_.begin(), order_.end(), OpId(i));
      if (!problem_.ops[OpId(i)].recomputable && runs != 1) return false;
    }
    return true;
  }

  // Is what tensor t holds before `step` read at `step` or later, before it is made again?
  bool wanted(std::size_t t, std::size_t step) const {
    if (kind(t) == TensorKind::kResident) return true;
    for (std::size_t s = step; s < order_.size(); ++s) {
      const Op& op = problem_.ops[order_[s]];
      if (std::count(op.inputs.begin(), op.inputs.end(), TensorId(t)) > 0) return true;
      if (std::count(op.outputs.begin(), op.outputs.end(), TensorId(t)) > 0) return false;
    }
    return kind(t) == TensorKind::kOutput;
  }

  // Inputs whose bytes an output of this step takes over: forced ones always (a later reader then
  // misses them in `present`), optional ones when nothing wants the input any more.
  std::set<std::size_t> inplace_inputs(const Op& op, std::size_t step) const {
    std::set<std::size_t> given;
    std::set<std::int32_t> taken;
    for (const graph::InplacePair& pair : op.inplace) {
      if (!pair.forced) continue;
      given.insert(op.inputs[static_cast<std::size_t>(pair.input)].index());
      taken.insert(pair.output);
    }
    for (const graph::InplacePair& pair : op.inplace) {
      const std::size_t from = op.inputs[static_cast<std::size_t>(pair.input)].index();
      const TensorId to = op.outputs[static_cast<std::size_t>(pair.output)];
      if (pair.forced || given.contains(from) || taken.contains(pair.output)) continue;
      if (problem_.tensors[TensorId(from)].bytes != problem_.tensors[to].bytes) continue;
      if (kind(from) == TensorKind::kOutput || wanted(from, step + 1)) continue;
      const auto reads = std::count(op.inputs.begin(), op.inputs.end(), TensorId(from));
      std::set<std::int32_t> allowed;  // places that read `from` and may be overwritten by `to`
      for (const graph::InplacePair& other : op.inplace) {
        const TensorId read = op.inputs[static_cast<std::size_t>(other.input)];
        if (other.output == pair.output && read.index() == from) allowed.insert(other.input);
      }
      if (std::ssize(allowed) < reads) continue;
      given.insert(from);
      taken.insert(pair.output);
    }
    return given;
  }

  const Problem& problem_;
  const Order& order_;
};

// What holds for every trace: buffers of copies and of reads, written out without the profile.
void check_structure(const Problem& problem, const Order& order, const Trace& trace) {
  ASSERT_EQ(trace.steps.size(), order.size());
  for (std::size_t step = 0; step < order.size(); ++step) {
    const Op& op = problem.ops[order[step]];
    ASSERT_EQ(trace.reads(step).size(), op.inputs.size());
    ASSERT_EQ(trace.writes(step).size(), op.outputs.size());
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      const Copy& copy = trace.copies[trace.reads(step)[i]];
      const Buffer& buffer = trace.buffers[copy.buffer];
      EXPECT_EQ(copy.tensor, op.inputs[i]);
      EXPECT_LE(buffer.start, static_cast<std::int64_t>(step));
      EXPECT_GT(buffer.end, static_cast<std::int64_t>(step));
    }
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      EXPECT_EQ(trace.copies[trace.writes(step)[i]].tensor, op.outputs[i]);
      EXPECT_EQ(trace.copies[trace.writes(step)[i]].made, static_cast<std::int64_t>(step));
    }
  }
  for (const Buffer& buffer : trace.buffers) EXPECT_LT(buffer.start, buffer.end);
}

TEST(SimulateOracle, AgreesOnRandomOrdersOfRandomProblems) {
  int executions = 0, faults = 0, repeats = 0;
  for (std::uint64_t seed = 1; seed <= 20000; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    std::mt19937_64 random(seed);
    const Problem problem = testing::draw_problem(random);
    ASSERT_NO_THROW(validate(problem));
    const Order order = testing::draw_order(random, problem);
    const TraceResult result = trace_order(problem, order);
    const std::optional<Replay> truth = Oracle(problem, order).replay();
    ASSERT_EQ(!result.fault, truth.has_value()) << (result.fault ? result.fault->message : "none");
    if (!truth) {
      ++faults;
      continue;
    }
    ++executions;
    if (order.size() > problem.ops.size()) ++repeats;
    check_structure(problem, order, result.trace);
    const MemoryProfile profile = profile_memory(result.trace);
    ASSERT_EQ(profile.live_bytes, truth->live_bytes);
    ASSERT_EQ(result.trace.cost, truth->cost);
    if (order.empty()) continue;
    const auto peak = std::max_element(truth->live_bytes.begin(), truth->live_bytes.end());
    ASSERT_EQ(profile.peak, *peak);
    if (*peak > 0) {
      ASSERT_EQ(profile.peak_step, peak - truth->live_bytes.begin());
    }
  }
  // The comparison means something only when all three kinds are common.
  EXPECT_GT(executions, 5000);
  EXPECT_GT(faults, 2000);
  EXPECT_GT(repeats, 2000);
}

}  // namespace
}  // namespace reprise::schedule
