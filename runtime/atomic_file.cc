#include "runtime/atomic_file.h"

#include <atomic>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <string_view>
#include <sys/file.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>
#include <utility>

#include "base/error.h"

namespace reprise::runtime {
namespace {

namespace fs = std::filesystem;

// The hidden files of "name" are ".name.tmp.<process>.<number>".
constexpr std::string_view kMark = ".tmp.";

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

// Removes a hidden file unless its writer lives.
void remove_if_abandoned(const fs::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (descriptor < 0) return;
  if (flock(descriptor, LOCK_EX | LOCK_NB) == 0) unlink(file.c_str());
  close(descriptor);
}

}  // namespace

void remove_abandoned_files(const fs::path& folder, std::string_view name_prefix) {
  const std::string prefix = fmt::format(".{}", name_prefix);
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (name.rfind(prefix, 0) == 0 && name.find(kMark) != std::string::npos) {
      remove_if_abandoned(entry.path());
    }
  }
}

AtomicFile::AtomicFile(fs::path path) : path_(std::move(path)) {
  remove_abandoned_files(folder_of(path_), path_.filename().string() + std::string(kMark));
  open_temporary();
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  unlink(temporary_.c_str());
  close(descriptor_);
}

void AtomicFile::fail(const char* action) const {
  const int reason = errno;
  throw base::device_error("cannot write '{}': {}: {}", path_.string(), action,
                           std::strerror(reason));
}

void AtomicFile::open_temporary() {
  static std::atomic<unsigned> number{0};
  for (;;) {
    temporary_ = folder_of(path_) / fmt::format(".{}{}{}.{}", path_.filename().string(), kMark,
                                                getpid(), number.fetch_add(1));
    descriptor_ = open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0 && errno == EEXIST) continue;  // of a process elsewhere with our number
    if (descriptor_ < 0) fail("open");
    // Another process may have taken the file for an abandoned one before the lock was ours.
    struct stat status {};
    if (flock(descriptor_, LOCK_EX | LOCK_NB) == 0 && fstat(descriptor_, &status) == 0 &&
        status.st_nlink == 1) {
      return;
    }
    close(std::exchange(descriptor_, -1));
  }
}

void AtomicFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write");
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
}

void AtomicFile::commit() {
  if (fsync(descriptor_) != 0) fail("sync");
  if (rename(temporary_.c_str(), path_.c_str()) != 0) fail("rename");
  close(std::exchange(descriptor_, -1));
  // The new name must survive a power cut too.
  const int folder = open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) fail("open folder");
  const int synced = fsync(folder);
  const int reason = errno;
  close(folder);
  errno = reason;
  if (synced != 0 && reason != EINVAL) fail("sync folder");  // EINVAL: a file system without it
}

}  // namespace reprise::runtime
