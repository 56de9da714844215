#include "runtime/progress.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <string>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace reprise::runtime {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

Progress half_way() {
  return {.step = 50,
          .total_steps = 100,
          .loss = 0.43125,
          .items_per_second = 5321.4,
          .memory_bytes = 123 * base::kMiB,
          .seconds_left = 83};
}

TEST(ProgressLineText, ShowsEverythingWhereThereIsRoom) {
  // 6 + bar 26 (23 inside, 11 filled) + 13 + 14 + 11 + 10 columns
  EXPECT_EQ(progress_line(half_way(), 80),
            "50/100 [==========>            ]  loss 0.4313  5321 items/s  123.0 MiB  ETA 1:23");
  EXPECT_EQ(progress_line(half_way(), 80).size(), 80u);
  EXPECT_EQ(progress_line(half_way(), 200).size(), 84u) << "the bar has a longest form";
}

TEST(ProgressLineText, LeavesOutWhatMattersLeastAndNeverExceedsTheWidth) {
  for (int width = 0; width <= 120; ++width) {
    EXPECT_LE(progress_line(half_way(), width).size(), static_cast<std::size_t>(width));
  }
  EXPECT_THAT(progress_line(half_way(), 55), Not(HasSubstr("MiB")));
  EXPECT_THAT(progress_line(half_way(), 55), HasSubstr("items/s"));
  EXPECT_THAT(progress_line(half_way(), 40), Not(HasSubstr("items/s")));
  EXPECT_THAT(progress_line(half_way(), 40), HasSubstr("]  loss 0.4313  ETA 1:23"));
  EXPECT_EQ(progress_line(half_way(), 30), "50/100  loss 0.4313  ETA 1:23");
  EXPECT_EQ(progress_line(half_way(), 20), "50/100  ETA 1:23");
  EXPECT_EQ(progress_line(half_way(), 10), "50/100");
  EXPECT_EQ(progress_line(half_way(), 3), "50/");
}

TEST(ProgressLineText, StandsOddNumbers) {
  Progress odd = half_way();
  odd.total_steps = 0;
  odd.loss = NAN;
  odd.seconds_left = NAN;
  EXPECT_THAT(progress_line(odd, 80), HasSubstr("loss nan"));
  EXPECT_THAT(progress_line(odd, 80), HasSubstr("ETA ?"));
  odd.total_steps = 10;  // beyond the end
  EXPECT_LE(progress_line(odd, 80).size(), 80u);
}

TEST(DurationText, CountsMinutesAndHours) {
  EXPECT_EQ(duration_text(0), "0:00");
  EXPECT_EQ(duration_text(7.4), "0:07");
  EXPECT_EQ(duration_text(83), "1:23");
  EXPECT_EQ(duration_text(59.7), "1:00");
  EXPECT_EQ(duration_text(3723), "1:02:03");
  EXPECT_EQ(duration_text(-1), "?");
  EXPECT_EQ(duration_text(INFINITY), "?");
}

struct Screen {
  std::ostringstream out;
  double now = 0;
  ProgressLine::Options options(bool terminal) {
    return {.terminal = terminal, .width = [] { return 61; }, .seconds = [this] { return now; }};
  }
};

TEST(ProgressLine, IsQuietWhereThereIsNoTerminal) {
  Screen screen;
  {
    ProgressLine line(screen.out, screen.options(false));
    for (std::int64_t step = 1; step <= 100; ++step) {
      screen.now += 1;
      line.update({.step = step, .total_steps = 100});
    }
    line.print("epoch 1: accuracy 90.0 %");
  }
  EXPECT_EQ(screen.out.str(), "epoch 1: accuracy 90.0 %\n");
}

TEST(ProgressLine, DrawsAtMostTenTimesASecondAndTheLastStateAlways) {
  Screen screen;
  {
    ProgressLine line(screen.out, screen.options(true));
    for (std::int64_t step = 1; step <= 1000; ++step) {
      line.update({.step = step, .total_steps = 1000});
      screen.now += 0.001;
    }
  }
  const std::string text = screen.out.str();
  EXPECT_LE(std::count(text.begin(), text.end(), '\r'), 11);  // 1 second
  EXPECT_GE(std::count(text.begin(), text.end(), '\r'), 9);
  EXPECT_THAT(text, HasSubstr("1000/1000"));
  EXPECT_EQ(text.back(), '\n');
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 1);
}

TEST(ProgressLine, TellsTheTimeLeftFromTheStepsSoFar) {
  Screen screen;
  ProgressLine line(screen.out, screen.options(true));
  for (std::int64_t step = 1; step <= 10; ++step) {
    line.update({.step = step, .total_steps = 100});
    screen.now += 2;  // 90 steps left of 2 s each
  }
  EXPECT_THAT(screen.out.str(), HasSubstr("ETA 3:00"));
}

TEST(ProgressLine, PrintsAboveTheLineAndDrawsItAgain) {
  Screen screen;
  ProgressLine line(screen.out, screen.options(true));
  line.update({.step = 1, .total_steps = 4});
  const std::string drawn = screen.out.str();
  screen.out.str("");
  line.print("saved");
  EXPECT_EQ(screen.out.str().substr(0, 10), "\rsaved\x1b[K\n");
  EXPECT_EQ(fmt::format("\r{}\x1b[K", screen.out.str().substr(10)), drawn);
}

}  // namespace
}  // namespace reprise::runtime
