#include "tests/cuda/double/memory.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fmt/format.h>
#include <sys/mman.h>

#include "tests/cuda/double/faults.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

namespace reprise::test::cuda {
namespace {

#if defined(__SANITIZE_THREAD__)  // which leaves the program little more than the first 512 GiB
constexpr std::uintptr_t kBegin = 0x10'0000'0000;
constexpr std::uintptr_t kDistance = 0x30'0000'0000;
constexpr std::size_t kReserved = std::size_t{192} << 30;
#else
constexpr std::uintptr_t kBegin = 0x2000'0000'0000;
constexpr std::uintptr_t kDistance = 0x1000'0000'0000;
constexpr std::size_t kReserved = std::size_t{4} << 40;
#endif
constexpr std::size_t kPage = 4096;

std::size_t whole_pages(std::size_t bytes) {
  return (bytes + kPage - 1) / kPage * kPage;
}

void map_fixed(std::uintptr_t at, std::size_t bytes, int protection) {
  void* const got = mmap(reinterpret_cast<void*>(at), bytes, protection,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (got == MAP_FAILED) std::abort();
}

std::byte* bytes_at(std::uintptr_t address) {
  return reinterpret_cast<std::byte*>(address);
}

// The rest of the last page is known to be fresh, and a sanitizer is told that it is no one's.
void close_tail(std::uintptr_t at, std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(bytes_at(at), whole_pages(bytes));
  __asan_poison_memory_region(bytes_at(at) + bytes, whole_pages(bytes) - bytes);
#else
  (void)at, (void)bytes;
#endif
}

bool tail_is_fresh(std::uintptr_t at, std::size_t bytes) {
#if defined(__SANITIZE_ADDRESS__)
  __asan_unpoison_memory_region(bytes_at(at), whole_pages(bytes));
#endif
  for (std::size_t i = bytes; i < whole_pages(bytes); ++i)
    if (bytes_at(at)[i] != std::byte{kFresh}) return false;
  return true;
}

}  // namespace

Memory& memory() {
  static Memory* const instance = new Memory;
  return *instance;
}

std::uintptr_t storage_distance() {
  return kDistance;
}

bool is_device_address(const void* address) {
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  return at >= kBegin && at < kBegin + kReserved;
}

std::byte* storage(const void* device_address, std::size_t bytes) {
  if (!is_device_address(device_address))
    throw BadAddress(fmt::format("{} is no device address", device_address));
  (void)memory().holding(device_address, bytes);
  return bytes_at(reinterpret_cast<std::uintptr_t>(device_address) + kDistance);
}

void Memory::reserve_ranges() {
  if (next_ != 0) return;
  map_fixed(kBegin, kReserved, PROT_NONE);
  map_fixed(kBegin + kDistance, kReserved, PROT_NONE);
  next_ = kBegin + kPage;
  trap_host_accesses();
}

void* Memory::allocate(std::size_t bytes, int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  reserve_ranges();
  const std::uintptr_t begin = next_;
  next_ += whole_pages(bytes) + kPage;  // a page between two that is never accessible
  if (next_ > kBegin + kReserved) std::abort();
  map_fixed(begin + kDistance, whole_pages(bytes), PROT_READ | PROT_WRITE);
  std::memset(bytes_at(begin + kDistance), kFresh, whole_pages(bytes));
  close_tail(begin + kDistance, bytes);
  live_[begin] = {begin, bytes, device, false, false, ++numbers_};
  ++usage_.allocations;
  usage_.bytes += bytes;
  usage_.peak_bytes = std::max(usage_.peak_bytes, usage_.bytes);
  return reinterpret_cast<void*>(begin);
}

void* Memory::allocate_pinned(std::size_t bytes, int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  void* const got =
      mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) std::abort();
  std::memset(got, kFresh, whole_pages(bytes));
  const auto begin = reinterpret_cast<std::uintptr_t>(got);
  close_tail(begin, bytes);
  live_[begin] = {begin, bytes, device, true, false, ++numbers_};
  return got;
}

void Memory::pin(void* host, std::size_t bytes, int device) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto begin = reinterpret_cast<std::uintptr_t>(host);
  live_[begin] = {begin, bytes, device, true, true, ++numbers_};
}

bool Memory::release(void* address, bool pinned) {
  Allocation gone;
  bool overrun = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = live_.find(reinterpret_cast<std::uintptr_t>(address));
    if (found == live_.end() || found->second.pinned != pinned) return false;
    gone = found->second;
    live_.erase(found);
    const std::uintptr_t at = gone.begin + (pinned ? 0 : kDistance);
    if (!gone.registered) overrun = !tail_is_fresh(at, gone.bytes);
    if (!pinned) {
      --usage_.allocations;
      usage_.bytes -= gone.bytes;
      freed_[gone.begin] = gone;
      map_fixed(at, whole_pages(gone.bytes), PROT_NONE);
    } else if (!gone.registered) {
      munmap(address, whole_pages(gone.bytes));
    }
  }
  if (overrun)
    fault(fmt::format("bytes behind the end of allocation {} ({} bytes) were written", gone.number,
                      gone.bytes));
  return true;
}

void Memory::release_all() {
  std::map<std::uintptr_t, Allocation> all;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    all = live_;
  }
  for (const auto& [begin, allocation] : all)
    release(reinterpret_cast<void*>(begin), allocation.pinned);
  const std::lock_guard<std::mutex> lock(mutex_);
  numbers_ = 0;
}

const Allocation* Memory::lookup(std::uintptr_t address) const {
  auto after = live_.upper_bound(address);
  if (after == live_.begin()) return nullptr;
  const Allocation& candidate = std::prev(after)->second;
  // The end itself belongs to it: an empty range may begin there.
  return address - candidate.begin <= candidate.bytes ? &candidate : nullptr;
}

Allocation Memory::find(const void* begin) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const Allocation* const found = lookup(address);
  return found != nullptr && address - found->begin < found->bytes ? *found : Allocation{};
}

Allocation Memory::holding(const void* begin, std::size_t bytes) const {
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const Allocation* const found = lookup(address);
    if (found != nullptr && bytes <= found->bytes - (address - found->begin)) return *found;
  }
  throw BadAddress("there is no memory at " + describe(begin, bytes));
}

Memory::Usage Memory::usage() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return usage_;
}

void Memory::clear_peak() {
  const std::lock_guard<std::mutex> lock(mutex_);
  usage_.peak_bytes = usage_.bytes;
}

std::size_t Memory::used(int device) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  std::size_t sum = 0;
  for (const auto& [begin, allocation] : live_)
    if (!allocation.pinned && allocation.device == device) sum += allocation.bytes;
  return sum;
}

std::string Memory::describe(const void* begin, std::size_t bytes) const {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto address = reinterpret_cast<std::uintptr_t>(begin);
  const auto text = [&](const Allocation& a, const char* state) {
    const std::uintptr_t offset = address - a.begin;
    return fmt::format("bytes [{}, {}) of {} {} ({} bytes{})", offset, offset + bytes,
                       a.pinned ? "pinned allocation" : "allocation", a.number, a.bytes, state);
  };
  if (const Allocation* const found = lookup(address)) return text(*found, "");
  const auto after = freed_.upper_bound(address);
  if (after != freed_.begin()) {
    const Allocation& gone = std::prev(after)->second;
    if (address - gone.begin < gone.bytes) return text(gone, ", freed");
  }
  return fmt::format("{} ({} bytes), which is in no allocation", begin, bytes);
}

}  // namespace reprise::test::cuda
