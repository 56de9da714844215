#include "runtime/snapshot.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "runtime/atomic_file.h"
#include "zlib.h"

// A snapshot is a safetensors file; all that is not a tensor is a string in its metadata:
//
//   reprise.format  reprise.kind  reprise.steps  reprise.epoch  reprise.batch_in_epoch reprise.seed
//   role/<tensor>   what the tensor is          config/<key>   the caller's own
//   reprise.crc32   of all the rest

namespace reprise::runtime {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kFormat = "1";
constexpr std::string_view kNamePrefix = "snapshot-";
constexpr std::string_view kNameSuffix = ".safetensors";
constexpr std::string_view kRole = "role/";
constexpr std::string_view kConfig = "config/";
constexpr const char* kChecksum = "reprise.crc32";

// The position's fields under their names in the file; shared by writer and reader.
template <class Position, class Visit>
void visit_position(Position& position, Visit visit) {
  visit("reprise.steps", position.steps);
  visit("reprise.epoch", position.epoch);
  visit("reprise.batch_in_epoch", position.batch_in_epoch);
  visit("reprise.seed", position.seed);
}

std::optional<std::uint64_t> parse_number(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || text.empty()) return std::nullopt;
  return number;
}

bool starts_with(std::string_view text, std::string_view prefix) {
  return text.substr(0, prefix.size()) == prefix;
}

struct Found {
  std::uint64_t steps = 0;
  fs::path path;
};

// CRC-32 over metadata and tensors in the order of their names, without itself: disks and copies
// lose bits in silence.
std::string checksum(const TensorFile& file) {
  uLong crc = crc32(0, nullptr, 0);
  const auto add = [&](const void* bytes, std::size_t count) {
    crc = crc32_z(crc, static_cast<const Bytef*>(bytes), count);
  };
  const auto add_text = [&](std::string_view text) {
    const std::uint64_t size = text.size();  // keeps neighbours apart
    add(&size, sizeof size);
    add(text.data(), text.size());
  };
  for (const auto& [key, value] : file.metadata) {
    if (key == kChecksum) continue;
    add_text(key);
    add_text(value);
  }
  std::map<std::string_view, const TensorEntry*> tensors;
  for (const TensorEntry& tensor : file.tensors) tensors.emplace(tensor.name, &tensor);
  for (const auto& [name, tensor] : tensors) {
    add_text(name);
    add_text(graph::dtype_name(tensor->dtype));
    add_text(graph::shape_text(tensor->shape));
    add(tensor->data.data(), tensor->data.size());
  }
  return fmt::format("{:08x}", crc);
}

// The snapshots of a folder, fewest steps first.
std::vector<Found> snapshots_in(const fs::path& folder) {
  std::vector<Found> found;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    const std::size_t around = kNamePrefix.size() + kNameSuffix.size();
    if (name.size() <= around || !starts_with(name, kNamePrefix) ||
        std::string_view(name).substr(name.size() - kNameSuffix.size()) != kNameSuffix) {
      continue;
    }
    const auto steps =
        parse_number(std::string_view(name).substr(kNamePrefix.size(), name.size() - around));
    if (steps) found.push_back({*steps, entry.path()});
  }
  std::sort(found.begin(), found.end(),
            [](const Found& a, const Found& b) { return a.steps < b.steps; });
  return found;
}

void remove_older_snapshots(const fs::path& folder, std::uint64_t steps) {
  std::vector<Found> older = snapshots_in(folder);
  std::erase_if(older, [&](const Found& found) { return found.steps >= steps; });
  // The newest of them stays, should the one just written turn out unreadable.
  if (!older.empty()) older.pop_back();
  std::error_code ignored;
  for (const Found& found : older) fs::remove(found.path, ignored);
  remove_abandoned_files(folder, kNamePrefix);
}

TensorFile file_of(const Snapshot& snapshot, bool weights_only) {
  TensorFile file;
  file.metadata.emplace("reprise.format", kFormat);
  file.metadata.emplace("reprise.kind", weights_only ? "weights" : "snapshot");
  visit_position(snapshot.position, [&](const char* name, std::uint64_t value) {
    file.metadata[name] = std::to_string(value);
  });
  for (const auto& [key, value] : snapshot.config)
    file.metadata[std::string(kConfig) + key] = value;
  for (const SnapshotTensor& entry : snapshot.tensors) {
    if (weights_only && entry.role == graph::Role::kOptimizerState) continue;
    file.metadata[std::string(kRole) + entry.tensor.name] = graph::role_name(entry.role);
    file.tensors.push_back(entry.tensor);
  }
  file.metadata[kChecksum] = checksum(file);
  return file;
}

// Turns a file back into a snapshot; every fault names the file.
class SnapshotReader {
 public:
  explicit SnapshotReader(const fs::path& path)
      : source_(path.string()), file_(read_safetensors(path)) {}

  Snapshot read() {
    check_kind();
    Snapshot snapshot;
    visit_position(snapshot.position, [&](const char* name, std::uint64_t& value) {
      const auto number = parse_number(field(name));
      if (!number) fail("{} is '{}', not a number", name, field(name));
      value = *number;
    });
    for (const auto& [key, value] : file_.metadata) {
      if (starts_with(key, kConfig)) snapshot.config[key.substr(kConfig.size())] = value;
    }
    for (const TensorEntry& tensor : file_.tensors) (void)role_of(tensor.name);
    check_bits();  // last: what is wrong in a nameable way is named
    for (TensorEntry& tensor : file_.tensors) {
      const graph::Role role = role_of(tensor.name);
      snapshot.tensors.push_back({std::move(tensor), role});
    }
    return snapshot;
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw base::input_error("'{}': {}", source_, fmt::format(format, std::forward<Args>(args)...));
  }

  const std::string& field(const std::string& name) const {
    const auto found = file_.metadata.find(name);
    if (found == file_.metadata.end()) fail("metadata '{}' is missing", name);
    return found->second;
  }

  void check_kind() const {
    if (file_.metadata.count("reprise.format") == 0) fail("no snapshot: it was made elsewhere");
    if (field("reprise.format") != kFormat) {
      fail("snapshot format {}; this program reads format {}", field("reprise.format"), kFormat);
    }
    if (field("reprise.kind") != "snapshot") {
      fail("holds {}, not a snapshot to resume from", field("reprise.kind"));
    }
  }

  void check_bits() const {
    const std::string found = checksum(file_);
    if (found == field(kChecksum)) return;
    fail("damaged: its checksum is {}, its contents give {}; resume from an older snapshot",
         field(kChecksum), found);
  }

  graph::Role role_of(const std::string& tensor) const {
    const auto found = file_.metadata.find(std::string(kRole) + tensor);
    if (found == file_.metadata.end()) fail("tensor '{}' has no role", tensor);
    for (const graph::Role role :
         {graph::Role::kParameter, graph::Role::kOptimizerState, graph::Role::kState}) {
      if (found->second == graph::role_name(role)) return role;
    }
    fail("tensor '{}' has role '{}'", tensor, found->second);
  }

  std::string source_;
  TensorFile file_;
};

}  // namespace

fs::path save_snapshot(const fs::path& folder, const Snapshot& snapshot) {
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) {
    throw base::device_error("cannot make folder '{}': {}", folder.string(), error.message());
  }
  const fs::path path =
      folder / fmt::format("{}{}{}", kNamePrefix, snapshot.position.steps, kNameSuffix);
  write_safetensors(path, file_of(snapshot, false));
  write_safetensors(folder / "weights.safetensors", file_of(snapshot, true));
  remove_older_snapshots(folder, snapshot.position.steps);
  return path;
}

std::optional<fs::path> newest_snapshot(const fs::path& folder) {
  const std::vector<Found> found = snapshots_in(folder);
  if (found.empty()) return std::nullopt;
  return found.back().path;
}

std::vector<fs::path> snapshots_newest_first(const fs::path& folder) {
  std::vector<Found> found = snapshots_in(folder);
  std::vector<fs::path> paths;
  paths.reserve(found.size());
  for (auto at = found.rbegin(); at != found.rend(); ++at) paths.push_back(std::move(at->path));
  return paths;
}

Snapshot load_latest_snapshot(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return SnapshotReader(path).read();
  const auto newest = newest_snapshot(path);
  if (!newest) {
    throw base::input_error("folder '{}' has no {}<steps>{}", path.string(), kNamePrefix,
                            kNameSuffix);
  }
  return SnapshotReader(*newest).read();
}

const TensorEntry& find_tensor(const Snapshot& snapshot, std::string_view name, graph::DType dtype,
                               const graph::Shape& shape, std::string_view source) {
  for (const SnapshotTensor& entry : snapshot.tensors) {
    const TensorEntry& tensor = entry.tensor;
    if (tensor.name != name) continue;
    if (tensor.dtype != dtype || tensor.shape != shape) {
      throw base::input_error("'{}': tensor '{}' is {}{}; the model has {}{}", source, name,
                              graph::dtype_name(tensor.dtype), graph::shape_text(tensor.shape),
                              graph::dtype_name(dtype), graph::shape_text(shape));
    }
    return tensor;
  }
  throw base::input_error("'{}': tensor '{}' is missing; the model has it with shape {}", source,
                          name, graph::shape_text(shape));
}

}  // namespace reprise::runtime
