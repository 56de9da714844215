// Every wrong flag and value: exit code 2, and a message that names flag, value and rule.

#include "cli/flags.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;

struct Wrong {
  std::vector<std::string> args;   // after a command and the model it needs
  std::vector<std::string> named;  // what the message must name
};

void expect_refused(const std::vector<std::string>& args, const std::vector<std::string>& named) {
  const std::string line = ::testing::PrintToString(args);
  const Ran text = run_cli(args);
  EXPECT_EQ(text.code, 2) << line;
  EXPECT_EQ(text.out, "") << line;
  for (const std::string& word : named) EXPECT_THAT(text.err, HasSubstr(word)) << line;

  const Ran json = run_cli(with(args, {"--json"}));
  EXPECT_EQ(json.code, 2) << line;
  ASSERT_TRUE(nlohmann::json::accept(json.out)) << line << json.out;
  EXPECT_EQ(json.document()["error"]["kind"], "input") << line;
  for (const std::string& word : named) EXPECT_THAT(json.error_message(), HasSubstr(word)) << line;
}

TEST(Flags, WrongValuesOfModelAndRunNameFlagValueAndRule) {
  const std::vector<Wrong> cases = {
      {{"--batch", "0"}, {"--batch", "'0'", "at least 1"}},
      {{"--batch", "-4"}, {"--batch", "'-4'", "at least 1"}},
      {{"--batch", "4.5"}, {"--batch", "'4.5'", "whole number"}},
      {{"--batch=many"}, {"--batch", "'many'", "whole number"}},
      {{"--image", "3x32"}, {"--image", "'3x32'", "CxHxW"}},
      {{"--image", "3x0x32"}, {"--image", "'3x0x32'", "whole number"}},
      {{"--image", "3x32x32x1"}, {"--image", "'3x32x32x1'"}},
      {{"--classes", "1"}, {"--classes", "'1'", "at least 2"}},
      {{"--dropout", "1"}, {"--dropout", "'1'", "at most"}},
      {{"--precision", "f16"}, {"--precision", "'f16'", "f32", "bf16"}},
      {{"--precision", ""}, {"--precision", "''"}},
      {{"--data", "mnist"}, {"--data", "'mnist'", "fashion-mnist"}},
      {{"--data", "text:"}, {"--data", "'text:'"}},
      {{"--data", ""}, {"--data", "''"}},
      {{"--steps", "0"}, {"--steps", "'0'", "at least 1"}},
      {{"--epochs", "x"}, {"--epochs", "'x'", "whole number"}},
      {{"--steps", "3", "--epochs", "2"}, {"--steps", "--epochs", "leave one of the two out"}},
      {{"--batch", "9223372036854775808"}, {"--batch", "below 2^63"}},
      {{"--layers", "1000001"}, {"--layers 1000001", "mlp", "at most 1000000"}},
      {{"--costs", "/dev/null"}, {"/dev/null", "reprise profile", "unexpected end of input"}},
      {{"--lr", "-0.1"}, {"--lr", "'-0.1'", "at least 0"}},
      {{"--lr", "nan"}, {"--lr", "'nan'"}},
      {{"--lr-schedule", "linear"}, {"--lr-schedule", "linear"}},
      {{"--lr-schedule", "cosine:10"}, {"--lr-schedule", "'cosine:10'", "step"}},
      {{"--lr-schedule", "step:0"}, {"--lr-schedule", "'0'", "at least 1"}},
      {{"--lr-schedule", "step:5:2"}, {"--lr-schedule", "'2'", "at most 1"}},
      {{"--accumulate", "0"}, {"--accumulate", "'0'", "from 1 to 256"}},
      {{"--accumulate", "4", "--batch", "3"}, {"--accumulate 4", "--batch 3", "only 3 items"}},
      {{"--clip-norm", "0"}, {"--clip-norm", "'0'", "above 0"}},
      {{"--clip-norm", "inf"}, {"--clip-norm", "'inf'"}},
      {{"--updates", "never"}, {"--updates", "'never'", "auto", "end"}},
      {{"--warmup", "-1"}, {"--warmup", "'-1'", "at least 0"}},
      {{"--optimizer", "rmsprop"}, {"--optimizer", "'rmsprop'", "adamw"}},
      {{"--optimizer", "adam", "--momentum", "0.9"}, {"--momentum", "0.9", "adam"}},
      {{"--optimizer", "sgd", "--momentum", "0.9"}, {"--momentum", "0.9", "nesterov"}},
      {{"--momentum", "1"}, {"--momentum", "'1'", "at most"}},
      {{"--weight-decay", "-1"}, {"--weight-decay", "'-1'"}},
      {{"--device", "tpu"}, {"--device", "'tpu'", "cpu"}},
      {{"--threads", "0"}, {"--threads", "'0'", "from 1 to 1024"}},
      {{"--seed", "-1"}, {"--seed", "'-1'", "at least 0"}},
      {{"--save-every", "5"}, {"--save-every", "5", "--save DIR"}},
      {{"--bucket", "0"}, {"--bucket", "'0'", "more than 0"}},
      {{"--bucket", "many"}, {"--bucket", "many"}},
      {{"--resume", "/no/such/folder"}, {"/no/such/folder"}},
  };
  for (const Wrong& wrong : cases)
    expect_refused(with({"train", "--model", "mlp"}, wrong.args), wrong.named);
}

TEST(Flags, WrongBudgetsAndPlannersNameFlagValueAndRule) {
  const std::vector<Wrong> cases = {
      {{"--budget", "abc"}, {"--budget", "abc"}},
      {{"--budget", "0"}, {"--budget", "'0'", "more than 0"}},
      {{"--budget", "-5MiB"}, {"--budget", "-5MiB"}},
      {{"--budget", "0%"}, {"--budget", "'0%'", "percentage"}},
      {{"--budget", "-10%"}, {"--budget", "'-10%'", "percentage"}},
      {{"--budget", "5 parsecs"}, {"--budget", "parsecs"}},
      {{"--budget", "9999999999GiB"}, {"--budget", "9999999999GiB", "beyond 2^63"}},
      {{"--planner", "magic"}, {"--planner", "magic", "keep_all"}},
      {{"--segments", "0"}, {"--segments", "'0'", "from 1"}},
      {{"--segments", "4"}, {"--segments", "4", "--planner segments"}},
  };
  for (const Wrong& wrong : cases)
    expect_refused(with({"plan", "--model", "mlp"}, wrong.args), wrong.named);
}

TEST(Flags, WrongUseOfTheParserIsInputToo) {
  expect_refused({"train"}, {"--model NAME is missing"});
  expect_refused({"train", "--model"}, {"--model"});
  EXPECT_THAT(run_cli({"train", "--model"}).err,
              HasSubstr("--model: its value is missing; expected NAME"));
  expect_refused({"train", "--model", "mlp", "--augment=5"}, {"--augment '5'", "takes no value"});
  expect_refused({"train", "--model", "resnet21"}, {"--model", "'resnet21'", "resnet20"});
  expect_refused({"train", "--model", "mlp", "--bach", "4"}, {"'--bach'", "did you mean --batch?"});
  expect_refused({"train", "--model", "mlp", "extra"}, {"'extra'"});
  expect_refused({"plan", "--model", "mlp", "--steps", "4"}, {"'--steps'"});
  expect_refused({"train", "--model", "mlp", "--batch", "4", "--batch", "8"},
                 {"--batch is given 2 times (4, 8); give it once"});
  expect_refused({"sweep", "--model", "mlp", "--budgets", "1"}, {"--budgets", "'1'", "from 2"});
  expect_refused({"sweep", "--model", "mlp", "--planners", "auto,,x"}, {"--planners", "empty"});
  expect_refused({"sweep", "--model", "mlp", "--planners", "auto,x"}, {"x", "keep_all"});
  expect_refused({"show"}, {"FILE is missing"});
  expect_refused({"show", "/no/such/file"}, {"/no/such/file", "No such file"});
  expect_refused({"show", "/tmp"}, {"/tmp", "folder"});
  expect_refused({"map", "--out", "x.svg"}, {"plan file", "--model"});
  expect_refused({"map", "x.plan", "--out", "x.svg", "--batch", "4"}, {"--batch", "x.plan"});
  expect_refused({"map", "--model", "mlp"}, {"--out"});
  // What only a GPU knows is not passed over in silence.
  expect_refused({"train", "--model", "mlp", "--tf32"}, {"--tf32", "cpu", "--device cuda"});
  expect_refused({"train", "--model", "mlp", "--cuda-graph", "off", "--devices", "reference:2"},
                 {"--cuda-graph", "reference"});
}

TEST(Flags, ModelsRefuseFlagsTheyDoNotTake) {
  expect_refused({"plan", "--model", "resnet20", "--seq-len", "8"}, {"resnet20", "--seq-len"});
  expect_refused({"plan", "--model", "lstm", "--image", "3x8x8"}, {"lstm", "--image"});
  expect_refused({"plan", "--model", "mlp", "--stateless"}, {"mlp", "--stateless"});
  expect_refused({"plan", "--model", "lstm", "--seq-len", "4000000", "--chunk", "1"},
                 {"--seq-len 4000000", "4000000 chunks", "--chunk"});
}

TEST(Flags, EveryFlagReachesTheRun) {
  CLI::App app;
  Flags flags;
  add_model_flags(app, flags);
  add_run_flags(app, flags);
  add_planner_flags(app, flags);
  add_device_flags(app, flags);
  add_optimizer_flags(app, flags);
  add_ranks_flags(app, flags);
  app.parse(
      "--bucket 3MiB --model lstm --data text:book.txt --batch 4 --classes 7 --image 3x5x6 "
      "--hidden 8 --layers 2 "
      "--embedding 9 --vocabulary 11 --seq-len 12 --chunk 3 --dropout 0.25 --stateless "
      "--sync-batch-norm --steps 10 "
      "--save out --save-every 5 --resume old --augment --no-eval --debug --budget 40% "
      "--planner segments --segments 6 --device reference --threads 2 --seed 77 --optimizer "
      "nesterov --lr 0.5 --lr-schedule step:20:0.5 --warmup 3 --momentum 0.8 --weight-decay 0.01");
  const api::TrainOptions train = complete_flags(flags);
  const models::ModelOptions& model = train.model_options;
  EXPECT_EQ(train.model, "lstm");
  EXPECT_EQ(train.data.kind, api::DataSpec::Kind::kText);
  EXPECT_EQ(train.data.path, "book.txt");
  EXPECT_EQ(model.batch, 4);
  EXPECT_EQ(model.classes, 7);
  EXPECT_EQ((std::vector{model.channels, model.height, model.width}),
            (std::vector<std::int64_t>{3, 5, 6}));
  EXPECT_EQ((std::vector{model.hidden, model.layers, model.embedding, model.vocabulary}),
            (std::vector<std::int64_t>{8, 2, 9, 11}));
  EXPECT_EQ((std::vector{model.seq_len, model.chunk}), (std::vector<std::int64_t>{12, 3}));
  EXPECT_DOUBLE_EQ(model.dropout, 0.25);
  EXPECT_FALSE(model.stateful);
  EXPECT_TRUE(train.session.synchronise_batch_norm);
  EXPECT_EQ(train.steps, 10);
  EXPECT_EQ(train.save_folder, "out");
  EXPECT_EQ(train.save_every, 5);
  EXPECT_EQ(train.resume, "old");
  EXPECT_TRUE(train.augment);
  EXPECT_FALSE(train.evaluate);
  EXPECT_TRUE(train.session.debug);
  EXPECT_EQ(train.session.plan.budget.kind, api::Budget::Kind::kPercent);
  EXPECT_DOUBLE_EQ(train.session.plan.budget.percent, 40);
  EXPECT_EQ(train.session.plan.planner, "segments");
  EXPECT_EQ(train.session.plan.segments, 6);
  EXPECT_EQ(train.session.device, "reference");
  EXPECT_EQ(train.session.threads, 2);
  EXPECT_EQ(train.session.bucket_bytes, 3 << 20);
  EXPECT_EQ(train.session.seed, 77U);
  EXPECT_EQ(train.session.plan.seed, 77U);
  const auto& sgd = std::get<graph::SgdAttributes>(train.optimizer);
  EXPECT_TRUE(sgd.nesterov);
  EXPECT_DOUBLE_EQ(sgd.momentum, 0.8);
  EXPECT_DOUBLE_EQ(sgd.weight_decay, 0.01);
  EXPECT_EQ(sgd.rate.kind, graph::LearningRate::Kind::kStep);
  EXPECT_DOUBLE_EQ(sgd.rate.base, 0.5);
  EXPECT_DOUBLE_EQ(sgd.rate.factor, 0.5);
  EXPECT_EQ(sgd.rate.period_steps, 20);
  EXPECT_EQ(sgd.rate.warmup_steps, 3);
}

graph::Optimizer optimizer_of(const std::string& line) {
  CLI::App app;
  Flags flags;
  add_optimizer_flags(app, flags);
  app.parse(line);
  return complete_flags(flags).optimizer;
}

TEST(Flags, OptimizersHaveTheDefaultsTheHelpNames) {
  const auto usual = std::get<graph::SgdAttributes>(optimizer_of(""));
  EXPECT_DOUBLE_EQ(usual.momentum, 0.9);
  EXPECT_FALSE(usual.nesterov);
  EXPECT_DOUBLE_EQ(usual.rate.base, 0.05);
  EXPECT_DOUBLE_EQ(std::get<graph::SgdAttributes>(optimizer_of("--optimizer sgd")).momentum, 0);
  const auto adam = std::get<graph::AdamAttributes>(optimizer_of("--optimizer adam"));
  EXPECT_FALSE(adam.decoupled);
  EXPECT_DOUBLE_EQ(adam.weight_decay, 0);
  EXPECT_DOUBLE_EQ(adam.rate.base, 0.001);
  const auto adamw = std::get<graph::AdamAttributes>(optimizer_of("--optimizer adamw"));
  EXPECT_TRUE(adamw.decoupled);
  EXPECT_DOUBLE_EQ(adamw.weight_decay, 0.01);
}

}  // namespace
}  // namespace reprise::cli
