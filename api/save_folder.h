#pragma once

// The folder that one run saves into: made, locked and looked at before anything long begins.

#include <filesystem>
#include <optional>
#include <string>

namespace reprise::api {

// Holds the folder for one run, by a lock on `folder`/reprise.lock that the system takes back when
// the process ends, however it ends. The file stays: to remove it would break the lock of another.
class SaveFolder {
 public:
  // Makes the folder. Error(kInput) naming it when that fails, when nothing can be written there,
  // or when another run holds it.
  explicit SaveFolder(std::filesystem::path folder);
  ~SaveFolder();
  SaveFolder(const SaveFolder&) = delete;
  SaveFolder& operator=(const SaveFolder&) = delete;

  // Whether the newest snapshot there is of another run: then what to know about it. A run that
  // was resumed from that snapshot goes on with it.
  [[nodiscard]] std::optional<std::string> warning(
      const std::optional<std::filesystem::path>& resumed_from) const;

 private:
  std::filesystem::path folder_;
  int lock_ = -1;
};

}  // namespace reprise::api
