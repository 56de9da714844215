// Very deep and very wide graphs, in a thread with a stack of 1 MiB.

#include <functional>
#include <gtest/gtest.h>
#include <pthread.h>

#include "fmt/format.h"

#include "graph/autodiff.h"
#include "graph/builder.h"
#include "tests/graph/graph_query.h"

namespace reprise::graph {
namespace {

void run_on_a_small_stack(std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, std::size_t{1} << 20), 0);
  pthread_t thread;
  const auto entry = [](void* argument) -> void* {
    (*static_cast<std::function<void()>*>(argument))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, entry, &work), 0);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
}

// y <- y + 0.002 y, 100,000 times: per step a scale and an add; backward a scale and the sum of two
// paths.
TEST(AutodiffDepth, DoesNotRecurse) {
  run_on_a_small_stack([] {
    constexpr std::size_t kSteps = 100'000;
    Builder b("deep");
    ValueId y = b.parameter("y", {1});
    for (std::size_t i = 0; i < kSteps; ++i) y = b.add(y, b.scale(y, 0.002));
    b.set_loss(b.reduce_sum(y));
    const Graph graph = make_training_graph(b.finish(), {}).graph;
    validate(graph);
    EXPECT_EQ(nodes_of(graph, OpKind::kScale).size(), 2 * kSteps);
    EXPECT_EQ(nodes_of(graph, OpKind::kAdd).size(), 2 * kSteps);
    EXPECT_EQ(nodes_of(graph, OpKind::kSgd).size(), 1U);
  });
}

// The mean over 5,000 independent branches: each gradient is a scale of the same dloss.
TEST(AutodiffDepth, WideGraphsAreLinear) {
  run_on_a_small_stack([] {
    constexpr std::size_t kBranches = 5'000;
    Builder b("wide");
    std::vector<ValueId> parts;
    std::vector<ValueId> inputs;
    for (std::size_t i = 0; i < kBranches; ++i) {
      inputs.push_back(b.input(fmt::format("x{}", i), {1}));
      parts.push_back(b.tanh(inputs.back()));
    }
    b.set_loss(b.reduce_mean(b.concat(parts, 0)));
    const Graph graph = make_training_graph(b.finish(), {.fetch_gradients = inputs}).graph;
    validate(graph);
    EXPECT_EQ(nodes_of(graph, OpKind::kTanhGrad).size(), kBranches);
    EXPECT_EQ(graph.outputs.size(), kBranches + 1);
  });
}

}  // namespace
}  // namespace reprise::graph
