// A text as consecutive windows: window w continues where window w - 1 ended, so that recurrent
// state carries on.

#include <span>
#include <utility>

#include "api/data_source.h"
#include "api/sources.h"
#include "base/bytes.h"
#include "base/error.h"
#include "runtime/dataset.h"
#include "runtime/fingerprint.h"

namespace reprise::api {
namespace {

class TextSource final : public DataSource {
 public:
  TextSource(std::shared_ptr<const runtime::TextDataset> text, std::int64_t batch,
             std::int64_t seq_len, const Shard& shard)
      : text_(std::move(text)),
        batch_(batch),
        seq_len_(seq_len),
        shard_(shard),
        training_(text_->train, batch, seq_len) {
    tokens_.resize(static_cast<std::size_t>(batch * seq_len));
    targets_.resize(tokens_.size());
    own_tokens_.resize(static_cast<std::size_t>(shard.of_rank().planned(batch) * seq_len));
    own_targets_.resize(own_tokens_.size());
  }

  [[nodiscard]] std::int64_t steps_per_epoch() const override { return training_.windows(); }
  [[nodiscard]] std::int64_t items_per_step() const override { return batch_ * seq_len_; }
  [[nodiscard]] std::string_view item_name() const override { return "tokens"; }
  [[nodiscard]] std::string fingerprint() const override {
    return runtime::fingerprint(text_->train);
  }

  void fill(Session& session, std::int64_t /*epoch*/, std::int64_t index) override {
    training_.fill(index, tokens_, targets_);
    const auto own = static_cast<std::size_t>(shard_.planned(batch_) * seq_len_);
    for (std::int64_t k = 0; k < shard_.micro_batches; ++k) {
      take_streams(shard_, k, tokens_, own_tokens_, 0);
      take_streams(shard_, k, targets_, own_targets_, kIgnoredTarget);
      session.set_input(graph::micro_batch_name(k, "tokens"),
                        std::as_bytes(std::span(own_tokens_).first(own)));
      session.set_input(graph::micro_batch_name(k, "targets"),
                        std::as_bytes(std::span(own_targets_).first(own)));
    }
  }

  // The loss is the sum over the tokens that count, divided by all that are planned for.
  [[nodiscard]] float gradient_weight(std::int64_t /*micro_batch*/) const override {
    return static_cast<float>(static_cast<double>(shard_.planned(batch_)) /
                              static_cast<double>(batch_));
  }

  void set_evaluation(const models::ModelOptions& options) override {
    evaluation_seq_len_ = options.seq_len;
    evaluation_.emplace(text_->test, batch_, options.seq_len);
  }

  // Each rank has the same streams in every window.
  [[nodiscard]] std::int64_t evaluation_parts() const override {
    return evaluation_->windows() * shard_.ranks;
  }

  EvaluationPart fill_evaluation(Session& session, std::int64_t index) override {
    const auto all = static_cast<std::size_t>(batch_ * evaluation_seq_len_);
    const Shard rank = shard_.of_rank();
    const auto own = static_cast<std::size_t>(rank.planned(batch_) * evaluation_seq_len_);
    evaluation_->fill(index / shard_.ranks, std::span(tokens_).first(all),
                      std::span(targets_).first(all));
    take_streams(rank, 0, std::span(tokens_).first(all), std::span(own_tokens_).first(own), 0);
    take_streams(rank, 0, std::span(targets_).first(all), std::span(own_targets_).first(own),
                 kIgnoredTarget);
    session.set_evaluation_input("tokens", std::as_bytes(std::span(own_tokens_).first(own)));
    session.set_evaluation_input("targets", std::as_bytes(std::span(own_targets_).first(own)));
    return {.items = rank.count(batch_) * evaluation_seq_len_,
            .divisor = rank.planned(batch_) * evaluation_seq_len_};
  }

 private:
  static constexpr std::int32_t kIgnoredTarget = -100;

  // The columns of [time, streams] that the shard's micro-batch has, and `padding` where it has
  // fewer than planned for.
  void take_streams(const Shard& shard, std::int64_t micro_batch, std::span<const std::int32_t> all,
                    std::span<std::int32_t> own, std::int32_t padding) const {
    const auto streams = static_cast<std::size_t>(batch_);
    const auto planned = static_cast<std::size_t>(shard.planned(batch_));
    const auto begin = static_cast<std::size_t>(shard.begin(batch_, micro_batch));
    const auto count = static_cast<std::size_t>(shard.count(batch_, micro_batch));
    for (std::size_t t = 0; t < all.size() / streams; ++t) {
      for (std::size_t i = 0; i < planned; ++i)
        own[t * planned + i] = i < count ? all[t * streams + begin + i] : padding;
    }
  }

  std::shared_ptr<const runtime::TextDataset> text_;
  std::int64_t batch_, seq_len_;
  Shard shard_;
  runtime::TextWindows training_;
  std::optional<runtime::TextWindows> evaluation_;
  std::int64_t evaluation_seq_len_ = 0;
  std::vector<std::int32_t> tokens_, targets_;  // of all ranks
  std::vector<std::int32_t> own_tokens_, own_targets_;
};

// The whole window of training, although a tight budget may evaluate with shorter ones: whether a
// text will do is no matter of the budget.
void require_test_window(const runtime::TextDataset& text, std::int64_t batch,
                         std::int64_t seq_len) {
  const std::int64_t needed =
      base::checked_mul(batch, base::checked_add(seq_len, 1, "window"), "window tokens");
  const auto found = static_cast<std::int64_t>(text.test.size());
  const auto all = found + static_cast<std::int64_t>(text.train.size());
  if (found >= needed) return;
  throw base::input_error(
      "text '{}': the test part, its last {} of {} tokens, is too short: {} streams with one "
      "window of {} tokens and its targets need {}; use --no-eval to train without a test, a "
      "longer text, or a smaller --batch or --seq-len",
      text.name, found, all, batch, seq_len, needed);
}

}  // namespace

std::unique_ptr<DataSource> make_text_source(std::shared_ptr<const runtime::TextDataset> text,
                                             std::int64_t batch, std::int64_t seq_len,
                                             bool evaluate, const Shard& shard) {
  if (evaluate) require_test_window(*text, batch, seq_len);
  return std::make_unique<TextSource>(std::move(text), batch, seq_len, shard);
}

}  // namespace reprise::api
