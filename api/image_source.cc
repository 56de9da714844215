// Images with labels: shuffled batches for training, padded batches in order for evaluation.

#include <algorithm>
#include <span>
#include <utility>

#include "api/data_source.h"
#include "api/sources.h"
#include "base/error.h"
#include "runtime/dataset.h"
#include "runtime/fingerprint.h"

namespace reprise::api {
namespace {

constexpr std::int64_t kAugmentationPadding = 4;  // He et al. 2016, section 4.2

class ImageSource final : public DataSource {
 public:
  ImageSource(std::shared_ptr<const runtime::ImageSplits> splits, std::int64_t batch,
              std::uint64_t seed, bool augment, const Shard& shard)
      : splits_(std::move(splits)),
        normalisation_(runtime::measure_normalisation(splits_->train)),
        augmentation_{.pad = augment ? kAugmentationPadding : 0, .flip = augment},
        batch_(batch),
        seed_(seed),
        shard_(shard) {
    if (splits_->train.items() < batch) {
      throw base::input_error("--batch {}: data set '{}' has only {} training images", batch,
                              splits_->train.name, splits_->train.items());
    }
    reserve(shard.planned(batch));
  }

  [[nodiscard]] std::int64_t steps_per_epoch() const override {
    return splits_->train.items() / batch_;
  }
  [[nodiscard]] std::int64_t items_per_step() const override { return batch_; }
  [[nodiscard]] std::string_view item_name() const override { return "images"; }
  [[nodiscard]] std::string fingerprint() const override {
    return runtime::fingerprint(splits_->train);
  }

  void fill(Session& session, std::int64_t epoch, std::int64_t index) override {
    if (epoch != order_epoch_) {
      order_ =
          runtime::shuffled_order(splits_->train.items(), seed_, static_cast<std::uint64_t>(epoch));
      order_epoch_ = epoch;
    }
    for (std::int64_t k = 0; k < shard_.micro_batches; ++k) {
      const auto items = std::span<const std::uint32_t>(order_).subspan(
          static_cast<std::size_t>(index * batch_ + shard_.begin(batch_, k)),
          static_cast<std::size_t>(shard_.count(batch_, k)));
      runtime::fill_image_batch(splits_->train, items, shard_.planned(batch_), normalisation_,
                                augmentation_, seed_, static_cast<std::uint64_t>(epoch), images_,
                                labels_);
      session.set_input(graph::micro_batch_name(k, "images"), std::as_bytes(std::span(images_)));
      session.set_input(graph::micro_batch_name(k, "labels"), std::as_bytes(std::span(labels_)));
    }
  }

  // The loss is the mean over the labels that count, which padding's do not.
  [[nodiscard]] float gradient_weight(std::int64_t micro_batch) const override {
    return static_cast<float>(static_cast<double>(shard_.count(batch_, micro_batch)) /
                              static_cast<double>(batch_));
  }

  void set_evaluation(const models::ModelOptions& options) override {
    evaluation_batch_ = options.batch;
  }

  [[nodiscard]] std::int64_t evaluation_parts() const override {
    return (splits_->test.items() + evaluation_batch_ - 1) / evaluation_batch_;
  }

  EvaluationPart fill_evaluation(Session& session, std::int64_t index) override {
    const std::int64_t first = index * evaluation_batch_;
    const std::int64_t count = std::min(evaluation_batch_, splits_->test.items() - first);
    std::vector<std::uint32_t> items(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < items.size(); ++i)
      items[i] = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(i);
    const std::size_t pixels = images_.size() / labels_.size();
    const auto images =
        std::span(images_).first(pixels * static_cast<std::size_t>(evaluation_batch_));
    const auto labels = std::span(labels_).first(static_cast<std::size_t>(evaluation_batch_));
    runtime::fill_image_batch(splits_->test, items, evaluation_batch_, normalisation_, {}, seed_, 0,
                              images, labels);
    session.set_evaluation_input("images", std::as_bytes(images));
    session.set_evaluation_input("labels", std::as_bytes(labels));
    return {.items = count, .divisor = count};
  }

 private:
  void reserve(std::int64_t batch) {
    const auto& data = splits_->train;
    images_.resize(static_cast<std::size_t>(batch * data.channels * data.height * data.width));
    labels_.resize(static_cast<std::size_t>(batch));
  }

  std::shared_ptr<const runtime::ImageSplits> splits_;
  runtime::Normalisation normalisation_;
  runtime::Augmentation augmentation_;
  std::int64_t batch_;
  std::int64_t evaluation_batch_ = 1;
  std::uint64_t seed_;
  Shard shard_;
  std::vector<std::uint32_t> order_;
  std::int64_t order_epoch_ = -1;
  std::vector<float> images_;
  std::vector<std::int32_t> labels_;
};

}  // namespace

std::unique_ptr<DataSource> make_image_source(std::shared_ptr<const runtime::ImageSplits> splits,
                                              std::int64_t batch, std::uint64_t seed, bool augment,
                                              const Shard& shard) {
  return std::make_unique<ImageSource>(std::move(splits), batch, seed, augment, shard);
}

}  // namespace reprise::api
