#include "api/device_group.h"

#include <optional>
#include <string>
#include <utility>

#include "base/error.h"

namespace reprise::api {
namespace {

using runtime::comm::CommError;
using runtime::comm::Communicator;

constexpr const char* kDoing = "joining the group of GPUs";
constexpr char kId = '+', kReason = '-';  // what rank 0's word is

std::string id_of_all(const kernels::Backend& backend, Communicator& ranks) {
  std::string word;
  if (ranks.rank() == 0) {
    try {
      word = kId + backend.make_group_id();
    } catch (const base::Error& error) {
      word = kReason + std::string(error.what());
    }
  }
  const std::string first = ranks.all_gather(word).front();
  if (first.empty() || first[0] == kReason) {
    throw base::device_error("rank 0 cannot make a group of GPUs: {}",
                             first.empty() ? "no reason given" : first.substr(1));
  }
  return first.substr(1);
}

kernels::Patience patience_of(Communicator& ranks) {
  return [&ranks](std::chrono::nanoseconds waited) {
    ranks.check(kDoing);
    const auto timeout = ranks.options().timeout;
    if (waited <= timeout) return;
    const auto reason = fmt::format("the other GPUs did not come within {} ms", timeout.count());
    throw CommError(ranks.rank(), kDoing, {std::nullopt, reason});
  };
}

}  // namespace

std::unique_ptr<kernels::DeviceSums> join_device_group(const kernels::Backend& backend,
                                                       Communicator& ranks) {
  if (backend.memory() == nullptr) return nullptr;
  const std::string id = id_of_all(backend, ranks);
  try {
    return backend.join_group(id, ranks.rank(), ranks.world_size(), patience_of(ranks));
  } catch (const CommError&) {
    throw;
  } catch (const std::exception& error) {
    ranks.abort(fmt::format("{}: {}", kDoing, error.what()));
    throw;
  }
}

}  // namespace reprise::api
