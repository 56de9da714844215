#pragma once

// Feeds a session from a data set: which items make up which batch, for training and for
// evaluation.

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <tuple>

#include "api/session.h"
#include "api/shard.h"
#include "api/trainer.h"
#include "models/model.h"
#include "runtime/dataset.h"

namespace reprise::api {

class DataSource {
 public:
  virtual ~DataSource() = default;

  // Full batches of all ranks in one pass; a short last batch of a training pass is dropped (other
  // items each epoch, since the order is shuffled).
  [[nodiscard]] virtual std::int64_t steps_per_epoch() const = 0;
  [[nodiscard]] virtual std::int64_t items_per_step() const = 0;
  [[nodiscard]] virtual std::string_view item_name() const = 0;  // "images", "tokens"

  // Of the training part's contents (runtime/fingerprint.h). Reads all of it, so not for each step.
  [[nodiscard]] virtual std::string fingerprint() const = 0;

  // Writes this rank's part of batch `index` of epoch `epoch` into the session's inputs, those of
  // all its micro-batches; a pure function of (seed, epoch, index).
  virtual void fill(Session& session, std::int64_t epoch, std::int64_t index) = 0;

  // The weight of this rank's loss (that of one micro-batch) in the mean over the global batch; 1
  // for one rank alone.
  [[nodiscard]] virtual float gradient_weight(std::int64_t micro_batch = 0) const = 0;

  // Prepares for evaluation with a model of this rank's batch and of this sequence length.
  virtual void set_evaluation(const models::ModelOptions& options) = 0;
  // All ranks share an evaluation: of its parts rank r has r, r + ranks, r + 2 ranks, ...
  [[nodiscard]] virtual std::int64_t evaluation_parts() const = 0;
  struct EvaluationPart {
    std::int64_t items = 0;    // labels that count
    std::int64_t divisor = 0;  // the part's loss is a sum over them, divided by this
  };
  // Writes part `index`, one of this rank's; in rising order, since state is carried on.
  virtual EvaluationPart fill_evaluation(Session& session, std::int64_t index) = 0;
};

// What runs of one process load once: the first to come loads, others wait. All of them must name
// the same data.
class DataCache {
 public:
  template <class Data, class Load>
  [[nodiscard]] std::shared_ptr<const Data> get(const Load& load) {
    const std::lock_guard lock(mutex_);
    auto& data = std::get<std::shared_ptr<const Data>>(loaded_);
    if (!data) data = std::make_shared<const Data>(load());
    return data;
  }

 private:
  std::mutex mutex_;
  std::tuple<std::shared_ptr<const runtime::ImageSplits>,
             std::shared_ptr<const runtime::TextDataset>>
      loaded_;
};

// For the shard's part of global batches of `options.batch` items. Loads the data and completes
// `options` with what it says: image size and classes, or vocabulary. Throws Error(kInput) when an
// option disagrees with the data (names both), when model and data do not fit together (images for
// a language model), or when there are fewer items than one batch.
[[nodiscard]] std::unique_ptr<DataSource> open_data(const TrainOptions& train,
                                                    models::ModelOptions& options,
                                                    const Shard& shard = {});

// The options completed as open_data() would, without loading more than needed (for `plan`).
void complete_from_data(const TrainOptions& train, models::ModelOptions& options);

}  // namespace reprise::api
