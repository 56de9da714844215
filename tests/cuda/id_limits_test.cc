// Ids and labels out of range: a kernel on a GPU cannot refuse them, so they are refused where the
// host hands them over, by the name of the node that would read them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>

#include "base/error.h"
#include "graph/builder.h"
#include "tests/support/interpreter.h"

namespace reprise::test {
namespace {

using graph::Builder;
using testing::AllOf;
using testing::HasSubstr;

class IdLimitsTest : public testing::Test {
 protected:
  static std::string refusal(Interpreter& run, const std::string& name,
                             std::vector<std::int32_t> values) {
    try {
      run.set(name, values);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::kInput);
      return error.what();
    }
    return "none";
  }
};

TEST_F(IdLimitsTest, AnIdOutsideOfItsTableIsRefusedAndTheNextBatchIsFine) {
  Builder b("ids");
  b.add_output(
      b.embedding(b.parameter("table", {5, 3}), b.input("ids", {4}, graph::DType::kI32), "lookup"));
  Interpreter run(prepare_on("cuda", b.finish()));
  run.set("table", std::vector<float>(15, 1.0F));
  for (const std::int32_t id : {5, -1, 1 << 30}) {
    EXPECT_THAT(refusal(run, "ids", {0, 4, id, 2}),
                AllOf(HasSubstr("'lookup'"), HasSubstr(std::to_string(id)), HasSubstr("position 2"),
                      HasSubstr("[0, 5)")));
  }
  EXPECT_EQ(refusal(run, "ids", {0, 4, 1, 2}), "none");
  EXPECT_NO_THROW(run.step());
}

TEST_F(IdLimitsTest, IdsAreFollowedThroughSlicesAndReshapes) {
  Builder b("chunks");
  const ValueId tokens = b.input("tokens", {4, 2}, graph::DType::kI32);
  const ValueId chunk = b.reshape(b.slice(tokens, 0, 2, 4), {4});
  b.add_output(b.embedding(b.parameter("table", {5, 3}), chunk, "lookup"));
  Interpreter run(prepare_on("cuda", b.finish()));
  EXPECT_THAT(refusal(run, "tokens", {0, 1, 2, 3, 4, 5, 0, 0}), HasSubstr("'lookup'"));
  EXPECT_EQ(refusal(run, "tokens", {0, 1, 2, 3, 4, 0, 0, 0}), "none");
}

TEST_F(IdLimitsTest, ALabelIsOneOfTheClassesOrTheIgnoredOne) {
  Builder b("labels");
  const ValueId logits = b.input("logits", {3, 4});
  const ValueId labels = b.input("labels", {3}, graph::DType::kI32);
  b.set_loss(b.softmax_cross_entropy(logits, labels, {}, "the_loss"));
  Interpreter run(prepare_on("cuda", b.finish()));
  run.set("logits", std::vector<float>(12, 0.5F));
  for (const std::int32_t label : {4, -1, -101}) {
    EXPECT_THAT(refusal(run, "labels", {3, label, -100}),
                AllOf(HasSubstr("'the_loss'"), HasSubstr(std::to_string(label)),
                      HasSubstr("position 1"), HasSubstr("[0, 4)")));
  }
  EXPECT_EQ(refusal(run, "labels", {3, 0, -100}), "none");
  EXPECT_NO_THROW(run.step());
}

}  // namespace
}  // namespace reprise::test
