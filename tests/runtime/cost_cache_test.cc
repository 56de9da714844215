#include "runtime/cost_cache.h"

#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "base/error.h"
#include "tests/runtime/temp_folder.h"

namespace reprise::runtime {
namespace {

using ::testing::HasSubstr;
using testing::read_file;
using testing::TempFolder;
using testing::write_file;

CostTable table_of(std::string device, std::map<std::string, NodeCost> nodes) {
  return {.device = std::move(device), .nodes = std::move(nodes)};
}

// Sets a variable of the environment, and puts back what was there.
class Variable {
 public:
  Variable(const char* name, const char* value) : name_(name) {
    const char* before = std::getenv(name);
    if (before != nullptr) before_ = before;
    if (value == nullptr) {
      unsetenv(name);
    } else {
      setenv(name, value, 1);
    }
  }
  ~Variable() {
    if (before_) {
      setenv(name_, before_->c_str(), 1);
    } else {
      unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> before_;
};

TEST(CostCache, LiesWhereTheEnvironmentSays) {
  const Variable home("HOME", "/home/someone");
  {
    const Variable cache("XDG_CACHE_HOME", "/var/caches");
    EXPECT_EQ(cost_cache_folder(), "/var/caches/reprise/costs");
  }
  for (const char* none : {static_cast<const char*>(nullptr), "", "relative/path"}) {
    const Variable cache("XDG_CACHE_HOME", none);
    EXPECT_EQ(cost_cache_folder(), "/home/someone/.cache/reprise/costs");
    const Variable homeless("HOME", nullptr);
    EXPECT_EQ(cost_cache_folder(), std::nullopt);
  }
}

TEST(CostCache, DevicesHaveFilesOfTheirOwn) {
  const auto file = cost_cache_file("/c", "Some CPU @ 2.0GHz; lib 2.6, 2 threads");
  EXPECT_THAT(file.string(), ::testing::StartsWith("/c/Some-CPU-2.0GHz-lib-2.6-2-threads-"));
  EXPECT_NE(file, cost_cache_file("/c", "Some CPU @ 2.0GHz, lib 2.6; 2 threads"));
  EXPECT_NE(file, cost_cache_file("/c", "Some CPU @ 2.0GHz; lib 2.6, 4 threads"));
  EXPECT_LT(cost_cache_file("/c", std::string(5000, 'x')).filename().string().size(), 120U);
  EXPECT_THAT(cost_cache_file("/c", "/../").filename().string(), ::testing::StartsWith("..-"));
  EXPECT_EQ(cost_cache_file("/c", "a/../../b").parent_path(), "/c");
}

TEST(CostCache, AddsNodesAndRenewsThem) {
  TempFolder folder;
  const auto file = folder.path() / "made" / "on" / "demand" / "box.json";
  EXPECT_EQ(read_cost_cache(file, "box").table, std::nullopt);
  EXPECT_EQ(read_cost_cache(file, "box").problem, "");
  EXPECT_EQ(add_to_cost_cache(file, table_of("box", {{"a", {1, 10}}, {"b", {2, 10}}})), "");
  EXPECT_EQ(add_to_cost_cache(file, table_of("box", {{"b", {3, 20}}, {"c", {4, 20}}})), "");
  EXPECT_EQ(read_cost_cache(file, "box").table,
            table_of("box", {{"a", {1, 10}}, {"b", {3, 20}}, {"c", {4, 20}}}));
}

TEST(CostCache, WhatItCannotUseIsSaidAndReplaced) {
  TempFolder folder;
  const auto file = folder / "box.json";
  const CostTable table = table_of("box", {{"a", {1, 10}}});
  for (const std::string& content :
       std::vector<std::string>{"", "{", "[]", R"({"format":1,"device":"box","cost_ns":{}})"}) {
    write_file(file, content);
    const CachedCosts cached = read_cost_cache(file, "box");
    EXPECT_EQ(cached.table, std::nullopt);
    EXPECT_THAT(cached.problem, HasSubstr("box.json"));
    EXPECT_THAT(add_to_cost_cache(file, table), HasSubstr("box.json"));
    EXPECT_EQ(read_cost_cache(file, "box").table, table);
  }
  const CachedCosts foreign = read_cost_cache(file, "another box");
  EXPECT_EQ(foreign.table, std::nullopt);
  EXPECT_THAT(foreign.problem, HasSubstr("measured on 'box', not on 'another box'"));
}

TEST(CostCache, FoldersThatCannotBeMadeAreNamed) {
  TempFolder folder;
  write_file(folder / "plain", "");
  const std::string message = testing::error_of(
      [&] { (void)add_to_cost_cache(folder.path() / "plain" / "box.json", table_of("box", {})); },
      base::ErrorKind::kDevice);
  EXPECT_THAT(message, HasSubstr("plain"));
}

// Eight processes add one node each, at once and five times over: none may be lost, and whoever
// reads meanwhile finds a whole file.
TEST(CostCache, ProcessesThatAddAtOnceLoseNothing) {
  TempFolder folder;
  const auto file = folder / "box.json";
  constexpr int kProcesses = 8;
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      int code = 0;
      for (int time = 1; time <= 5 && code == 0; ++time) {
        const auto table =
            table_of("box", {{std::string(1, static_cast<char>('a' + i)), {i, time}}});
        if (!add_to_cost_cache(file, table).empty()) code = 1;
        if (!read_cost_cache(file, "box").problem.empty()) code = 2;
      }
      _exit(code);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  const auto cached = read_cost_cache(file, "box");
  ASSERT_TRUE(cached.table.has_value()) << cached.problem;
  EXPECT_EQ(cached.table->nodes.size(), static_cast<std::size_t>(kProcesses));
  for (const auto& [key, cost] : cached.table->nodes) EXPECT_EQ(cost.measured_at, 5) << key;
}

}  // namespace
}  // namespace reprise::runtime
