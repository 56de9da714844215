#include "api/trace.h"

#include <span>
#include <utility>

#include "base/error.h"
#include "runtime/atomic_file.h"
#include "schedule/usage.h"

namespace reprise::api {
namespace {

using Json = nlohmann::ordered_json;
using runtime::Interval;
using schedule::Activity;

enum Lane : int { kCompute = 1, kCommunication = 2 };

// The format counts in microseconds.
double microseconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-3;
}

class Trace {
 public:
  Trace(const schedule::PlannedStep& planned, const runtime::StepRecord& record,
        const TraceLabels& labels)
      : planned_(planned),
        record_(record),
        labels_(labels),
        usage_(schedule::measure_usage(planned.prepared, planned.schedule)) {}

  Json make() {
    name_lanes();
    add_recomputed_stretches();
    add_instructions();
    add_sums();
    add_bytes();
    return {{"displayTimeUnit", "ms"}, {"traceEvents", std::move(events_)}};
  }

 private:
  [[nodiscard]] const graph::Node& node_of(std::size_t instruction) const {
    return planned_.prepared.graph.nodes[planned_.schedule.instructions[instruction].node];
  }
  void name(const char* what, int lane, const std::string& text) {
    events_.push_back({{"ph", "M"},
                       {"name", what},
                       {"pid", labels_.rank},
                       {"tid", lane},
                       {"args", {{"name", text}}}});
  }
  void slice(Lane lane, const std::string& text, const std::string& category, const Interval& at,
             Json args) {
    events_.push_back({{"ph", "X"},
                       {"name", text},
                       {"cat", category},
                       {"pid", labels_.rank},
                       {"tid", static_cast<int>(lane)},
                       {"ts", microseconds(at.begin_ns)},
                       {"dur", microseconds(at.end_ns - at.begin_ns)},
                       {"args", std::move(args)}});
  }

  void name_lanes();
  void add_recomputed_stretches();
  void add_instructions();
  void add_sums();
  void add_bytes();

  const schedule::PlannedStep& planned_;
  const runtime::StepRecord& record_;
  const TraceLabels& labels_;
  const schedule::Usage usage_;
  Json events_ = Json::array();
};

void Trace::name_lanes() {
  name("process_name", 0,
       fmt::format("rank {} of {}: {}, step {}", labels_.rank, labels_.world_size,
                   planned_.prepared.graph.name, labels_.step));
  name("thread_name", kCompute, "compute");
  if (!record_.sums.empty()) name("thread_name", kCommunication, "communication");
}

// Slices that lie in another one are drawn below it, so recomputation is seen at a glance.
void Trace::add_recomputed_stretches() {
  const auto& activities = usage_.activities;
  for (std::size_t i = 0; i < activities.size();) {
    std::size_t end = i + 1;
    while (end < activities.size() && activities[end] == activities[i]) ++end;
    if (activities[i] == Activity::kRecompute) {
      slice(kCompute, "recompute", "recompute",
            {record_.instructions[i].begin_ns, record_.instructions[end - 1].end_ns},
            {{"instructions", end - i}});
    }
    i = end;
  }
}

void Trace::add_instructions() {
  for (std::size_t i = 0; i < record_.instructions.size(); ++i) {
    const schedule::Instruction& instruction = planned_.schedule.instructions[i];
    const graph::PreparedNode& costs = planned_.prepared.nodes[instruction.node];
    const auto algorithm = static_cast<std::size_t>(instruction.algorithm);
    const bool waits = node_of(i).op == graph::OpKind::kAwait;
    slice(kCompute, node_of(i).name, waits ? "wait" : schedule::activity_name(usage_.activities[i]),
          record_.instructions[i],
          {{"instruction", i},
           {"op", graph::op_info(node_of(i).op).name},
           {"recomputed", usage_.activities[i] == Activity::kRecompute},
           {"planned_us", microseconds(costs.cost_of(algorithm))}});
  }
}

void Trace::add_sums() {
  if (record_.sums.empty()) return;  // on the device, unseen
  for (std::size_t i = 0; i < record_.buckets.size(); ++i) {
    const schedule::Bucket& bucket = record_.buckets[i];
    Json members = Json::array();
    for (const graph::NodeId member : bucket.members)
      members.push_back(planned_.prepared.graph.nodes[member].name);
    std::string text = members.front();
    if (members.size() > 1) text += fmt::format(" and {} more", members.size() - 1);
    const auto start = static_cast<std::size_t>(bucket.start);
    slice(kCommunication, text, "sum", record_.sums[i],
          {{"bytes", bucket.bytes},
           {"members", std::move(members)},
           {"started_us", microseconds(record_.instructions[start].begin_ns)}});
  }
}

void Trace::add_bytes() {
  for (std::size_t i = 0; i < record_.instructions.size(); ++i) {
    events_.push_back({{"ph", "C"},
                       {"name", "bytes in use"},
                       {"pid", labels_.rank},
                       {"ts", microseconds(record_.instructions[i].begin_ns)},
                       {"args", {{"bytes", usage_.live_bytes[i]}}}});
  }
}

}  // namespace

Json trace_document(const schedule::PlannedStep& planned, const runtime::StepRecord& record,
                    const TraceLabels& labels) {
  REPRISE_CHECK(record.instructions.size() == planned.schedule.instructions.size(),
                "{} of {} instructions are recorded", record.instructions.size(),
                planned.schedule.instructions.size());
  return Trace(planned, record, labels).make();
}

std::filesystem::path trace_path(const std::filesystem::path& path, const TraceLabels& labels) {
  if (labels.world_size == 1) return path;
  std::filesystem::path mine = path;
  return mine.replace_extension(fmt::format("rank{}{}", labels.rank, path.extension().string()));
}

std::filesystem::path write_trace(const std::filesystem::path& path,
                                  const schedule::PlannedStep& planned,
                                  const runtime::StepRecord& record, const TraceLabels& labels) {
  std::filesystem::path mine = trace_path(path, labels);
  const std::string text = trace_document(planned, record, labels).dump() + "\n";
  runtime::AtomicFile file(mine);
  file.write(std::as_bytes(std::span(text)));
  file.commit();
  return mine;
}

}  // namespace reprise::api
