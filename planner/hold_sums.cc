#include "planner/hold_sums.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.h"

namespace reprise::planner {
namespace {

using schedule::CopyId;
using schedule::Trace;

// Tries of a lower level when buffers do not pack.
constexpr int kMostTries = 5;

// An await and the only reader of its sum, an update: they move together.
struct Pair {
  std::size_t await = 0, update = 0;  // steps
  Bytes bytes = 0;                    // of the gradient
};

std::vector<Pair> find_pairs(const graph::PreparedGraph& prepared, const GraphProblem& problem,
                             const Trace& trace) {
  const auto node_at = [&](std::size_t step) { return problem.nodes[trace.steps[step].op]; };
  base::IdVector<CopyId, std::int64_t> readers(trace.copies.size());
  for (const CopyId copy : trace.read_copies) ++readers[copy];
  std::vector<Pair> pairs;
  for (std::size_t step = 0; step < trace.steps.size(); ++step) {
    const graph::NodeId node = node_at(step);
    if (!node.valid() || prepared.graph.nodes[node].op != graph::OpKind::kAwait) continue;
    const CopyId sum = trace.writes(step)[0];
    const std::int64_t reader = trace.copies[sum].last_read;
    if (readers[sum] != 1 || reader >= std::ssize(trace.steps)) continue;
    const auto update = static_cast<std::size_t>(reader);
    if (prepared.graph.nodes[node_at(update)].phase != graph::Phase::kUpdate) continue;
    // What the update makes stays to the end: nobody waits for it.
    const auto made = trace.writes(update);
    const bool read =
        std::any_of(made.begin(), made.end(), [&](CopyId c) { return readers[c] > 0; });
    if (!read) pairs.push_back({step, update, trace.buffers[trace.copies[sum].buffer].bytes});
  }
  return pairs;
}

// Each pair as late as `level` bytes allow, the oldest first.
Order held_order(const Trace& trace, const std::vector<Bytes>& live, const std::vector<Pair>& pairs,
                 Bytes level) {
  std::vector<bool> moves(trace.steps.size(), false);
  std::vector<const Pair*> ending(trace.steps.size(), nullptr);  // by the step of its update
  for (const Pair& pair : pairs) {
    moves[pair.await] = moves[pair.update] = true;
    ending[pair.update] = &pair;
  }
  Order order;
  std::deque<const Pair*> held;
  Bytes held_bytes = 0;
  const auto release = [&] {
    order.push_back(trace.steps[held.front()->await].op);
    order.push_back(trace.steps[held.front()->update].op);
    held_bytes -= held.front()->bytes;
    held.pop_front();
  };
  for (std::size_t step = 0; step < trace.steps.size(); ++step) {
    while (!held.empty() && live[step] + held_bytes > level) release();
    if (!moves[step]) order.push_back(trace.steps[step].op);
    if (ending[step] == nullptr) continue;
    held.push_back(ending[step]);
    held_bytes += ending[step]->bytes;
  }
  while (!held.empty()) release();
  return order;
}

std::optional<Plan> packed(const Problem& problem, const Plan& plan, Order order, Bytes limit,
                           PackingOptions packing) {
  const schedule::TraceResult traced = schedule::trace_order(problem, order, plan.choices);
  REPRISE_CHECK(!traced.fault, "a later await is no execution: {}",
                traced.fault ? traced.fault->message : "");
  Plan next = plan;
  next.order = std::move(order);
  next.live_peak = schedule::profile_memory(traced.trace).peak;
  if (next.live_peak > limit) return std::nullopt;
  packing.enough = limit;
  next.packing = pack(traced.trace.buffers.items(), packing);
  next.arena = next.packing.arena;
  if (next.arena > limit) return std::nullopt;
  return next;
}

}  // namespace

Plan hold_sums(const graph::PreparedGraph& prepared, const GraphProblem& problem, Plan plan,
               Bytes limit, const PackingOptions& packing) {
  if (prepared.graph.updates_last) return plan;
  const schedule::TraceResult traced =
      schedule::trace_order(problem.problem, plan.order, plan.choices);
  REPRISE_CHECK(!traced.fault, "a plan that is no execution: {}",
                traced.fault ? traced.fault->message : "");
  const std::vector<Pair> pairs = find_pairs(prepared, problem, traced.trace);
  if (pairs.empty()) return plan;
  const schedule::MemoryProfile profile = schedule::profile_memory(traced.trace);
  // From all of the limit down to what the plan takes anyway; packing needs some room.
  for (int i = 0; i < kMostTries; ++i) {
    const Bytes level = limit - (limit - std::min(limit, profile.peak)) * i / (kMostTries - 1);
    Order order = held_order(traced.trace, profile.live_bytes, pairs, level);
    if (auto next = packed(problem.problem, plan, std::move(order), limit, packing)) return *next;
    if (level <= profile.peak) break;  // there is no lower one
  }
  return plan;
}

}  // namespace reprise::planner
