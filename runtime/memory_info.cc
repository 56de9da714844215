#include "runtime/memory_info.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>

#include "fmt/format.h"

namespace reprise::runtime {
namespace {

namespace fs = std::filesystem;

constexpr Bytes kNoLimit = std::numeric_limits<Bytes>::max();

// A file that holds one number; "max" and anything else that is no number has none.
std::optional<Bytes> read_number(const fs::path& file) {
  std::ifstream stream(file);
  Bytes number = 0;
  if (!(stream >> number) || number < 0) return std::nullopt;
  return number;
}

// The number behind `key` in lines of "key number".
std::optional<Bytes> read_field(const fs::path& file, std::string_view key) {
  std::ifstream stream(file);
  std::string line;
  while (std::getline(stream, line)) {
    std::istringstream words(line);
    std::string word;
    Bytes number = 0;
    if (words >> word >> number && word == key) return number;
  }
  return std::nullopt;
}

// What one control group leaves. Its use counts file cache that the kernel gives back when asked.
Bytes left_in_group(const fs::path& group, const char* limit_file, const char* usage_file,
                    std::string_view cache_field) {
  const auto limit = read_number(group / limit_file);
  const auto usage = read_number(group / usage_file);
  if (!limit || !usage) return kNoLimit;
  const Bytes cache = read_field(group / "memory.stat", cache_field).value_or(0);
  return std::max<Bytes>(0, *limit - std::max<Bytes>(0, *usage - cache));
}

// The least that a group and its ancestors, up to the mount point, leave.
Bytes left_in_groups(const fs::path& mount, const std::string& group, const char* limit_file,
                     const char* usage_file, std::string_view cache_field) {
  Bytes left = left_in_group(mount, limit_file, usage_file, cache_field);
  fs::path at = fs::path(group).relative_path();
  for (; !at.empty(); at = at.parent_path()) {
    left = std::min(left, left_in_group(mount / at, limit_file, usage_file, cache_field));
  }
  return left;
}

// Lines of /proc/self/cgroup are "0::/path" (v2) or "9:memory:/path" (v1).
Bytes left_in_control_groups() {
  std::ifstream stream("/proc/self/cgroup");
  std::string line;
  Bytes left = kNoLimit;
  while (std::getline(stream, line)) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    const std::string path = line.substr(second + 1);
    if (controllers == ",,") {
      left = std::min(left, left_in_groups("/sys/fs/cgroup", path, "memory.max", "memory.current",
                                           "inactive_file"));
    } else if (controllers.find(",memory,") != std::string::npos) {
      left = std::min(left, left_in_groups("/sys/fs/cgroup/memory", path, "memory.limit_in_bytes",
                                           "memory.usage_in_bytes", "total_inactive_file"));
    }
  }
  return left;
}

}  // namespace

Bytes resident_bytes() {
  // Pages: total size, resident, shared, ...
  std::ifstream stream("/proc/self/statm");
  Bytes total = 0;
  Bytes resident = 0;
  stream >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

Bytes peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::max(Bytes{usage.ru_maxrss} * base::kKiB, resident_bytes());
}

Bytes available_memory_bytes() {
  const auto kibibytes = read_field("/proc/meminfo", "MemAvailable:");
  const Bytes machine = kibibytes ? *kibibytes * base::kKiB : kNoLimit;
  return std::min(machine, left_in_control_groups());
}

}  // namespace reprise::runtime
