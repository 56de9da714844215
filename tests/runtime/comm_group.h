#pragma once

// Runs one body as every rank of a group, one thread each, over any of the communicators.

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "runtime/comm/thread_communicator.h"

namespace reprise::runtime::comm::testing {

using namespace std::chrono_literals;

// The ends of a group, by rank. An end may have to be made on its own thread.
using MakeEnd = std::function<std::unique_ptr<Communicator>(int rank)>;
struct GroupKind {
  std::string name;
  std::function<MakeEnd(const CommOptions&)> make;
};

inline GroupKind threads_kind() {
  return {"threads", [](const CommOptions& options) -> MakeEnd {
            auto ends = std::make_shared<std::vector<std::unique_ptr<Communicator>>>(
                make_thread_group(options));
            return [ends](int rank) { return std::move((*ends)[static_cast<std::size_t>(rank)]); };
          }};
}

// What each rank's body threw, as text; empty where it ended well.
inline std::vector<std::string> run_ranks(const GroupKind& kind, const CommOptions& options,
                                          const std::function<void(Communicator&)>& body) {
  const MakeEnd make = kind.make(options);
  std::vector<std::string> thrown(static_cast<std::size_t>(options.world_size));
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < options.world_size; ++rank) {
    ranks.emplace_back([&, rank] {
      try {
        const auto end = make(rank);
        body(*end);
      } catch (const std::exception& error) {
        thrown[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& rank : ranks) rank.join();
  return thrown;
}

inline CommOptions world(int size, std::chrono::milliseconds timeout = 20s) {
  return {.world_size = size, .timeout = timeout};
}

}  // namespace reprise::runtime::comm::testing
