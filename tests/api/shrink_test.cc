#include "tests/api/shrink.h"

#include <algorithm>
#include <gmock/gmock.h>

#include "graph/text.h"
#include "tests/api/random_graph.h"
#include "tests/api/training_case.h"
#include "tests/support/hooked_backend.h"

namespace reprise::api {
namespace {

bool has(const models::Model& model, graph::OpKind op) {
  return std::any_of(model.graph.nodes.begin(), model.graph.nodes.end(),
                     [&](const graph::Node& node) { return node.op == op; });
}

std::vector<graph::OpKind> ops_of(const models::Model& model) {
  std::vector<graph::OpKind> ops;
  for (const graph::Node& node : model.graph.nodes) ops.push_back(node.op);
  return ops;
}

TEST(Shrink, KeepsWhatMattersAndThePathToTheLoss) {
  int shrunk = 0;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const models::Model model = make_random_model(seed, 12);
    const auto fails = [](const models::Model& each) {
      return has(each, graph::OpKind::kConv2d) && has(each, graph::OpKind::kDropout);
    };
    if (!fails(model)) continue;
    const models::Model small = shrink(model, fails);
    ++shrunk;
    EXPECT_TRUE(fails(small));
    EXPECT_NO_THROW(graph::validate(small.graph));
    EXPECT_EQ(graph::parse_graph(graph::print_graph(small.graph)), small.graph);
    // Both ops, the loss, and at most a pool and a reshape or product between them.
    EXPECT_LE(small.graph.nodes.size(), 6u) << graph::print_graph(small.graph);
  }
  EXPECT_GT(shrunk, 3);
}

TEST(Shrink, OfAGraphThatFailsAnywayTheLossIsLeft) {
  const models::Model small =
      shrink(make_random_model(3, 12), [](const models::Model&) { return true; });
  EXPECT_EQ(ops_of(small), std::vector{graph::OpKind::kSoftmaxCrossEntropy});
}

TEST(Shrink, LeavesAGraphThatFailsOnlyAsAWholeAsItIs) {
  const models::Model model = make_random_model(5, 8);
  const std::size_t nodes = model.graph.nodes.size();
  const models::Model small =
      shrink(model, [&](const models::Model& each) { return each.graph.nodes.size() == nodes; });
  EXPECT_EQ(small.graph.nodes.size(), nodes);
}

// A planted fault: tanh gives another value when it runs a second time in one step. What is left of
// a network of a dozen ops is tanh and what makes a plan run it twice.
struct TanhThatDrifts {
  std::vector<int> runs;

  std::shared_ptr<kernels::Backend> backend() {
    return std::make_shared<test::HookedBackend>(
        kernels::make_backend("reference", {}), nullptr,
        [this](const auto& prepared, graph::NodeId node, const kernels::Call& call) {
          if (prepared.graph.nodes[node].op != graph::OpKind::kTanh) return;
          runs.resize(prepared.graph.nodes.size());
          if (++runs[node.index()] > 1) call.outputs[0][6] ^= std::byte{1};  // of an f64
        });
  }
};

std::uint64_t hash_after_a_step(const models::Model& model, const std::string& planner,
                                const Budget& budget) {
  TanhThatDrifts fault;
  SessionOptions options = on("reference", planner, budget);
  options.plan.search_moves = 1;
  options.backend = fault.backend();
  const auto session =
      make_session(model, options, {.optimizer = graph::SgdAttributes{.rate = {.base = 0.1}}});
  feed(*session, model.graph, 5, 0);
  session->step();
  return session->state_hash();
}

TEST(Shrink, FindsAPlantedFaultInARandomNetwork) {
  const auto fails = [](const models::Model& model) {
    return hash_after_a_step(model, "keep_all", {}) !=
           hash_after_a_step(model, "auto", {.kind = Budget::Kind::kFloor});
  };
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const models::Model model = make_random_model(seed, 8);
    if (!has(model, graph::OpKind::kTanh) || !fails(model)) continue;
    const models::Model small = shrink(model, fails);
    EXPECT_TRUE(fails(small));
    EXPECT_TRUE(has(small, graph::OpKind::kTanh));
    EXPECT_LT(2 * small.graph.nodes.size(), model.graph.nodes.size())
        << graph::print_graph(small.graph);
    return;
  }
  FAIL() << "no random network runs its tanh twice";
}

}  // namespace
}  // namespace reprise::api
