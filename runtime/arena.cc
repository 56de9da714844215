#include "runtime/arena.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "base/error.h"

namespace reprise::runtime {
namespace {

// Huge pages start at multiples of their size only.
constexpr Bytes kHugePageBytes = 2 * base::kMiB;

[[noreturn]] void fail(Bytes bytes, Bytes available, std::string_view reason) {
  throw base::device_error(
      "cannot reserve an arena of {} bytes ({}): {}; {} bytes ({}) are available: plan with a "
      "budget "
      "below that",
      bytes, base::format_bytes(bytes), reason, available, base::format_bytes(available));
}

std::byte* align_pointer(void* pointer, Bytes alignment) {
  const auto address = reinterpret_cast<std::uintptr_t>(pointer);
  const auto above = static_cast<Bytes>(address % static_cast<std::uintptr_t>(alignment));
  return static_cast<std::byte*>(pointer) + (above == 0 ? 0 : alignment - above);
}

}  // namespace

Arena::Arena(Bytes bytes, std::shared_ptr<kernels::DeviceMemory> device)
    : bytes_(bytes), device_(std::move(device)) {
  REPRISE_CHECK(bytes >= 0, "an arena of {} bytes", bytes);
  if (device_) {
    data_ = device_->reserve(bytes);
  } else {
    reserve_pages();
  }
}

void Arena::reserve_pages() {
  const Bytes available = available_memory_bytes();
  // Touching more than there is would not fail but get a process killed, maybe another one.
  if (bytes_ > available) fail(bytes_, available, "not enough memory");
  const Bytes page = sysconf(_SC_PAGESIZE);
  const Bytes pages = base::align_up(bytes_, page);
  mapping_bytes_ = static_cast<std::size_t>(pages + page + kHugePageBytes);
  mapping_ = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping_ == MAP_FAILED) fail(bytes_, available, std::strerror(errno));
  data_ = align_pointer(mapping_, kHugePageBytes);
  if (pages == 0) return;
  // What lies behind the pages stays inaccessible: the guard.
  if (mprotect(data_, static_cast<std::size_t>(pages), PROT_READ | PROT_WRITE) != 0) {
    const int reason = errno;
    munmap(mapping_, mapping_bytes_);
    fail(bytes_, available, std::strerror(reason));
  }
  madvise(data_, static_cast<std::size_t>(pages), MADV_HUGEPAGE);  // a wish: refusal is fine
  for (Bytes at = 0; at < pages; at += page) {
    *static_cast<volatile std::byte*>(data_ + at) = std::byte{0};
  }
}

Arena::~Arena() {
  if (device_) {
    device_->release(data_);
  } else {
    munmap(mapping_, mapping_bytes_);
  }
}

void Arena::read(const std::byte* from, std::span<std::byte> to) const {
  if (device_) return device_->read(from, to);
  std::copy_n(from, to.size(), to.data());
}

void Arena::write(std::byte* to, std::span<const std::byte> from) {
  if (device_) return device_->write(to, from);
  std::copy(from.begin(), from.end(), to);
}

void Arena::fill(std::byte* to, std::byte value, Bytes bytes) {
  if (device_) return device_->fill(to, value, bytes);
  std::fill_n(to, bytes, value);
}

}  // namespace reprise::runtime
