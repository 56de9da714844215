#pragma once

// A batch for benchmarks: every input of a graph with plausible values.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"

namespace reprise::bench {

using Batch = std::vector<std::pair<std::string, std::vector<std::byte>>>;

// By name: small floats, and ids that every table has.
inline Batch make_batch(const graph::Graph& graph) {
  Batch batch;
  for (const graph::Value& value : graph.values) {
    if (value.role != graph::Role::kInput) continue;
    const auto count = static_cast<std::size_t>(graph::element_count(value.shape));
    std::vector<std::byte> plain(count * 4);
    for (std::size_t i = 0; i < count; ++i) {
      const float real = static_cast<float>(i % 17) / 17.0F - 0.5F;
      const auto id = static_cast<std::int32_t>(i % 7);
      const void* element =
          value.dtype == graph::DType::kF32 ? static_cast<const void*>(&real) : &id;
      std::memcpy(&plain[i * 4], element, 4);
    }
    batch.emplace_back(value.name, std::move(plain));
  }
  return batch;
}

}  // namespace reprise::bench
