// Saving is atomic: killed writers, full disks and rivals leave a whole file at the path.

#include "runtime/atomic_file.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <signal.h>
#include <span>
#include <string>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "runtime/safetensors.h"
#include "tests/runtime/temp_folder.h"

namespace reprise::runtime {
namespace {

using testing::error_of;
using ::testing::HasSubstr;
using testing::read_file;
using testing::TempFolder;
using testing::write_file;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}

std::size_t files_in(const std::filesystem::path& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

// Version v: two tensors of which every byte is v.
TensorFile version(int v, std::size_t bytes) {
  TensorFile file;
  file.metadata = {{"version", std::to_string(v)}};
  for (const char* name : {"a", "b"}) {
    file.tensors.push_back({name,
                            graph::DType::kU8,
                            {static_cast<graph::Dim>(bytes)},
                            std::vector<std::byte>(bytes, static_cast<std::byte>(v))});
  }
  return file;
}

void expect_whole(const std::filesystem::path& path) {
  const TensorFile file = read_safetensors(path);
  const auto v = static_cast<std::byte>(std::stoi(file.metadata.at("version")));
  for (const TensorEntry& tensor : file.tensors) {
    EXPECT_EQ(std::count(tensor.data.begin(), tensor.data.end(), v),
              static_cast<std::ptrdiff_t>(tensor.data.size()));
  }
}

// Runs `body` in a child process, whose exit code is 0 when it returns true.
template <class Body>
pid_t in_child(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body() ? 0 : 1);
  return child;
}

int exit_code(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(AtomicFile, AppearsOnlyWhenCommitted) {
  TempFolder folder;
  write_file(folder / "a", "old");
  {
    AtomicFile file(folder / "a");
    file.write(bytes_of("new"));
    EXPECT_EQ(read_file(folder / "a"), "old");
  }
  EXPECT_EQ(read_file(folder / "a"), "old");
  EXPECT_EQ(files_in(folder.path()), 1u);
  AtomicFile file(folder / "a");
  file.write(bytes_of("ne"));
  file.write(bytes_of("w"));
  file.commit();
  EXPECT_EQ(read_file(folder / "a"), "new");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(AtomicFile, WorksForAPathWithoutAFolder) {
  TempFolder folder;
  const auto before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  {
    AtomicFile file("bare");
    file.commit();
  }
  std::filesystem::current_path(before);
  EXPECT_TRUE(std::filesystem::exists(folder / "bare"));
}

TEST(AtomicFile, NamesPathAndReasonOfAFailure) {
  TempFolder folder;
  const auto device_error = [](const std::filesystem::path& path) {
    return error_of(
        [&] {
          AtomicFile file(path);
          file.commit();
        },
        base::ErrorKind::kDevice);
  };
  EXPECT_THAT(device_error(folder / "no/such/folder"), HasSubstr("No such file or directory"));
  std::filesystem::create_directory(folder / "taken");
  write_file(folder / "taken/inside", "x");
  EXPECT_THAT(device_error(folder / "taken"), HasSubstr("rename"));
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(AtomicFile, ASaverKilledAtRandomMomentsNeverLeavesABrokenFile) {
  TempFolder folder;
  const auto path = folder / "state.safetensors";
  constexpr std::size_t kBytes = 300'000;
  write_safetensors(path, version(0, kBytes));
  std::mt19937 random(7);
  for (int round = 0; round < 40; ++round) {
    const pid_t child = in_child([&] {
      for (int v = 1;; v = v % 250 + 1) write_safetensors(path, version(v, kBytes));
      return true;
    });
    ASSERT_GT(child, 0);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 15'000));
    kill(child, SIGKILL);
    EXPECT_EQ(exit_code(child), -SIGKILL);
    expect_whole(path);
  }
  write_safetensors(path, version(1, 10));
  EXPECT_EQ(files_in(folder.path()), 1u) << "the next writer removes what killed ones left";
}

TEST(AtomicFile, LeavesTheHiddenFileOfALivingWriterAlone) {
  TempFolder folder;
  AtomicFile slow(folder / "a");
  slow.write(bytes_of("slow"));
  {
    AtomicFile fast(folder / "a");
    fast.write(bytes_of("fast"));
    fast.commit();
  }
  EXPECT_EQ(read_file(folder / "a"), "fast");
  slow.commit();
  EXPECT_EQ(read_file(folder / "a"), "slow");
}

TEST(AtomicFile, WritersOfOnePathNeverMix) {
  TempFolder folder;
  const auto path = folder / "state.safetensors";
  std::vector<pid_t> children;
  for (int writer = 1; writer <= 4; ++writer) {
    children.push_back(in_child([&] {
      for (int i = 0; i < 20; ++i) write_safetensors(path, version(writer, 50'000));
      return true;
    }));
  }
  for (const pid_t child : children) EXPECT_EQ(exit_code(child), 0);
  expect_whole(path);
  EXPECT_EQ(files_in(folder.path()), 1u);
}

TEST(AtomicFile, AFullDiskIsAnErrorAndTheOldFileStays) {
  TempFolder folder;
  const auto path = folder / "state.safetensors";
  write_safetensors(path, version(1, 1000));
  // In a child: no file may grow beyond 64 KiB there, and the signal for it is off.
  const pid_t child = in_child([&] {
    signal(SIGXFSZ, SIG_IGN);
    const rlimit limit{65'536, 65'536};
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return false;
    const std::string message =
        error_of([&] { write_safetensors(path, version(2, 100'000)); }, base::ErrorKind::kDevice);
    return message.find(path.string()) != std::string::npos &&
           message.find("File too large") != std::string::npos;
  });
  EXPECT_EQ(exit_code(child), 0);
  EXPECT_EQ(read_safetensors(path).metadata.at("version"), "1");
  EXPECT_EQ(files_in(folder.path()), 1u);
}

}  // namespace
}  // namespace reprise::runtime
