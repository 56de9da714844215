#include "schedule/memory_map.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "schedule/svg.h"
#include "schedule/verify.h"
#include "tests/schedule/layered_step.h"

namespace reprise::schedule {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t count(std::string_view text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string_view::npos;
       at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

// Every opened element is closed, in order, and nothing but elements, text and attributes occurs.
bool well_formed(std::string_view svg) {
  std::vector<std::string> open;
  for (std::size_t at = svg.find('<'); at != std::string_view::npos; at = svg.find('<', at + 1)) {
    const std::size_t end = svg.find('>', at);
    if (end == std::string_view::npos) return false;
    const std::string_view tag = svg.substr(at + 1, end - at - 1);
    if (count(tag, "\"") % 2 != 0) return false;
    if (tag.back() == '/') continue;
    if (tag.front() == '/') {
      if (open.empty() || open.back() != tag.substr(1)) return false;
      open.pop_back();
    } else {
      open.emplace_back(tag.substr(0, tag.find(' ')));
    }
  }
  return open.empty();
}

TEST(MemoryMap, DrawsEverySlotWithItsNameAndBytes) {
  const testing::LayeredStep step = testing::layered_step(12, 4, true);
  ASSERT_TRUE(verify(step.prepared, step.schedule).empty());
  MemoryMapOptions options;
  options.title = "twelve <layers> & more";
  const std::string svg = draw_memory_map(step.prepared, step.schedule, options);
  EXPECT_TRUE(well_formed(svg));
  EXPECT_THAT(svg, HasSubstr("twelve &lt;layers&gt; &amp; more"));
  EXPECT_THAT(svg, HasSubstr("layer0.conv (recomputed), 4.0 MiB at "));
  EXPECT_THAT(svg, HasSubstr("layer3.momentum (optimizer state)"));
  EXPECT_THAT(svg, HasSubstr("workspace of layer0.conv"));
  for (const char* name : {"forward", "backward", "parameter", "gradient", "live sum"}) {
    EXPECT_THAT(svg, HasSubstr(std::string(">") + name + "<"));
  }
  const auto is_drawn = [](const Slot& slot) { return slot.bytes > 0; };
  const auto slots =
      std::count_if(step.schedule.slots.begin(), step.schedule.slots.end(), is_drawn);
  EXPECT_EQ(count(svg, ", instructions "), static_cast<std::size_t>(slots));
}

TEST(MemoryMap, DrawsBudgetAndFloorWhereTheyFit) {
  const testing::LayeredStep step = testing::layered_step(12, 4, false);
  MemoryMapOptions options;
  options.budget_bytes = step.schedule.arena_bytes + (1 << 20);
  options.floor_bytes = step.schedule.arena_bytes;
  std::string svg = draw_memory_map(step.prepared, step.schedule, options);
  EXPECT_THAT(svg, HasSubstr(">budget "));
  EXPECT_THAT(svg, HasSubstr(">floor "));
  options.budget_bytes = step.schedule.arena_bytes * 10;  // told in the heading instead
  svg = draw_memory_map(step.prepared, step.schedule, options);
  EXPECT_THAT(svg, Not(HasSubstr(">budget ")));
  EXPECT_THAT(svg, HasSubstr("of a budget of "));
}

TEST(MemoryMap, StaysSmallForManySlots) {
  const testing::LayeredStep step = testing::layered_step(5000, 70, true);
  EXPECT_GT(step.schedule.slots.size(), 35000u);
  MemoryMapOptions options;
  for (std::size_t most : {std::size_t{20000}, std::size_t{100}}) {
    options.max_rectangles = most;
    const std::string svg = draw_memory_map(step.prepared, step.schedule, options);
    EXPECT_LT(svg.size(), 2u << 20) << most;
    EXPECT_TRUE(well_formed(svg));
    EXPECT_THAT(svg, HasSubstr("small slots: parameter"));
  }
}

TEST(MemoryMap, DrawsAnEmptyStep) {
  EXPECT_TRUE(well_formed(draw_memory_map({}, {})));
}

TEST(MemoryMap, SurvivesSizesThatNobodyHasChecked) {
  testing::LayeredStep step = testing::layered_step(6, 3, false);
  for (Slot& slot : step.schedule.slots) slot = {slot.value, Bytes{1} << 61, Bytes{1} << 61};
  step.schedule.arena_bytes = Bytes{1} << 61;
  EXPECT_TRUE(well_formed(draw_memory_map(step.prepared, step.schedule)));
}

TEST(Svg, TicksAreRoundNumbers) {
  const auto labels = [](const std::vector<Tick>& ticks) {
    std::string all;
    for (const Tick& tick : ticks) all += tick.label + ";";
    return all;
  };
  EXPECT_EQ(labels(count_ticks(9, 10)), "0;1;2;3;4;5;6;7;8;9;");
  EXPECT_EQ(labels(count_ticks(44812, 5)), "0;10,000;20,000;30,000;40,000;");
  EXPECT_EQ(labels(byte_ticks(640, 7)), "0;100 B;200 B;300 B;400 B;500 B;600 B;");
  EXPECT_EQ(labels(byte_ticks(base::kGiB * 13 / 4, 7)),
            "0;0.5 GiB;1 GiB;1.5 GiB;2 GiB;2.5 GiB;3 GiB;");
  EXPECT_EQ(labels(byte_ticks(58 * base::kMiB, 6)), "0;10 MiB;20 MiB;30 MiB;40 MiB;50 MiB;");
}

TEST(Svg, EscapesAndFitsText) {
  EXPECT_EQ(xml_escape("a<b>&\"'\n"), "a&lt;b&gt;&amp;&quot;&apos;");
  EXPECT_EQ(svg_number(12.50), "12.5");
  EXPECT_EQ(svg_number(-0.001), "0");
  EXPECT_EQ(group_digits(1234567), "1,234,567");
  EXPECT_EQ(group_digits(123), "123");
  EXPECT_EQ(fit_text("short", 10, 100), "short");
  const std::string fitted = fit_text("a very long name indeed", 10, 60);
  EXPECT_LE(text_width(fitted, 10), 60);
  EXPECT_THAT(fitted, ::testing::StartsWith("a very"));
  EXPECT_THAT(fitted, ::testing::EndsWith("\xE2\x80\xA6"));
}

}  // namespace
}  // namespace reprise::schedule
