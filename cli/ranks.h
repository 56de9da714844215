#pragma once

// This process's place among the ranks of a job, as its environment says.

#include <chrono>
#include <memory>
#include <string_view>

#include "cli/command.h"

#include "api/session.h"
#include "runtime/comm/communicator.h"

namespace reprise::cli {

// Null for a rank alone. Joins the others, says on standard error where this rank is, and gives
// `session` the threads that OMP_NUM_THREADS names, where no flag does, and the GPU with the number
// of this rank on its machine, unless `gpu_given`. Throws as
// runtime::comm::read_rank_environment() and make_gloo_communicator() do.
[[nodiscard]] std::shared_ptr<runtime::comm::Communicator> join_ranks(
    Context& context, std::chrono::milliseconds timeout, bool gpu_given,
    api::SessionOptions& session);

// Error(kInput) naming `flag`, which is for a process alone, where the environment says that this
// is one of several ranks.
void require_one_rank(std::string_view flag);

}  // namespace reprise::cli
