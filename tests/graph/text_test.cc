#include "graph/text.h"

#include <bit>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <limits>
#include <random>

#include "tests/graph/small_graphs.h"

namespace reprise::graph {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string fault_of(std::string_view text) {
  return input_error_of([&] { (void)parse_graph(text); });
}

// A graph text of one op, around which a test writes one line of its own.
std::string around(std::string_view line) {
  return fmt::format(
      "reprise-graph 1\n"
      "name \"g\"\n"
      "value x input f32 [2,3]\n"
      "value y activation f32 [2,3]\n"
      "{}\n"
      "end\n",
      line);
}

TEST(GraphText, LooksLikeTheFormatPage) {
  EXPECT_EQ(print_graph(one_layer()),
            "reprise-graph 1\n"
            "name \"one_layer\"\n"
            "value x input f32 [4,3]\n"
            "value target input f32 [4,2]\n"
            "value w parameter f32 [2,3] trainable\n"
            "value fc activation f32 [4,2]\n"
            "value act activation f32 [4,2]\n"
            "value loss activation f32 []\n"
            "node fc forward matmul (x, w) -> (fc) transpose_b=true\n"
            "node act forward relu (fc) -> (act)\n"
            "node loss forward mean_squared_error (act, target) -> (loss)\n"
            "output loss\n"
            "loss loss\n"
            "end\n");
}

TEST(GraphText, RoundTrips) {
  for (const Graph& graph : {one_layer(), one_of_each(), Graph{}}) {
    const std::string text = print_graph(graph);
    EXPECT_EQ(parse_graph(text), graph) << text;
    EXPECT_EQ(print_graph(parse_graph(text)), text);
  }
}

TEST(GraphText, KeepsTheOrderOfValuesApartFromTheOrderOfNodes) {
  Graph graph = one_layer();
  // act (value 4) and fc (value 3) change places; the nodes stay.
  std::swap(graph.values[ValueId(3)], graph.values[ValueId(4)]);
  for (Node& node : graph.nodes) {
    for (auto* ids : {&node.inputs, &node.outputs}) {
      for (ValueId& id : *ids)
        id = id == ValueId(3) ? ValueId(4) : id == ValueId(4) ? ValueId(3) : id;
    }
  }
  validate(graph);
  EXPECT_EQ(parse_graph(print_graph(graph)), graph);
}

TEST(GraphText, KeepsEveryBitOfADouble) {
  std::mt19937_64 random(7);
  std::vector<double> factors{0.1,
                              1.0 / 3.0,
                              -0.0,
                              5e-324,
                              std::numeric_limits<double>::max(),
                              std::numeric_limits<double>::infinity()};
  while (factors.size() < 200) {
    const auto factor = std::bit_cast<double>(random());
    if (factor == factor) factors.push_back(factor);  // scale refuses NaN
  }
  for (double factor : factors) {
    Builder b("g");
    b.scale(b.input("x", {1}), factor, "s");
    const Graph back = parse_graph(print_graph(b.finish()));
    const double read = std::get<ScaleAttributes>(back.nodes[NodeId(0)].attributes).factor;
    EXPECT_EQ(std::bit_cast<std::uint64_t>(read), std::bit_cast<std::uint64_t>(factor)) << factor;
  }
}

TEST(GraphText, EscapesTheNameOfTheGraph) {
  Graph graph;
  for (int c = 0; c < 256; ++c) graph.name += static_cast<char>(c);
  EXPECT_EQ(parse_graph(print_graph(graph)), graph);
}

TEST(GraphText, IgnoresCommentsAndBlankLines) {
  EXPECT_EQ(parse_graph(around("# one op\n\n  node y forward relu ( x ) -> ( y )  ")),
            parse_graph(around("node y forward relu (x) -> (y)")));
}

TEST(GraphText, FaultsNameTheLineTheTextAndWhatWasExpected) {
  struct Case {
    std::string line;
    std::vector<std::string> parts;
  };
  const std::vector<Case> cases{
      {"valve z input f32 []",
       {"line 5", "'valve'", "value, node, output, update, updates, loss or end"}},
      {"value x input f32 []", {"line 5", "already is a value 'x'"}},
      {"value z inputs f32 []", {"line 5", "role 'inputs'", "parameter"}},
      {"value z input f64 []", {"line 5", "dtype 'f64'", "f32, i32, u8"}},
      {"value z input f32 4", {"line 5", "a shape like [8,3]", "\"4\""}},
      {"value z input f32 [4,]", {"line 5", "an integer", "\"]\""}},
      {"value z input f32 [4", {"line 5", "']'", "the end of the line"}},
      {"value z input f32 [99999999999999999999]", {"line 5", "63 bits", "99999999999999999999"}},
      {"value z input f32 [4] frozen", {"line 5", "the end of the line", "\"frozen\""}},
      {"node y sideways relu (x) -> (y)", {"line 5", "phase 'sideways'"}},
      {"node y forward relux (x) -> (y)", {"line 5", "no op 'relux'"}},
      {"node y forward relu x -> (y)", {"line 5", "'('", "x -> (y)"}},
      {"node y forward relu (q) -> (y)", {"line 5", "no value 'q' above"}},
      {"node y forward relu (x) (y)", {"line 5", "'->'", "(y)"}},
      {"node y forward relu (x) -> (y) factor=2", {"line 5", "no attribute 'factor'", "none"}},
      {"node y forward scale (x) -> (y) faktor=2", {"line 5", "'faktor'", "it has factor"}},
      {"node y forward scale (x) -> (y) factor=two", {"line 5", "a number", "\"two\""}},
      {"node y forward scale (x) -> (y) factor=1e999", {"line 5", "range of a double", "1e999"}},
      {"node y forward scale (x) -> (y) factor=2 factor=3", {"line 5", "'factor' comes twice"}},
      {"node y forward relu (x) -> (y)\nnode z forward relu (x) -> (y)",
       {"line 6", "'y' is made a second time"}},
      {"output q", {"line 5", "no value 'q' above"}},
      {"update x y", {"line 5", "'->'", "\"y\""}},
      {"loss x\nloss x", {"line 6", "second loss"}},
      {"name \"h\"", {"line 5", "second name"}},
      {"end\nvalue z input f32 []", {"line 6", "nothing after 'end'"}},
  };
  for (const Case& c : cases) {
    const std::string fault = fault_of(around(c.line));
    for (const std::string& part : c.parts) EXPECT_THAT(fault, HasSubstr(part)) << c.line;
  }
}

TEST(GraphText, FaultsOfHeaderAndEnd) {
  EXPECT_THAT(fault_of(""), HasSubstr("line 1: expected 'end'"));
  EXPECT_THAT(fault_of("graph 1\nend\n"),
              AllOf(HasSubstr("line 1"), HasSubstr("'reprise-graph'"), HasSubstr("graph 1")));
  EXPECT_THAT(fault_of("reprise-graph 2\nend\n"),
              AllOf(HasSubstr("line 1"), HasSubstr("version 2"), HasSubstr("reads 1")));
  EXPECT_THAT(fault_of("reprise-graph 1\nname \"a\\qb\"\nend\n"),
              AllOf(HasSubstr("line 2"), HasSubstr("\\xHH")));
  EXPECT_THAT(fault_of("reprise-graph 1\nname \"a\nend\n"), HasSubstr("line 2"));
}

TEST(GraphText, ValidatesWhatItRead) {
  EXPECT_THAT(fault_of(around("")), HasSubstr("'y' of role activation is made by no node"));
  EXPECT_THAT(fault_of(around("node y forward reduce_sum (x) -> (y)")),
              AllOf(HasSubstr("reduce_sum 'y'"), HasSubstr("[2,3]")));
}

TEST(GraphText, HugeNumbersCostNoMemory) {
  EXPECT_THAT(fault_of(around("node y forward relu (x) -> (y)\n"
                              "value z input f32 [9223372036854775807,9223372036854775807]")),
              HasSubstr("beyond 2^63"));
  // A terabyte is a legal size of a value; nothing of that size is made here.
  EXPECT_EQ(fault_of(around("node y forward relu (x) -> (y)\n"
                            "value z input f32 [1099511627776]")),
            "no error");
}

// Any damage is either noticed as a fault of the input or leaves another valid graph.
void expect_graph_or_fault(std::string_view text, std::string_view what) {
  const std::string fault = input_error_of([&] { validate(parse_graph(text)); });
  EXPECT_THAT(fault, testing::Not(HasSubstr("error of kind"))) << what << "\n" << text;
}

TEST(GraphText, EveryTruncationIsAFault) {
  const std::string text = print_graph(one_of_each());
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_NE(fault_of(std::string_view(text).substr(0, length)), "no error") << length;
  }
}

TEST(GraphText, SurvivesFlippedBits) {
  const std::string text = print_graph(one_of_each());
  for (std::size_t i = 0; i < text.size(); ++i) {
    for (int bit = 0; bit < 8; ++bit) {
      std::string damaged = text;
      damaged[i] = static_cast<char>(damaged[i] ^ (1 << bit));
      expect_graph_or_fault(damaged, fmt::format("bit {} of byte {}", bit, i));
    }
  }
}

TEST(GraphText, SurvivesLinesRemovedRepeatedAndSwapped) {
  std::vector<std::string> lines;
  const std::string text = print_graph(one_of_each());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    lines.push_back(text.substr(at, end - at));
    at = end;
  }
  constexpr std::uint64_t seed = 11;
  std::mt19937_64 random(seed);
  for (int round = 0; round < 2'000; ++round) {
    std::vector<std::string> damaged = lines;
    for (std::uint64_t edits = 1 + random() % 3; edits > 0 && !damaged.empty(); --edits) {
      const std::size_t a = random() % damaged.size();
      const std::size_t b = random() % damaged.size();
      switch (random() % 3) {
        case 0:
          damaged.erase(damaged.begin() + static_cast<std::ptrdiff_t>(a));
          break;
        case 1: {
          const std::string copy = damaged[a];
          damaged.insert(damaged.begin() + static_cast<std::ptrdiff_t>(b), copy);
          break;
        }
        default:
          std::swap(damaged[a], damaged[b]);
      }
    }
    std::string joined;
    for (const std::string& line : damaged) joined += line;
    expect_graph_or_fault(joined, fmt::format("seed {}, round {}", seed, round));
  }
}

TEST(Dot, DrawsNodesByPhaseAndValuesAsEdges) {
  const std::string dot = to_dot(one_layer());
  EXPECT_THAT(dot, testing::StartsWith("digraph \"one_layer\" {"));
  EXPECT_THAT(dot, HasSubstr("n0 [label=\"fc: matmul\", fillcolor=lightblue]"));
  EXPECT_THAT(dot, HasSubstr("v2 [label=\"w f32[2,3]\", shape=ellipse"));
  EXPECT_THAT(dot, HasSubstr("v2 -> n0"));
  EXPECT_THAT(dot, HasSubstr("n0 -> n1 [label=\"fc f32[4,2]\"]"));
  EXPECT_THAT(dot, HasSubstr("o0 [label=\"output loss\""));
  EXPECT_THAT(to_dot(one_of_each()), AllOf(HasSubstr("lightsalmon"), HasSubstr("lightgreen")));
}

}  // namespace
}  // namespace reprise::graph
