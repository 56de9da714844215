// Problem files with random damage: each is read, or refused as a fault of the input. What is read
// keeps the promises that strategies build on.

#include <algorithm>
#include <array>
#include <random>
#include <string>
#include <string_view>
#include <variant>

#include "gtest/gtest.h"

#include "base/error.h"
#include "planner/problem_file.h"

namespace reprise::planner {
namespace {

constexpr std::array<std::string_view, 5> kSound{
    R"({"format":"reprise-problem","version":1,"name":"two","tensors":[{"name":"x","bytes":4,
"kind":"input"},{"name":"h","bytes":8},{"name":"y","bytes":8},{"name":"z","bytes":2,"kind":"output"}],
"ops":[{"name":"f","inputs":[0],"outputs":[1],"cost":3},{"inputs":[1],"outputs":[2],"cost":3,
"workspace":5,"inplace":0},{"inputs":[2,0],"outputs":[3],"cost":1,"recomputable":false}],
"alignment":16})",
    R"({"chain":{"L":3,"a":[2,2,2,2],"b":[7,7,7,7],"g":[2,2,2,2],"uf":[1,1,1],"ub":[2,2,2],
"of":[1,1,1],"ob":[3,3,3],"ul":0,"ol":0}})",
    R"({"name":"rnn","steps":1000,"a":1,"b":8,"g":1,"uf":1,"ub":2,"of":0,"ob":3,"ul":4,"ol":5})",
    R"({"steps":1000000000,"checkpoints":10})",
    R"({"alignment":4,"buffers":[{"start":0,"end":2,"bytes":3},{"start":1,"end":4,"bytes":2}]})"};

// What files go wrong by: limits of number types, words of JSON, fields of another form.
constexpr std::array<std::string_view, 32> kPieces{"0",
                                                   "1",
                                                   "2",
                                                   "3",
                                                   "7",
                                                   "16",
                                                   "1000",
                                                   "1073741825",
                                                   "-1",
                                                   "1e3",
                                                   "1.5",
                                                   "1e400",
                                                   "-0",
                                                   "NaN",
                                                   "9223372036854775807",
                                                   "9223372036854775808",
                                                   "null",
                                                   "true",
                                                   "[]",
                                                   "{}",
                                                   "[[]]",
                                                   "18446744073709551616",
                                                   "\"\"",
                                                   "\"\\ud800\"",
                                                   "\"kind\"",
                                                   "\"steps\"",
                                                   "\"ops\"",
                                                   "\"L\"",
                                                   "\xff",
                                                   ",",
                                                   "}",
                                                   "]"};

class Damage {
 public:
  explicit Damage(std::uint64_t seed) : random_(seed) {}

  std::string damaged(std::string text) {
    for (std::size_t left = 1 + below(3) * below(2); left > 0; --left) damage(text);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) { return static_cast<std::size_t>(random_() % limit); }

  // [begin, end) of a random number or quoted word; of one character when there is none behind.
  std::pair<std::size_t, std::size_t> token(const std::string& text) {
    const std::size_t begin = text.find_first_of("0123456789\"", below(text.size()));
    if (begin == std::string::npos) return {0, 1};
    const bool quoted = text[begin] == '"';
    const std::size_t end =
        quoted ? text.find('"', begin + 1) : text.find_first_not_of("0123456789.", begin);
    return {begin, end == std::string::npos ? text.size() : end + (quoted ? 1 : 0)};
  }

  void damage(std::string& text) {
    if (text.empty()) return;
    const std::string piece(kPieces.at(below(kPieces.size())));
    const auto [begin, end] = token(text);
    const std::size_t place = below(text.size());
    switch (below(7)) {
      case 0:
        text[place] = static_cast<char>(text[place] ^ (1 << below(8)));
        break;
      case 1:
        text.erase(place, 1 + below(20));
        break;
      case 2:
        text.insert(place, text.substr(below(text.size()), 1 + below(40)));
        break;
      case 3:
        text.resize(place);
        break;
      case 4:
        text.insert(place, piece);
        break;
      default:  // most often what a careless program would write
        text.replace(begin, end - begin, piece);
    }
  }

  std::mt19937_64 random_;
};

void expect_sound(const OpGraphFile& file) {
  const schedule::Problem& problem = file.problem;
  EXPECT_GT(file.alignment, 0);
  for (const auto& tensor : problem.tensors) EXPECT_GE(tensor.bytes, 0);
  for (const auto& op : problem.ops) {
    EXPECT_GE(op.cost, 0);
    EXPECT_GE(op.workspace, 0);
    for (const auto tensor : op.inputs) EXPECT_LT(tensor.index(), problem.tensors.size());
    for (const auto tensor : op.outputs) EXPECT_LT(tensor.index(), problem.tensors.size());
  }
}

void expect_sound(const ChainFile& file) {
  EXPECT_GE(file.chain.input, 0);
  EXPECT_GE(file.chain.loss_cost, 0);
  for (const Stage& stage : file.chain.stages) {
    EXPECT_GE(stage.output, 0);
    EXPECT_FALSE(stage.options.empty());
    for (const auto& option : stage.options) EXPECT_GE(option.record, stage.output);
  }
}

void expect_sound(const UniformChainFile& file) {
  EXPECT_GE(file.chain.b, file.chain.a);
  EXPECT_GE(file.chain.a, 0);
}

void expect_sound(const RevolveFile& file) {
  EXPECT_GE(file.steps, 0);
  EXPECT_GE(file.checkpoints, 0);
}

void expect_sound(const BuffersFile& file) {
  for (const auto& buffer : file.buffers) {
    EXPECT_LT(buffer.start, buffer.end);
    EXPECT_GE(buffer.bytes, 0);
  }
}

TEST(ProblemFileFuzz, DamagedFilesAreReadOrRefusedAsInput) {
  int read = 0;
  int refused = 0;
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    const std::string text = Damage(seed).damaged(std::string(kSound.at(seed % kSound.size())));
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + text);
    try {
      const ProblemFile file = parse_problem(text);
      std::visit([](const auto& content) { expect_sound(content); }, file.content);
      ++read;
    } catch (const base::Error& error) {
      ASSERT_EQ(error.kind(), base::ErrorKind::kInput) << error.what();
      ASSERT_FALSE(std::string_view(error.what()).empty());
      ++refused;
    }
    if (HasFailure()) break;
  }
  // Both happen, or the damage says nothing.
  EXPECT_GT(read, 1'000);
  EXPECT_GT(refused, 5'000);
}

}  // namespace
}  // namespace reprise::planner
