#include "tests/cuda/double/library.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fmt/format.h>

#include "tests/cuda/double/faults.h"
#include "tests/cuda/double/memory.h"

namespace reprise::test::cuda {
namespace {

// By where they begin: whether one that is written meets any other.
void check_overlap(const std::string& name, std::vector<Range> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  const void* end_of_written = nullptr;
  const void* end_of_any = nullptr;
  for (const Range& range : ranges) {
    if (range.bytes == 0) continue;
    if (range.begin < end_of_written || (range.written && range.begin < end_of_any)) {
      fault(fmt::format("{} writes where it reads or writes something else: {}", name,
                        memory().describe(range.begin, range.bytes)));
      return;
    }
    const void* const end = static_cast<const std::byte*>(range.begin) + range.bytes;
    end_of_any = std::max(end_of_any, end);
    if (range.written) end_of_written = std::max(end_of_written, end);
  }
}

}  // namespace

cudaError_t queue_library_call(cudaStream_t stream, const std::string& name,
                               std::vector<Range> touched, const Workspace& workspace,
                               std::function<void()> work) {
  if (workspace.bytes > 0) touched.push_back({workspace.begin, workspace.bytes, true});
  check_overlap(name, touched);
  const auto run = [workspace, work = std::move(work)] {
    const auto scribble = [&](int value) {
      if (workspace.bytes > 0)
        std::memset(storage(workspace.begin, workspace.bytes), value, workspace.bytes);
    };
    scribble(0xDB);
    work();
    scribble(0xBD);
  };
  return engine().submit(stream, {name, Kind::kKernel, std::move(touched), run, {}});
}

float as_tensor_float(float value) {
  auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7F800000) == 0x7F800000) return value;
  bits += 0x1000;  // half of the last bit that stays
  return std::bit_cast<float>(bits & 0xFFFFE000);
}

float Numbers::at(std::int64_t i) const {
  if (!bf16_) return reinterpret_cast<const float*>(data_)[i];
  const std::uint32_t upper = reinterpret_cast<const std::uint16_t*>(data_)[i];
  return std::bit_cast<float>(upper << 16);
}

void Numbers::set(std::int64_t i, float value) const {
  if (!bf16_) {
    reinterpret_cast<float*>(data_)[i] = value;
    return;
  }
  const auto bits = std::bit_cast<std::uint32_t>(value);
  std::uint32_t upper = bits >> 16;
  const std::uint32_t lower = bits & 0xFFFF;
  if (std::isnan(value)) {
    upper = 0x7FFF;
  } else if (lower > 0x8000 || (lower == 0x8000 && (upper & 1) == 1)) {
    ++upper;  // beyond the largest that is infinity's bits
  }
  reinterpret_cast<std::uint16_t*>(data_)[i] = static_cast<std::uint16_t>(upper);
}

}  // namespace reprise::test::cuda
