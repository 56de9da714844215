#pragma once

// The text form of a planned step (docs/schedule_format.md).

#include <string>
#include <string_view>

#include "schedule/schedule.h"

namespace reprise::schedule {

// Round-trips: parse_planned_step(print_planned_step(p)) == p.
[[nodiscard]] std::string print_planned_step(const PlannedStep& step);

// Throws Error(kInput) with `source` (a file name), line number, the offending text and what was
// expected. Checks form only; verify() checks meaning.
[[nodiscard]] PlannedStep parse_planned_step(std::string_view text, std::string_view source);

}  // namespace reprise::schedule
