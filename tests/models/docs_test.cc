// docs/models.md says of every model what make_model() does.

#include <algorithm>
#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <regex>
#include <string>

#include "models/model.h"

namespace reprise::models {
namespace {

struct Row {
  std::int64_t parameters = 0;
  std::int64_t batch = 0;
};

// The rows "| `resnet20` | 272,186 | 64 | ...".
std::map<std::string, Row> documented() {
  std::ifstream file(REPRISE_TEST_DATA "/../../docs/models.md");
  EXPECT_TRUE(file.good());
  const std::regex row(R"(\| `(\w+)` \| ([0-9,]+) \| ([0-9]+) \|.*)");
  std::map<std::string, Row> rows;
  for (std::string line; std::getline(file, line);) {
    std::smatch match;
    if (!std::regex_match(line, match, row)) continue;
    std::string digits = match[2];
    std::erase(digits, ',');
    rows[match[1]] = {std::stoll(digits), std::stoll(match[3])};
  }
  return rows;
}

TEST(ModelDocs, ListEveryModelWithItsSize) {
  const auto rows = documented();
  EXPECT_EQ(rows.size(), all_models().size());
  for (const ModelInfo& info : all_models()) {
    const auto row = rows.find(std::string(info.name));
    ASSERT_NE(row, rows.end()) << info.name << " is missing in docs/models.md";
    EXPECT_EQ(graph::parameter_count(make_model(info.name, {}).graph), row->second.parameters)
        << info.name;
    EXPECT_EQ(complete_options(info.name, {}).batch, row->second.batch) << info.name;
  }
}

}  // namespace
}  // namespace reprise::models
