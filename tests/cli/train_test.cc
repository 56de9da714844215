// train: its document, budgets, resuming, damaged snapshots, stopping.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

std::vector<std::string> train_args(const std::vector<std::string>& flags) {
  return with(with({"train", "--json"}, kTiny), flags);
}

Json train(const std::vector<std::string>& flags) {
  const Ran ran = run_cli(train_args(flags));
  EXPECT_EQ(ran.code, 0) << ran.out << ran.err;
  return ran.document();
}

// The one snapshot of a folder.
std::filesystem::path snapshot_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().filename().string().find("snapshot") != std::string::npos) {
      found.push_back(entry.path());
    }
  }
  EXPECT_EQ(found.size(), 1U) << folder;
  return found.empty() ? std::filesystem::path() : found.front();
}

TEST(TrainCommand, TheDocumentHasTheFixedNames) {
  const Json document = train({"--steps", "3"});
  for (const char* name : {"plan", "steps", "losses", "ms_per_step", "peak_bytes_measured",
                           "process_overhead_bytes", "state_hash", "resumed_from", "world_size"}) {
    EXPECT_TRUE(document.contains(name)) << name;
  }
  EXPECT_EQ(document["steps"], 3);
  EXPECT_EQ(document["losses"].size(), 3U);
  EXPECT_EQ(document["resumed_from"], nullptr);
  EXPECT_EQ(document["world_size"], 1);
  EXPECT_EQ(document["plan"]["model"], "mlp");
  const auto hash = document["state_hash"].get<std::string>();
  EXPECT_EQ(hash.size(), 16U);
  EXPECT_EQ(hash.find_first_not_of("0123456789abcdef"), std::string::npos) << hash;
}

TEST(TrainCommand, TheDocumentTellsTheNormWhereItIsNeeded) {
  const Json plain = train({"--steps", "2"});
  EXPECT_EQ(plain["grad_norm"], nullptr);
  EXPECT_EQ(plain["skipped_steps"], 0);
  const Json guarded = train({"--steps", "2", "--skip-nonfinite"});
  EXPECT_GT(guarded["grad_norm"], 0.0);
  EXPECT_EQ(guarded["state_hash"], plain["state_hash"]);
  const Json clipped = train({"--steps", "2", "--clip-norm", "1e-3"});
  EXPECT_NE(clipped["state_hash"], plain["state_hash"]);
}

// What a run without the flag would have done is the same, so it may be added later; another clip
// is another run.
TEST(TrainCommand, ResumingMayAddSkippingButNotClipping) {
  const TempFolder folder;
  const std::string save = (folder / "run").string();
  train({"--steps", "2", "--save", save});
  const Json straight = train({"--steps", "4"});
  EXPECT_EQ(train({"--steps", "4", "--resume", save, "--skip-nonfinite"})["state_hash"],
            straight["state_hash"]);
  const Ran refused = run_cli(train_args({"--steps", "4", "--resume", save, "--clip-norm", "2"}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.out, HasSubstr("clip_norm=2"));
}

TEST(TrainCommand, MicroBatchesGiveTheLossesOfTheBatchAndBelongToTheRun) {
  const TempFolder folder;
  const std::string save = (folder / "run").string();
  const Json whole = train({"--steps", "3"});
  const Json cut = train({"--steps", "3", "--accumulate", "2", "--save", save});
  EXPECT_EQ(whole["plan"]["micro_batches"], 1);
  EXPECT_EQ(cut["plan"]["micro_batches"], 2);
  for (std::size_t i = 0; i < 3; ++i) {
    const auto wanted = whole["losses"][i].get<double>();
    EXPECT_NEAR(cut["losses"][i].get<double>(), wanted, 1e-5 * wanted);
  }
  const Ran refused = run_cli(train_args({"--steps", "4", "--resume", save}));
  EXPECT_EQ(refused.code, 2);
  EXPECT_THAT(refused.out, HasSubstr("micro-batches '2'"));
  EXPECT_EQ(train({"--steps", "4", "--accumulate", "2", "--resume", save})["state_hash"],
            train({"--steps", "4", "--accumulate", "2"})["state_hash"]);
}

TEST(TrainCommand, BudgetsChangeTheMemoryAndNothingElse) {
  const Json whole = train({"--steps", "5"});
  const Json tight = train({"--steps", "5", "--budget", "floor"});
  EXPECT_GT(tight["plan"]["recomputed_nodes"], 0);
  EXPECT_LT(tight["peak_bytes_measured"], whole["peak_bytes_measured"]);
  EXPECT_EQ(tight["peak_bytes_measured"], tight["plan"]["peak_bytes"]);
  EXPECT_EQ(tight["losses"], whole["losses"]);
  EXPECT_EQ(tight["state_hash"], whole["state_hash"]);
}

TEST(TrainCommand, SeedsAndOptimizersChangeTheState) {
  const Json usual = train({"--steps", "2"});
  EXPECT_NE(train({"--steps", "2", "--seed", "2"})["state_hash"], usual["state_hash"]);
  EXPECT_NE(train({"--steps", "2", "--optimizer", "adam"})["state_hash"], usual["state_hash"]);
  EXPECT_EQ(train({"--steps", "2"})["state_hash"], usual["state_hash"]);
}

TEST(TrainCommand, RefusesOneByteBelowTheFloor) {
  const auto floor =
      train({"--steps", "1", "--budget", "floor"})["plan"]["floor_bytes"].get<std::int64_t>();
  const Ran below = run_cli(train_args({"--steps", "1", "--budget", std::to_string(floor - 1)}));
  EXPECT_EQ(below.code, 3);
  EXPECT_EQ(below.document()["error"]["floor_bytes"], floor);
  train({"--steps", "1", "--budget", std::to_string(floor)});
}

TEST(TrainCommand, ResumesBitForBitAlsoUnderAnotherBudget) {
  const TempFolder folder;
  const std::string save = (folder / "run").string();
  const Json whole = train({"--steps", "6", "--lr-schedule", "step:2:0.5"});
  train({"--steps", "4", "--lr-schedule", "step:2:0.5", "--save", save});
  for (const char* budget : {"unlimited", "floor"}) {
    const Json rest = train(
        {"--steps", "6", "--lr-schedule", "step:2:0.5", "--resume", save, "--budget", budget});
    EXPECT_EQ(rest["resumed_from"], 4);
    EXPECT_EQ(rest["steps"], 2);
    EXPECT_EQ(rest["losses"], (Json{whole["losses"][4], whole["losses"][5]}));
    EXPECT_EQ(rest["state_hash"], whole["state_hash"]) << budget;
  }
}

TEST(TrainCommand, DamagedSnapshotsAreRefusedByName) {
  const TempFolder folder;
  const std::string save = (folder / "run").string();
  train({"--steps", "2", "--save", save});
  const std::filesystem::path snapshot = snapshot_in(save);
  const std::string good = read_file(snapshot);
  const auto resume = [&](const std::string& content) {
    write_file(snapshot, content);
    return run_cli(train_args({"--steps", "4", "--resume", snapshot.string()}));
  };
  EXPECT_EQ(resume(good).code, 0);
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{4}, good.size() / 10, good.size() / 2, good.size() - 1}) {
    const Ran cut = resume(good.substr(0, size));
    EXPECT_EQ(cut.code, 2) << size;
    EXPECT_THAT(cut.error_message(), HasSubstr(snapshot.string())) << size;
  }
  const Ran longer = resume(good + "x");
  EXPECT_EQ(longer.code, 2);
  EXPECT_THAT(longer.error_message(), HasSubstr(snapshot.string()));
}

TEST(TrainCommand, DamagedTensorsAreRefusedByTheirName) {
  const TempFolder folder;
  const std::string save = (folder / "run").string();
  train({"--steps", "2", "--save", save});
  const std::filesystem::path snapshot = snapshot_in(save);
  std::string bytes = read_file(snapshot);
  // Of one tensor the shape is changed: [3,16] has 192 bytes, [9,16] would need 576.
  const std::string good = R"("head.weight":{"dtype":"F32","shape":[3,16])";
  const std::size_t at = bytes.find(good);
  ASSERT_NE(at, std::string::npos);
  bytes.replace(at, good.size(), R"("head.weight":{"dtype":"F32","shape":[9,16])");
  write_file(snapshot, bytes);
  const Ran ran = run_cli(train_args({"--steps", "4", "--resume", snapshot.string()}));
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error_message(), HasSubstr(snapshot.string()));
  EXPECT_THAT(ran.error_message(), HasSubstr("head.weight"));
}

TEST(TrainCommand, SnapshotsOfAnotherModelAreRefused) {
  const TempFolder folder;
  const std::string save = (folder / "run").string();
  train({"--steps", "2", "--save", save});
  std::vector<std::string> args = train_args({"--steps", "4", "--resume", save});
  *std::find(args.begin(), args.end(), "16") = "24";  // --hidden
  const Ran other = run_cli(args);
  EXPECT_EQ(other.code, 2);
  EXPECT_THAT(other.error_message(), HasSubstr("model options 'hidden=16', now 'hidden=24'"));
}

TEST(TrainCommand, StopsAtTheNextStepWhenAsked) {
  const TempFolder folder;
  const std::string save = (folder / "run").string();
  const std::atomic<bool> stop{true};
  const Ran ran = run_cli(train_args({"--steps", "100000", "--save", save}), {.stop = &stop});
  EXPECT_EQ(ran.code, 0) << ran.out;
  EXPECT_LE(ran.document()["steps"], 1);
}

TEST(TrainCommand, SaysSoInWordsAndKeepsProgressOffStandardOutput) {
  const Ran ran = run_cli(with(with({"train"}, kTiny), {"--steps", "2"}));
  EXPECT_EQ(ran.code, 0);
  for (const char* word : {"loss", "step time", "peak", "budget", "state hash"}) {
    EXPECT_THAT(ran.out, HasSubstr(word));
  }
  EXPECT_THAT(ran.err, HasSubstr("synthetic"));
  EXPECT_THAT(ran.err, HasSubstr("planned"));
  EXPECT_EQ(ran.err.find('\r'), std::string::npos);  // no bar where there is no terminal
}

TEST(TrainCommand, DebugModeGivesTheSameBits) {
  EXPECT_EQ(train({"--steps", "2", "--budget", "floor", "--debug"})["state_hash"],
            train({"--steps", "2"})["state_hash"]);
}

TEST(TrainCommand, TextRunsOverAFile) {
  const TempFolder folder;
  const std::string book = (folder / "book.txt").string();
  std::string text;
  for (int i = 0; i < 400; ++i)
    text += "the quick brown fox jumps over line " + std::to_string(i) + "\n";
  write_file(book, text);
  const std::vector<std::string> args = {
      "train",   "--json",   "--model",   "lstm",      "--data",      "text:" + book, "--batch",
      "4",       "--hidden", "8",         "--seq-len", "16",          "--chunk",      "4",
      "--steps", "4",        "--threads", "1",         "--optimizer", "adam"};
  const Ran whole = run_cli(args);
  ASSERT_EQ(whole.code, 0) << whole.out;
  const Ran tight = run_cli(with(args, {"--budget", "floor"}));
  ASSERT_EQ(tight.code, 0) << tight.out;
  EXPECT_EQ(whole.document()["state_hash"], tight.document()["state_hash"]);
  EXPECT_EQ(whole.document()["losses"], tight.document()["losses"]);
  EXPECT_TRUE(whole.document()["test_accuracy"].is_number());
}

// 60 tokens: the last 6 are the test part. Two streams with a window of 8 and its targets need 18.
TEST(TrainCommand, AShortTextNamesItsTestPartAndTrainsWithoutIt) {
  const TempFolder folder;
  const std::string book = (folder / "book.txt").string();
  write_file(book, std::string("the quick brown fox jumps over the lazy dog and runs away at once")
                       .substr(0, 60));
  const std::vector<std::string> args = {"--model",  "lstm", "--data",    "text:" + book,
                                         "--batch",  "2",    "--hidden",  "4",
                                         "--layers", "1",    "--seq-len", "8",
                                         "--chunk",  "4",    "--threads", "1"};
  const Ran ran = run_cli(with(with({"train", "--json"}, args), {"--steps", "1"}));
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error_message(), HasSubstr("the test part, its last 6 of 60 tokens"));
  EXPECT_THAT(ran.error_message(), HasSubstr("need 18"));
  EXPECT_THAT(ran.error_message(), HasSubstr("--no-eval"));
  const Ran without = run_cli(with(with({"train", "--json"}, args), {"--steps", "1", "--no-eval"}));
  EXPECT_EQ(without.code, 0) << without.out;
  EXPECT_EQ(without.document()["test_loss"], nullptr);
  EXPECT_EQ(run_cli(with({"plan", "--json"}, args)).code, 0);  // a plan needs no test part
}

// Two training images of 2x2 pixels and no test set.
TEST(TrainCommand, WithoutEvaluationNoTestSetIsAskedFor) {
  const TempFolder folder;
  const auto header = [](std::vector<unsigned> axes) {
    std::string bytes = {0, 0, 8, static_cast<char>(axes.size())};
    for (const unsigned axis : axes) bytes += std::string{0, 0, 0, static_cast<char>(axis)};
    return bytes;
  };
  write_file(folder / "train-images-idx3-ubyte", header({2, 2, 2}) + "abcdefgh");
  write_file(folder / "train-labels-idx1-ubyte", header({2}) + std::string{0, 1});
  const std::vector<std::string> args = {
      "train",   "--json", "--model", "mlp", "--data",    "idx:" + folder.path().string(),
      "--batch", "2",      "--steps", "1",   "--threads", "1"};
  const Ran without = run_cli(with(args, {"--no-eval"}));
  EXPECT_EQ(without.code, 0) << without.out;
  const Ran ran = run_cli(args);
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.error_message(), HasSubstr("t10k-images-idx3-ubyte"));
}

TEST(TrainCommand, ModelAndDataMustFit) {
  const Ran ran = run_cli({"train", "--model", "lstm", "--data", "fashion-mnist"});
  EXPECT_EQ(ran.code, 2);
  EXPECT_THAT(ran.err, HasSubstr("lstm"));
}

TEST(Train, ATraceIsWrittenWhereItWasAskedFor) {
  const TempFolder folder;
  const std::string file = (folder / "step.json").string();
  const Ran ran = run_cli(with({"train", "--costs", "analytic", "--no-eval", "--steps", "4",
                                "--planner", "keep_all", "--trace", file, "--json"},
                               kTiny));
  ASSERT_EQ(ran.code, 0) << ran.err;
  EXPECT_EQ(ran.document()["trace"], file);
  EXPECT_THAT(ran.err, ::testing::HasSubstr("step 3"));
  const auto trace = nlohmann::json::parse(read_file(file));
  EXPECT_GT(trace["traceEvents"].size(), 10u);
  const Ran wrong = run_cli(with({"train", "--trace", "/no/such/folder/x.json"}, kTiny));
  EXPECT_EQ(wrong.code, 2);
  EXPECT_THAT(wrong.err, ::testing::HasSubstr("--trace"));
  EXPECT_THAT(wrong.err, ::testing::HasSubstr("/no/such/folder"));
}

}  // namespace
}  // namespace reprise::cli
