#include "host/touch_guard.h"

#include <algorithm>
#include <atomic>
#include <fmt/format.h>
#include <utility>

#include "double/memory.h"
#include "host/grid.h"

namespace reprise::test::cuda {
namespace {

std::atomic<bool> is_on = false;
constexpr std::byte kHidden{0xA5};

}  // namespace

void set_touch_guard(bool on) {
  is_on = on;
}
bool touch_guard_is_on() {
  return is_on;
}

TouchGuard::TouchGuard(std::string kernel, const std::vector<Range>& touched,
                       const std::vector<const void*>& pointers)
    : kernel_(std::move(kernel)) {
  for (const void* pointer : pointers)
    if (is_device_address(pointer)) guard(pointer, touched);
}

void TouchGuard::guard(const void* pointer, const std::vector<Range>& touched) {
  const Allocation allocation = memory().holding(pointer, 1);
  const auto* begin = reinterpret_cast<const std::byte*>(allocation.begin);
  if (std::ranges::any_of(guarded_, [&](const Guarded& g) { return g.address == begin; })) return;
  Guarded g;
  g.bytes = storage(begin, allocation.bytes);
  g.address = begin;
  g.before.assign(g.bytes, g.bytes + allocation.bytes);
  g.uses.assign(allocation.bytes, Use::kNone);
  for (const bool written : {false, true})
    for (const Range& r : touched) {
      const auto at = reinterpret_cast<std::uintptr_t>(r.begin);
      if (r.written != written || at < allocation.begin ||
          at >= allocation.begin + allocation.bytes)
        continue;
      const std::size_t first = at - allocation.begin;
      std::fill_n(g.uses.begin() + static_cast<std::ptrdiff_t>(first),
                  std::min(r.bytes, allocation.bytes - first),
                  written ? Use::kWritten : Use::kRead);
    }
  for (std::size_t i = 0; i < g.uses.size(); ++i)
    if (g.uses[i] == Use::kNone) g.bytes[i] = kHidden;
  guarded_.push_back(std::move(g));
}

TouchGuard::~TouchGuard() {
  for (const Guarded& g : guarded_)
    for (std::size_t i = 0; i < g.uses.size(); ++i)
      if (g.uses[i] == Use::kNone) g.bytes[i] = g.before[i];
}

void TouchGuard::check() const {
  for (const Guarded& g : guarded_)
    for (std::size_t i = 0; i < g.uses.size(); ++i) {
      const std::byte expected = g.uses[i] == Use::kNone ? kHidden : g.before[i];
      if (g.uses[i] == Use::kWritten || g.bytes[i] == expected) continue;
      throw KernelFault(fmt::format("kernel {}: wrote {}, which it did not declare as written{}",
                                    kernel_, memory().describe(g.address + i, 1),
                                    g.uses[i] == Use::kRead ? " but as read" : ""));
    }
}

}  // namespace reprise::test::cuda
