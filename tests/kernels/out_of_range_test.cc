// Data out of range: every backend names the node, the element and its value, and goes on working.

#include <gmock/gmock.h>

#include "base/error.h"
#include "graph/builder.h"
#include "tests/kernels/on_backend.h"

namespace reprise::test {
namespace {

using graph::Builder;
using testing::AllOf;
using testing::HasSubstr;

class OutOfRange : public OnBackend {
 protected:
  // Runs `good` and then `bad` in the i32 input `name`; the second fails, a third run is fine.
  void expect_refused(Interpreter run, const std::string& name, std::vector<std::int32_t> good,
                      std::vector<std::int32_t> bad, const testing::Matcher<std::string>& message) {
    run.set(name, good);
    EXPECT_NO_THROW(run.step());
    run.set(name, bad);
    try {
      run.step();
      ADD_FAILURE() << "expected an error";
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::kInput);
      EXPECT_THAT(std::string(error.what()), message);
    }
    run.set(name, good);
    EXPECT_NO_THROW(run.step());
  }
};

TEST_P(OutOfRange, EmbeddingIds) {
  Builder b("ids");
  b.add_output(
      b.embedding(b.parameter("table", {5, 3}), b.input("ids", {4}, graph::DType::kI32), "lookup"));
  const graph::Graph graph = b.finish();
  for (const std::int32_t id : {5, -1, 1 << 30}) {
    Interpreter run = prepare(graph);
    run.set("table", std::vector<float>(15, 1));
    expect_refused(std::move(run), "ids", {0, 4, 1, 2}, {0, 4, id, 2},
                   AllOf(HasSubstr("'lookup'"), HasSubstr(std::to_string(id)), HasSubstr("2"),
                         HasSubstr("5")));
  }
}

TEST_P(OutOfRange, Labels) {
  Builder b("labels");
  const ValueId logits = b.input("logits", {3, 4});
  const ValueId labels = b.input("labels", {3}, graph::DType::kI32);
  b.set_loss(b.softmax_cross_entropy(logits, labels, {}, "the_loss"));
  b.add_output(b.correct_count(logits, labels, "right"));
  const graph::Graph graph = b.finish();
  for (const std::int32_t label : {4, -1, -101}) {
    Interpreter run = prepare(graph);
    run.set("logits", std::vector<float>(12, 0.5f));
    expect_refused(std::move(run), "labels", {3, 0, -100}, {3, label, -100},
                   AllOf(HasSubstr("'the_loss'"), HasSubstr(std::to_string(label)), HasSubstr("1"),
                         HasSubstr("4")));
  }
}

REPRISE_ON_EVERY_BACKEND(OutOfRange);

}  // namespace
}  // namespace reprise::test
