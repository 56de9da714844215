#include "runtime/comm/comm_error.h"

#include <utility>

namespace reprise::runtime::comm {
namespace {

std::string message(int rank, const std::string& operation, const Failure& failure) {
  if (!failure.rank) return fmt::format("rank {}, {}: {}", rank, operation, failure.reason);
  if (*failure.rank == rank)
    return fmt::format("rank {}, {}: this rank failed first: {}", rank, operation, failure.reason);
  return fmt::format("rank {}, {}: rank {} failed first: {}", rank, operation, *failure.rank,
                     failure.reason);
}

}  // namespace

CommError::CommError(int rank, std::string operation, Failure failure)
    : base::Error(base::ErrorKind::kDevice, message(rank, operation, failure)),
      rank_(rank),
      operation_(std::move(operation)),
      failure_(std::move(failure)) {}

}  // namespace reprise::runtime::comm
