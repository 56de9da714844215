// docs/graph_format.md says what the code does: its dump is what is printed, its table of defaults
// is what the ops have.

#include <algorithm>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <string>

#include "graph/autodiff.h"
#include "graph/text.h"
#include "graph/text_attributes.h"
#include "tests/graph/small_graphs.h"

namespace reprise::graph {
namespace {

std::string format_page() {
  std::ifstream file(REPRISE_TEST_DATA "/../../docs/graph_format.md");
  EXPECT_TRUE(file.good()) << "docs/graph_format.md is missing";
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// What stands between the first pair of ``` lines.
std::string first_block(const std::string& page) {
  const std::size_t open = page.find("```\n");
  const std::size_t close = page.find("```\n", open + 4);
  if (open == std::string::npos || close == std::string::npos) return {};
  return page.substr(open + 4, close - open - 4);
}

TEST(FormatPage, ShowsADumpThatIsPrintedAndParsed) {
  const TrainingGraph training =
      make_training_graph(one_layer(), {.optimizer = SgdAttributes{.momentum = 0.9}});
  const std::string dump = first_block(format_page());
  EXPECT_EQ(dump, print_graph(training.graph));
  EXPECT_EQ(parse_graph(dump), training.graph);
}

// Rows look like "| `scale` | factor=1 |"; several ops may share one.
TEST(FormatPage, ListsTheDefaultsOfEveryOpWithAttributes) {
  const std::string page = format_page();
  for (std::size_t i = 0; i < kOpKindCount; ++i) {
    const auto op = static_cast<OpKind>(i);
    std::size_t fields = 0;
    visit(default_attributes(op), [&](std::string_view, const auto&) { ++fields; });
    if (fields == 0) continue;
    const std::size_t row = page.find(fmt::format("`{}`", op_info(op).name), page.find("| ops |"));
    ASSERT_NE(row, std::string::npos) << op_info(op).name;
    const std::size_t begin = page.find('|', row) + 1;
    const std::string cell = page.substr(begin, page.find('|', begin) - begin);
    EXPECT_EQ(static_cast<std::size_t>(std::count(cell.begin(), cell.end(), '=')), fields) << cell;
    TextLine line(cell, 0);
    EXPECT_EQ(parse_attributes(op, line), default_attributes(op)) << op_info(op).name << cell;
  }
}

}  // namespace
}  // namespace reprise::graph
