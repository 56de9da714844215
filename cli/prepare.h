#pragma once

// What commands that plan prepare, and the one place where `--chunk auto` becomes a number.

#include <optional>

#include "cli/command.h"
#include "cli/flags.h"

#include "api/prepare.h"

namespace reprise::cli {

using api::prepare_training;
using api::PreparedTraining;
using api::with_period;

// With --chunk auto: plans each length, says on standard error what came out, and puts the chosen
// one and the budget in bytes into the options. The exit code where no length fits.
[[nodiscard]] std::optional<int> choose_chunk(const Flags& flags, api::TrainOptions& options,
                                              Context& context);

}  // namespace reprise::cli
