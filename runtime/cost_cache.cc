#include "runtime/cost_cache.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <fcntl.h>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

#include "base/error.h"

namespace reprise::runtime {
namespace {

namespace fs = std::filesystem;

fs::path absolute_from(const char* variable) {
  const char* value = std::getenv(variable);
  const fs::path path = value == nullptr ? fs::path() : fs::path(value);
  return path.is_absolute() ? path : fs::path();
}

// FNV-1a: the same on every machine and in every release, unlike std::hash.
std::uint32_t hash_of(const std::string& text) {
  std::uint32_t hash = 2166136261U;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return hash;
}

// Held by whoever changes the file. A file of its own, since the other one is replaced. Without a
// lock (a file system that knows none) the worst is that one of two writers is forgotten.
class Lock {
 public:
  explicit Lock(const fs::path& path)
      : descriptor_(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666)) {
    while (descriptor_ >= 0 && flock(descriptor_, LOCK_EX) != 0 && errno == EINTR) {
    }
  }
  ~Lock() {
    if (descriptor_ >= 0) close(descriptor_);
  }
  Lock(const Lock&) = delete;
  Lock& operator=(const Lock&) = delete;

 private:
  int descriptor_;
};

}  // namespace

std::optional<fs::path> cost_cache_folder() {
  fs::path base = absolute_from("XDG_CACHE_HOME");
  if (base.empty()) {
    base = absolute_from("HOME");
    if (base.empty()) return std::nullopt;
    base /= ".cache";
  }
  return base / "reprise" / "costs";
}

fs::path cost_cache_file(const fs::path& folder, const std::string& device) {
  constexpr std::size_t kLongest = 96;  // file names end at 255 bytes, hidden ones are longer
  std::string name;
  for (const char c : device) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.';
    if (plain) name += c;
    if (!plain && !name.empty() && name.back() != '-') name += '-';
  }
  name.resize(std::min(name.size(), kLongest));
  return folder / fmt::format("{}-{:08x}.json", name.empty() ? "device" : name, hash_of(device));
}

CachedCosts read_cost_cache(const fs::path& file, const std::string& device) {
  std::error_code ignored;
  if (!fs::exists(file, ignored)) return {};
  try {
    CostTable table = load_costs(file);
    if (table.device != device) {
      return {.table = {},
              .problem = fmt::format("'{}' was measured on '{}', not on '{}'", file.string(),
                                     table.device, device)};
    }
    return {.table = std::move(table), .problem = {}};
  } catch (const base::Error& error) {
    return {.table = {}, .problem = error.what()};
  }
}

std::string add_to_cost_cache(const fs::path& file, const CostTable& table) {
  std::error_code failed;
  fs::create_directories(file.parent_path(), failed);
  if (failed) {
    throw base::device_error("cannot make the folder '{}': {}", file.parent_path().string(),
                             failed.message());
  }
  const Lock lock(fs::path(file.string() + ".lock"));
  CachedCosts before = read_cost_cache(file, table.device);
  CostTable merged = before.table ? std::move(*before.table) : CostTable{};
  merged.device = table.device;
  for (const auto& [key, cost] : table.nodes) merged.nodes.insert_or_assign(key, cost);
  save_costs(file, merged);
  return before.problem;
}

}  // namespace reprise::runtime
