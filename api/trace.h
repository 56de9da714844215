#pragma once

// One recorded step as a trace for Perfetto (ui.perfetto.dev) or chrome://tracing: what each rank
// computed, what it sent meanwhile, and how many bytes were in use.

#include <cstdint>
#include <filesystem>
#include <string>

#include "nlohmann/json.hpp"

#include "runtime/step_record.h"
#include "schedule/schedule.h"

namespace reprise::api {

struct TraceLabels {
  int rank = 0, world_size = 1;
  std::int64_t step = 0;  // counted from 1
};

// In the trace event format: one process, the rank, with the lanes "compute" (every instruction, by
// its node's name; stretches of recomputed ones lie in a slice "recompute") and "communication"
// (the sums over ranks, with members and bytes), and the counter "bytes in use".
[[nodiscard]] nlohmann::ordered_json trace_document(const schedule::PlannedStep& planned,
                                                    const runtime::StepRecord& record,
                                                    const TraceLabels& labels);

// "step.json" of several ranks becomes "step.rank3.json": each writes its own.
[[nodiscard]] std::filesystem::path trace_path(const std::filesystem::path& path,
                                               const TraceLabels& labels);

// Writes the document to trace_path(); returns that. Error(kDevice) naming the path.
std::filesystem::path write_trace(const std::filesystem::path& path,
                                  const schedule::PlannedStep& planned,
                                  const runtime::StepRecord& record, const TraceLabels& labels);

}  // namespace reprise::api
