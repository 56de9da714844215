#include "runtime/comm/comm_error.h"

#include <cerrno>
#include <cstring>
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

std::string silence_reason(double seconds, const std::string& here, const std::string& there) {
  return fmt::format("not heard of for {:.1f} s (stopped, or no way between {} and {})", seconds,
                     here, there);
}

std::string break_reason(int code, const std::string& here, const std::string& there) {
  if (code == 0 || code == ECONNRESET || code == EPIPE)
    return "its process ended (its connection was closed)";
  return fmt::format("the connection between {} and {} broke: {}", here, there,
                     std::strerror(code));
}

CommError::CommError(int rank, std::string operation, Failure failure)
    : base::Error(base::ErrorKind::kDevice, message(rank, operation, failure)),
      rank_(rank),
      operation_(std::move(operation)),
      failure_(std::move(failure)) {}

}  // namespace reprise::runtime::comm
