#include "api/replicas.h"

#include <cstring>
#include <span>

#include "api/hash.h"
#include "base/error.h"
#include "schedule/text.h"

namespace reprise::api {
namespace {

// Ranks whose hash differs from rank 0's, as a list; empty when there are none.
std::string ranks_that_differ(std::uint64_t hash, runtime::comm::Communicator& ranks) {
  const std::string mine = fmt::format("{:016x}", hash);
  const auto all = ranks.all_gather(mine);
  std::string list;
  for (std::size_t rank = 1; rank < all.size(); ++rank) {
    if (all[rank] != all[0])
      list += fmt::format("{}{} ({})", list.empty() ? "" : ", ", rank, all[rank]);
  }
  return list.empty() ? "" : fmt::format("{}; rank 0 has {}", list, all[0]);
}

void copy_value(const std::string& name, Session& session, runtime::comm::Communicator& ranks) {
  auto bytes = session.read(name);
  ranks.broadcast(bytes, 0);
  if (ranks.rank() != 0) session.write(name, bytes);
}

}  // namespace

void require_same_plan(const schedule::PlannedStep& step, Bytes bucket_bytes,
                       runtime::comm::Communicator& ranks) {
  Fnv1a hash;
  // Costs may be measured, and differ; what they led to may not.
  schedule::PlannedStep plan = step;
  for (graph::PreparedNode& node : plan.prepared.nodes) node.cost_ns = 0;
  plan.prepared.cost_source.clear();
  hash.add(schedule::print_planned_step(plan));
  hash.add(fmt::format("buckets of {}", bucket_bytes));
  const std::string differ = ranks_that_differ(hash.value(), ranks);
  if (differ.empty()) return;
  throw base::input_error(
      "these ranks have another plan: {}; all need the same flags, program, kind of processor and "
      "--threads, and the same measured costs (or --costs analytic)",
      differ);
}

void copy_from_first_rank(Session& session, runtime::comm::Communicator& ranks) {
  for (const Session::Variable& variable : session.variables()) {
    if (!variable.carried) copy_value(variable.name, session, ranks);
  }
  std::uint64_t steps = session.steps_done();
  ranks.broadcast(std::as_writable_bytes(std::span(&steps, 1)), 0);
  session.set_steps_done(steps);
}

void copy_statistics_from_first_rank(Session& session, runtime::comm::Communicator& ranks) {
  for (const Session::Variable& variable : session.variables()) {
    if (variable.role == graph::Role::kState && !variable.carried)
      copy_value(variable.name, session, ranks);
  }
}

std::uint64_t replica_hash(const Session& session) {
  Fnv1a hash;
  for (const Session::Variable& variable : session.variables()) {
    if (variable.role != graph::Role::kParameter && variable.role != graph::Role::kOptimizerState)
      continue;
    hash.add(variable.name);
    hash.add(session.read(variable.name));
  }
  return hash.value();
}

void require_same_replicas(const Session& session, runtime::comm::Communicator& ranks) {
  const std::string differ = ranks_that_differ(replica_hash(session), ranks);
  if (differ.empty()) return;
  throw base::Error(base::ErrorKind::kInternal,
                    fmt::format("after step {} parameters are not the same on all ranks: hash of "
                                "rank {}",
                                session.steps_done(), differ));
}

}  // namespace reprise::api
