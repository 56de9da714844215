#include "schedule/cluster.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace reprise::schedule {
namespace {

// Our own exchange sends parts of at most so many bytes: see runtime/comm/gloo.
constexpr double kPartBytes = 262144;

// Of a tree of that many ranks: ceil(log2 n).
double levels(std::int64_t ranks) {
  return static_cast<double>(std::bit_width(static_cast<std::uint64_t>(ranks - 1)));
}

}  // namespace

std::string_view exchange_name(Exchange exchange) {
  switch (exchange) {
    case Exchange::kRing:
      return "ring";
    case Exchange::kTree:
      return "tree";
    case Exchange::kTwoHop:
      return "two_hop";
  }
  return "?";
}

std::int64_t exchange_ns(Exchange exchange, std::int64_t ranks, Bytes bytes, const Link& link) {
  REPRISE_CHECK(ranks >= 1 && bytes >= 0 && link.bytes_per_second > 0, "{} ranks, {} bytes, {}/s",
                ranks, bytes, link.bytes_per_second);
  if (ranks == 1) return 0;
  const auto n = static_cast<double>(ranks);
  const double all_ns = static_cast<double>(bytes) / link.bytes_per_second * 1e9;
  const double parts_ns = 2 * (n - 1) / n * all_ns;
  const double hop_ns = link.latency_ns + link.message_ns;
  double ns = 0;
  switch (exchange) {
    case Exchange::kRing:
      ns = 2 * (n - 1) * hop_ns + parts_ns;
      break;
    case Exchange::kTree:
      ns = 2 * levels(ranks) * hop_ns + 2 * all_ns;
      break;
    case Exchange::kTwoHop: {
      const double segments = std::max(1.0, std::ceil(static_cast<double>(bytes) / n / kPartBytes));
      ns = 2 * link.latency_ns + 2 * (n - 1) * segments * link.message_ns + parts_ns;
      break;
    }
  }
  return std::llround(ns);
}

StepEstimate estimate_step(const graph::PreparedGraph& prepared, const Schedule& schedule,
                           const std::vector<Bucket>& buckets,
                           const std::function<std::int64_t(Bytes)>& sum_ns) {
  StepEstimate result;
  base::IdVector<NodeId, std::size_t> bucket_of(prepared.graph.nodes.size());
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    for (const NodeId member : buckets[b].members) bucket_of[member] = b;
  }
  std::int64_t now = 0, link_free = 0;
  for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
    const Instruction& instruction = schedule.instructions[i];
    const graph::Node& node = prepared.graph.nodes[instruction.node];
    if (node.op == graph::OpKind::kAwait) {
      const NodeId sum = prepared.graph.values[node.inputs[0]].producer;
      REPRISE_CHECK(bucket_of[sum] < result.sums.size(), "'{}' before its sum", node.name);
      const std::int64_t there = result.sums[bucket_of[sum]].end_ns;
      result.wait_ns += std::max<std::int64_t>(0, there - now);
      now = std::max(now, there);
    }
    const std::int64_t cost =
        prepared.nodes[instruction.node].cost_of(static_cast<std::size_t>(instruction.algorithm));
    result.compute_ns += cost;
    now += cost;
    const std::size_t next = result.sums.size();
    if (next == buckets.size() || buckets[next].start != static_cast<std::int64_t>(i)) continue;
    const std::int64_t begin = std::max(now, link_free);
    const std::int64_t takes = sum_ns(buckets[next].bytes);
    link_free = begin + takes;
    result.sums_ns += takes;
    result.sums.push_back({.start_ns = now, .begin_ns = begin, .end_ns = link_free});
  }
  result.step_ns = std::max(now, link_free);
  return result;
}

}  // namespace reprise::schedule
