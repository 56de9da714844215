#pragma once

// Whole files in and out, with errors that name them.

#include <filesystem>
#include <string>
#include <string_view>

#include "schedule/schedule.h"

namespace reprise::cli {

// All of it, through gzip where the name ends in .gz. Error(kInput) naming file and reason.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);
// Complete or not at all: what was there before stays when it fails. Error(kDevice) naming file and
// reason.
void write_file(const std::filesystem::path& path, std::string_view text);

// A plan file: parsed and, so that everything else may rely on its indices, free of unknown ids.
[[nodiscard]] schedule::PlannedStep read_plan(const std::filesystem::path& path);

}  // namespace reprise::cli
