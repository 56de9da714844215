#include "tests/cuda/double/collective.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <stdexcept>

namespace reprise::test::cuda {
namespace {

template <class T>
T combine(ncclRedOp_t op, T a, T b) {
  switch (op) {
    case ncclSum:
    case ncclAvg:
      return static_cast<T>(a + b);
    case ncclProd:
      return static_cast<T>(a * b);
    case ncclMax:
      return std::max(a, b);
    case ncclMin:
      return std::min(a, b);
    default:
      throw std::runtime_error("a reduction that the double does not know");
  }
}

using Bytes = std::vector<std::byte>;

// As a ring does it: each of the N pieces begins at another rank, so that with more than two ranks
// the rounding is not that of a sum in rank order. The same on every rank.
template <class T>
Bytes reduce(ncclRedOp_t op, const std::vector<Bytes>& inputs) {
  const std::size_t ranks = inputs.size();
  const std::size_t count = inputs[0].size() / sizeof(T);
  Bytes result(inputs[0].size());
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = i * ranks / count;
    const auto value = [&](std::size_t step) {
      T one;
      std::memcpy(&one, inputs[(first + step) % ranks].data() + i * sizeof(T), sizeof(T));
      return one;
    };
    T sum = value(0);
    for (std::size_t step = 1; step < ranks; ++step) sum = combine(op, sum, value(step));
    if (op == ncclAvg) sum = static_cast<T>(sum / static_cast<T>(ranks));
    std::memcpy(result.data() + i * sizeof(T), &sum, sizeof(T));
  }
  return result;
}

Bytes reduce(const CollectiveCall& call, const std::vector<Bytes>& inputs) {
  switch (call.type) {
    case ncclFloat32:
      return reduce<float>(call.op, inputs);
    case ncclFloat64:
      return reduce<double>(call.op, inputs);
    case ncclInt32:
      return reduce<std::int32_t>(call.op, inputs);
    case ncclInt64:
      return reduce<std::int64_t>(call.op, inputs);
    case ncclUint8:
      return reduce<std::uint8_t>(call.op, inputs);
    default:
      throw std::runtime_error("a type that the double does not reduce");
  }
}

void write(void* to, const std::byte* from, std::size_t bytes) {
  if (bytes > 0) std::memcpy(storage(to, bytes), from, bytes);
}

}  // namespace

std::size_t bytes_of(ncclDataType_t type) {
  switch (type) {
    case ncclInt8:
    case ncclUint8:
      return 1;
    case ncclFloat16:
    case ncclBfloat16:
      return 2;
    case ncclInt64:
    case ncclUint64:
    case ncclFloat64:
      return 8;
    default:
      return 4;
  }
}

std::size_t send_count(const CollectiveCall& call, std::size_t ranks) {
  return call.kind == CollectiveKind::kReduceScatter ? call.count * ranks : call.count;
}

std::size_t receive_count(const CollectiveCall& call, std::size_t ranks) {
  return call.kind == CollectiveKind::kAllGather ? call.count * ranks : call.count;
}

void run_collective(Collective& c) {
  if (c.computed) return;
  c.computed = true;
  const std::size_t ranks = c.parts.size();
  const std::size_t sent = send_count(c.call, ranks) * bytes_of(c.call.type);
  const std::size_t received = receive_count(c.call, ranks) * bytes_of(c.call.type);
  if (sent == 0) return;
  if (c.call.kind == CollectiveKind::kBroadcast) {
    const std::byte* const from = storage(c.parts[c.call.root].send, sent);
    const Bytes value(from, from + sent);
    for (const Collective::Part& part : c.parts) write(part.receive, value.data(), sent);
    return;
  }
  std::vector<Bytes> inputs;
  for (const Collective::Part& part : c.parts) {
    const std::byte* const from = storage(part.send, sent);
    inputs.emplace_back(from, from + sent);
  }
  if (c.call.kind == CollectiveKind::kAllGather) {
    for (const Collective::Part& part : c.parts)
      for (std::size_t r = 0; r < ranks; ++r)
        write(static_cast<std::byte*>(part.receive) + r * sent, inputs[r].data(), sent);
    return;
  }
  const Bytes sum = reduce(c.call, inputs);
  const bool scatter = c.call.kind == CollectiveKind::kReduceScatter;
  for (std::size_t r = 0; r < ranks; ++r)
    write(c.parts[r].receive, sum.data() + (scatter ? r * received : 0), received);
}

}  // namespace reprise::test::cuda
