// What a snapshot and the command line may not differ in, and what changed data looks like.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/command.h"

#include "runtime/snapshot.h"
#include "tests/cli/run_cli.h"

namespace reprise::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

// 600 bytes over the vocabulary a to h, which each part has whole: the last tenth is the test part.
std::string book_text() {
  std::string text;
  for (int i = 0; i < 600; ++i) text += static_cast<char>('a' + (i * 5 + i / 8) % 8);
  return text;
}

class ResumeRefusal : public ::testing::Test {
 protected:
  ResumeRefusal() { write_file(book_, book_text()); }

  [[nodiscard]] std::vector<std::string> flags(const std::vector<std::string>& more) const {
    return with({"train", "--json", "--model", "lstm", "--data", "text:" + book_.string(),
                 "--hidden", "4", "--layers", "1", "--chunk", "4", "--threads", "1", "--no-eval"},
                more);
  }
  // Two steps of a run with dropout, a batch of 2 and windows of 8.
  void save() const {
    const Ran ran = run_cli(flags(with(kSaved, {"--steps", "2", "--save", run_.string()})));
    ASSERT_EQ(ran.code, kOk) << ran.out;
  }
  [[nodiscard]] Ran resume(const std::vector<std::string>& more) const {
    return run_cli(flags(with(more, {"--steps", "4", "--resume", run_.string()})));
  }

  const std::vector<std::string> kSaved = {"--batch",       "2",         "--seq-len", "8",
                                           "--dropout",     "0.5",       "--lr",      "0.1",
                                           "--lr-schedule", "step:1:0.5"};
  TempFolder folder_;
  const std::filesystem::path book_ = folder_ / "book.txt";
  const std::filesystem::path run_ = folder_ / "run";
};

// The planner would refuse the budget of one byte with exit code 3, so it has not been asked.
TEST_F(ResumeRefusal, EveryDifferenceIsNamedWithBothValuesBeforePlanning) {
  save();
  const Ran ran = resume({"--batch", "4", "--seq-len", "8", "--dropout", "0.25", "--lr", "0.2",
                          "--lr-schedule", "step:3:0.5", "--seed", "5", "--budget", "1"});
  EXPECT_EQ(ran.code, kUsage);
  const std::string said = ran.error_message();
  EXPECT_THAT(said, HasSubstr(run_.string()));
  EXPECT_THAT(said, HasSubstr("model options 'batch=2 dropout=0.5', now 'batch=4 dropout=0.25'"));
  EXPECT_THAT(said,
              HasSubstr("optimizer 'rate=0.1 period_steps=1', now 'rate=0.2 period_steps=3'"));
  EXPECT_THAT(said, HasSubstr("seed '1', now '5'"));
  EXPECT_THAT(said, Not(HasSubstr("hidden=")));  // what agrees is not listed
  EXPECT_THAT(said, Not(HasSubstr("contents")));
  EXPECT_THAT(said, HasSubstr("train anew without --resume"));
}

TEST_F(ResumeRefusal, AnotherPrecisionIsNamedWithBoth) {
  save();
  const Ran ran = resume(with(kSaved, {"--precision", "bf16"}));
  EXPECT_EQ(ran.code, kUsage);
  EXPECT_THAT(ran.error_message(), HasSubstr("precision 'f32', now 'bf16'"));
}

TEST_F(ResumeRefusal, TheSameSettingsGoOn) {
  save();
  const Ran ran = resume(kSaved);
  EXPECT_EQ(ran.code, kOk) << ran.out;
  EXPECT_EQ(ran.document().at("warnings").dump(), "[]");
}

// Two neighbours of the training part change places: as many tokens, the same vocabulary.
TEST_F(ResumeRefusal, DataWhoseContentsChangedIsRefusedWithBothFingerprints) {
  save();
  std::string text = book_text();
  ASSERT_NE(text[100], text[101]);
  std::swap(text[100], text[101]);
  write_file(book_, text);
  const Ran ran = resume(with(kSaved, {"--budget", "1"}));
  EXPECT_EQ(ran.code, kUsage);
  const std::string said = ran.error_message();
  // From Python's zlib.crc32 over the 540 ids of the training part as little-endian 32-bit
  // integers.
  EXPECT_THAT(said, HasSubstr("contents of data 'text book.txt' '540 tokens, crc32 c47e0309'"));
  EXPECT_THAT(said, HasSubstr("now '540 tokens, crc32 d87006ee'"));
  EXPECT_THAT(said, HasSubstr("the data of the snapshot's run"));
  EXPECT_THAT(said, Not(HasSubstr("model options")));
}

// No step of training reads the test part.
TEST_F(ResumeRefusal, AnotherTestPartDoesNotMatter) {
  save();
  std::string text = book_text();
  ASSERT_NE(text[590], text[591]);
  std::swap(text[590], text[591]);
  write_file(book_, text);
  EXPECT_EQ(resume(kSaved).code, kOk);
}

TEST_F(ResumeRefusal, SnapshotsWithoutAFingerprintGoOnWithAWarning) {
  save();
  runtime::Snapshot old = runtime::load_latest_snapshot(run_);
  ASSERT_EQ(old.config.erase("data contents"), 1U);
  runtime::save_snapshot(run_, old);
  const Ran ran = resume(kSaved);
  EXPECT_EQ(ran.code, kOk) << ran.out;
  for (const std::string& said : {ran.document().at("warnings").dump(), ran.err}) {
    EXPECT_THAT(said, AllOf(HasSubstr(run_.string()), HasSubstr("taken on trust")));
  }
}

// A later program's setting that this one would not honour.
TEST_F(ResumeRefusal, SettingsThatThisProgramDoesNotKnowAreRefused) {
  save();
  runtime::Snapshot newer = runtime::load_latest_snapshot(run_);
  newer.config["clip"] = "0.5";
  runtime::save_snapshot(run_, newer);
  const Ran ran = resume(kSaved);
  EXPECT_EQ(ran.code, kUsage);
  EXPECT_THAT(ran.error_message(), HasSubstr("clip '0.5', now '(nothing)'"));
}

}  // namespace
}  // namespace reprise::cli
