// Deep graphs on a small stack: nothing here may recurse over the depth of a graph.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "graph/text.h"
#include "tests/graph/small_graphs.h"

namespace reprise::graph {
namespace {

constexpr int kOps = 100'000;

// y <- y + 0.002 y, about 33,000 times; one reshape in three.
Graph deep_graph() {
  Builder b("deep");
  ValueId y = b.input("x", {2, 2});
  while (b.graph().nodes.size() + 3 <= kOps) {
    y = b.add(y, b.scale(y, 0.002));
    y = b.reshape(y, b.shape(y).size() == 2 ? Shape{4} : Shape{2, 2});
  }
  while (b.graph().nodes.size() + 1 < kOps) y = b.reshape(y, {2, 2});
  b.set_loss(b.reduce_sum(y, {}, false, "loss"));
  return b.finish();
}

void* round_trip(void* result) {
  const Graph graph = deep_graph();
  const Graph back = parse_graph(print_graph(graph));
  const bool same = back == graph && graph.nodes.size() == kOps;
  *static_cast<bool*>(result) = same && !to_dot(graph).empty() &&
                                storage_root(graph, graph.loss) == graph.loss &&
                                readers_of(graph).size() == graph.values.size();
  return nullptr;
}

void* view_chain(void* result) {
  Builder b("views");
  const ValueId x = b.input("x", {6});
  ValueId y = x;
  for (int i = 0; i < kOps; ++i) y = b.reshape(y, i % 2 == 0 ? Shape{2, 3} : Shape{6});
  const Graph graph = b.finish();
  *static_cast<bool*>(result) = storage_root(graph, y) == x;
  return nullptr;
}

bool on_small_stack(void* (*body)(void*)) {
  pthread_attr_t attributes;
  EXPECT_EQ(pthread_attr_init(&attributes), 0);
  EXPECT_EQ(pthread_attr_setstacksize(&attributes, std::size_t{1} << 20), 0);  // 1 MiB
  pthread_t thread{};
  bool result = false;
  EXPECT_EQ(pthread_create(&thread, &attributes, body, &result), 0);
  EXPECT_EQ(pthread_join(thread, nullptr), 0);
  pthread_attr_destroy(&attributes);
  return result;
}

TEST(DeepGraphs, OfAHundredThousandOpsRoundTripOnASmallStack) {
  EXPECT_TRUE(on_small_stack(round_trip));
}

TEST(DeepGraphs, ChainsOfViewsAreFollowedOnASmallStack) {
  EXPECT_TRUE(on_small_stack(view_chain));
}

}  // namespace
}  // namespace reprise::graph
