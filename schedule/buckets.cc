#include "schedule/buckets.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "graph/buckets.h"

namespace reprise::schedule {
namespace {

using graph::OpKind;

// One run of an all_reduce or an await.
struct Event {
  std::int64_t instruction = 0;
  NodeId sum;  // the all_reduce
  bool awaits = false;
  Bytes bytes = 0;
};

std::vector<Event> find_events(const graph::PreparedGraph& prepared, const Schedule& schedule) {
  std::vector<Event> events;
  base::IdVector<NodeId, char> seen(prepared.graph.nodes.size());
  for (std::size_t i = 0; i < schedule.instructions.size(); ++i) {
    const NodeId id = schedule.instructions[i].node;
    const graph::Node& node = prepared.graph.nodes[id];
    if (node.op != OpKind::kAllReduce && node.op != OpKind::kAwait) continue;
    REPRISE_CHECK(!seen[id], "'{}' runs twice", node.name);
    seen[id] = 1;
    const bool awaits = node.op == OpKind::kAwait;
    events.push_back({.instruction = static_cast<std::int64_t>(i),
                      .sum = awaits ? prepared.graph.values[node.inputs[0]].producer : id,
                      .awaits = awaits,
                      .bytes = awaits ? 0 : prepared.value_bytes[node.outputs[0]]});
  }
  return events;
}

void add(Bucket& bucket, const Event& event) {
  bucket.members.push_back(event.sum);
  bucket.start = event.instruction;
  bucket.bytes += event.bytes;
}

}  // namespace

std::vector<Bucket> cut_buckets(const graph::PreparedGraph& prepared, const Schedule& schedule,
                                Bytes most_bytes) {
  const std::vector<Event> events = find_events(prepared, schedule);
  Bytes all = 0;
  for (const Event& event : events) all += event.bytes;
  const Bytes target = graph::bucket_target(most_bytes, all);

  std::vector<Bucket> buckets;
  Bucket open;
  const auto close = [&] {
    if (!open.members.empty()) buckets.push_back(std::exchange(open, {}));
  };
  for (std::size_t i = 0; i < events.size(); ++i) {
    const Event& event = events[i];
    if (event.awaits) {
      if (std::find(open.members.begin(), open.members.end(), event.sum) != open.members.end())
        close();
      continue;
    }
    const bool wanted_at_once =
        i + 1 < events.size() && events[i + 1].awaits && events[i + 1].sum == event.sum;
    if (wanted_at_once) {
      add(buckets.emplace_back(), event);
      continue;
    }
    if (open.bytes + event.bytes > target) close();
    add(open, event);
    if (open.bytes >= target) close();
  }
  close();
  std::sort(buckets.begin(), buckets.end(),
            [](const Bucket& a, const Bucket& b) { return a.start < b.start; });
  return buckets;
}

}  // namespace reprise::schedule
