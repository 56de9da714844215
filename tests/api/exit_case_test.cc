// The end of a process that never tidied up (tests/programs/exit_program.cc). There is no
// shutdown() to forget: a session's destructor gives back all that it holds, whenever it runs.

#include <gtest/gtest.h>
#include <spawn.h>
#include <string>
#include <sys/wait.h>

extern char** environ;

namespace reprise::api {
namespace {

int exit_code_of(const std::string& mode) {
  std::string program = REPRISE_EXIT_PROGRAM;
  std::string word = mode;
  char* words[] = {program.data(), word.data(), nullptr};
  pid_t child = 0;
  if (posix_spawn(&child, program.c_str(), nullptr, nullptr, words, environ) != 0) return -1;
  int status = 0;
  if (waitpid(child, &status, 0) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void expect_fifty_clean_ends(const std::string& mode) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  constexpr int kTimes = 5;
#else
  constexpr int kTimes = 50;
#endif
  for (int i = 0; i < kTimes; ++i) ASSERT_EQ(exit_code_of(mode), 0) << "end " << i;
}

TEST(ExitCase, GlobalSessionsAndThoseOfThreadsEndWithMain) {
  expect_fifty_clean_ends("return");
}

TEST(ExitCase, AWorkerMayEndTheProcess) {
  expect_fifty_clean_ends("exit");
}

}  // namespace
}  // namespace reprise::api
