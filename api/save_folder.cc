#include "api/save_folder.h"

#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <system_error>
#include <unistd.h>

#include "base/error.h"
#include "runtime/snapshot.h"

namespace reprise::api {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLockName = "reprise.lock";

// The snapshot that --resume takes for this path.
fs::path snapshot_behind(const fs::path& path) {
  std::error_code ignored;
  if (!fs::is_directory(path, ignored)) return path;
  return runtime::newest_snapshot(path).value_or(path);
}

}  // namespace

SaveFolder::SaveFolder(fs::path folder) : folder_(std::move(folder)) {
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error) {
    throw base::input_error("--save '{}': cannot make the folder: {}", folder_.string(),
                            error.message());
  }
  const fs::path file = folder_ / kLockName;
  lock_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) {
    throw base::input_error("--save '{}': cannot write there: '{}': {}", folder_.string(),
                            file.string(), std::generic_category().message(errno));
  }
  // File systems without locks give other errors; there the user takes care.
  if (flock(lock_, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return;
  close(lock_);
  throw base::input_error(
      "--save '{}': another run is saving there ('{}' is locked); wait for its end or save into "
      "another folder",
      folder_.string(), file.string());
}

SaveFolder::~SaveFolder() {
  close(lock_);
}

std::optional<std::string> SaveFolder::warning(const std::optional<fs::path>& resumed_from) const {
  const auto newest = runtime::newest_snapshot(folder_);
  if (!newest) return std::nullopt;
  std::error_code ignored;
  if (resumed_from && fs::equivalent(*newest, snapshot_behind(*resumed_from), ignored)) {
    return std::nullopt;
  }
  return fmt::format(
      "--save '{0}' already holds snapshots of another run, the newest '{1}'; --resume {0} takes "
      "the newest one, whichever run it is of: save into a folder of its own, or remove the old "
      "ones",
      folder_.string(), newest->string());
}

}  // namespace reprise::api
