#pragma once

// A file that appears at its path complete or not at all.

#include <cstddef>
#include <filesystem>
#include <span>
#include <string_view>

namespace reprise::runtime {

// Writes to a hidden file beside `path` that no other writer shares; commit() syncs it, renames it
// to `path` and syncs the folder. Without commit() the hidden file goes and `path` stays as it was.
// A process that is killed leaves its hidden file behind, which the next writer of the same path
// removes: the writer of a hidden file holds a lock on it for as long as it lives.
//
// Everything that fails (disk full, no permission, no folder) is Error(kDevice) naming path and
// reason.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::span<const std::byte> bytes);
  void commit();

 private:
  [[noreturn]] void fail(const char* action) const;  // with errno
  void open_temporary();

  std::filesystem::path path_;
  std::filesystem::path temporary_;
  int descriptor_ = -1;
};

// Removes what killed writers of files in `folder`, whose names start with `name_prefix`, left
// there. Never fails: tidying up is no reason to.
void remove_abandoned_files(const std::filesystem::path& folder, std::string_view name_prefix);

}  // namespace reprise::runtime
