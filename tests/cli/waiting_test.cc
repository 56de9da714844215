#include "cli/waiting.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <thread>

namespace reprise::cli {
namespace {

using std::chrono::milliseconds;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;

// What is said while `work` takes its time.
std::string said(bool terminal, Waiting::Times times, milliseconds work) {
  std::ostringstream out, err;
  const Context context{.out = out, .err = err, .err_is_terminal = terminal};
  Waiting waiting(context, "planning mlp", times);
  std::this_thread::sleep_for(work);
  waiting.stop();
  EXPECT_EQ(out.str(), "");
  return err.str();
}

TEST(Waiting, SaysNothingWhenItIsShort) {
  EXPECT_EQ(said(true, {}, milliseconds(1)), "");
  EXPECT_EQ(said(false, {}, milliseconds(1)), "");
}

TEST(Waiting, OnATerminalOneLineIsDrawnOverAndOverAndWiped) {
  const std::string text =
      said(true, {.first_drawn = milliseconds(1), .redrawn = milliseconds(1)}, milliseconds(200));
  EXPECT_THAT(text, HasSubstr("\rplanning mlp: 0:00\x1b[K\rplanning mlp: 0:00\x1b[K"));
  EXPECT_THAT(text, EndsWith("\r\x1b[K"));
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

// After 1, 2, 4, 8, ... milliseconds: not more than ten lines in a second.
TEST(Waiting, ElsewhereLinesComeLessAndLessOften) {
  const std::string text = said(false, {.first_line = milliseconds(1)}, milliseconds(200));
  const auto lines = std::count(text.begin(), text.end(), '\n');
  EXPECT_GE(lines, 2);
  EXPECT_LE(lines, 20);
  EXPECT_THAT(text.substr(0, text.find('\n')), MatchesRegex("planning mlp: [0-9]+:[0-9]+"));
}

TEST(Waiting, TellsTheNewestAndEndsOnce) {
  std::ostringstream out, err;
  const Context context{.out = out, .err = err};
  Waiting waiting(context, "point 1", {.first_line = milliseconds(400)});
  waiting.tell("point 2");
  std::this_thread::sleep_for(milliseconds(600));
  waiting.stop();
  waiting.stop();
  EXPECT_THAT(err.str(), HasSubstr("point 2: 0:"));
  EXPECT_EQ(err.str().find("point 1"), std::string::npos);
}

TEST(Waiting, HandsOnWhatTheWorkGives) {
  std::ostringstream out, err;
  const Context context{.out = out, .err = err};
  EXPECT_EQ(while_waiting(context, "counting", [] { return 7; }), 7);
  EXPECT_THROW(while_waiting(context, "counting", []() -> int { throw 7; }), int);
}

}  // namespace
}  // namespace reprise::cli
