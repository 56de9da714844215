#include "api/data_source.h"

#include <algorithm>
#include <utility>

#include "api/sources.h"
#include "base/error.h"
#include "runtime/dataset.h"

namespace reprise::api {
namespace {

constexpr std::int64_t kSyntheticBatches = 4;  // enough to see a loss fall, few enough to hold
constexpr std::int64_t kSyntheticVocabulary = 96;

bool is_sequence(std::string_view model) {
  const auto& models = models::all_models();
  const auto found = std::find_if(models.begin(), models.end(),
                                  [&](const auto& info) { return info.name == model; });
  return found != models.end() && found->sequence;
}

bool is_text(DataSpec::Kind kind) {
  return kind == DataSpec::Kind::kText;
}

void require_fit(const TrainOptions& train) {
  if (train.data.kind == DataSpec::Kind::kSynthetic) return;
  if (is_sequence(train.model) == is_text(train.data.kind)) return;
  if (is_text(train.data.kind)) {
    throw base::input_error("model '{}' takes images, but --data names a text; use lstm or gru",
                            train.model);
  }
  throw base::input_error("model '{}' takes a text, but --data names images; use text:FILE",
                          train.model);
}

// Takes what the data says unless the user said the same.
void take(std::int64_t& option, std::int64_t found, std::string_view flag, std::string_view data) {
  if (option != 0 && option != found) {
    throw base::input_error("{} says {}, but data set '{}' has {}; leave the flag out", flag,
                            option, data, found);
  }
  option = found;
}

void take_image_shape(const runtime::ImageDataset& data, models::ModelOptions& options) {
  take(options.channels, data.channels, "--image (channels)", data.name);
  take(options.height, data.height, "--image (height)", data.name);
  take(options.width, data.width, "--image (width)", data.name);
  take(options.classes, data.classes, "--classes", data.name);
}

runtime::ImageSplits load_images(const TrainOptions& train, const models::ModelOptions& complete) {
  switch (train.data.kind) {
    case DataSpec::Kind::kFashionMnist:
      return runtime::load_idx(train.data.path.empty() ? runtime::find_fashion_mnist()
                                                       : train.data.path);
    case DataSpec::Kind::kIdx:
      return runtime::load_idx(train.data.path);
    case DataSpec::Kind::kCifar10:
      return runtime::load_cifar10(train.data.path);
    default:
      return runtime::make_synthetic_images(complete.channels, complete.height, complete.width,
                                            complete.classes, kSyntheticBatches * complete.batch,
                                            train.session.seed);
  }
}

std::unique_ptr<DataSource> open_images(const TrainOptions& train, models::ModelOptions& options) {
  runtime::ImageSplits splits = load_images(train, models::complete_options(train.model, options));
  take_image_shape(splits.train, options);
  options = models::complete_options(train.model, options);
  return make_image_source(std::move(splits), options.batch, train.session.seed, train.augment);
}

std::unique_ptr<DataSource> open_text(const TrainOptions& train, models::ModelOptions& options) {
  runtime::TextDataset text;
  if (is_text(train.data.kind)) {
    text = runtime::load_text(train.data.path);
    take(options.vocabulary, text.vocabulary, "--vocabulary", text.name);
    options = models::complete_options(train.model, options);
  } else {
    if (options.vocabulary == 0) options.vocabulary = kSyntheticVocabulary;
    options = models::complete_options(train.model, options);
    // A tenth is the test part, and both parts need whole windows.
    const std::int64_t window = options.batch * (options.seq_len + 1);
    text = runtime::make_synthetic_text(options.vocabulary, 10 * kSyntheticBatches * window,
                                        train.session.seed);
  }
  return make_text_source(std::move(text), options.batch, options.seq_len);
}

}  // namespace

DataSpec parse_data(std::string_view text) {
  using Kind = DataSpec::Kind;
  constexpr std::string_view kForms =
      "fashion-mnist, fashion-mnist:DIR, idx:DIR, cifar10:DIR, text:FILE or synthetic";
  const std::size_t colon = text.find(':');
  const std::string_view name = text.substr(0, colon);
  const std::string_view path =
      colon == std::string_view::npos ? std::string_view{} : text.substr(colon + 1);
  if (name == "fashion-mnist" && (colon == std::string_view::npos || !path.empty()))
    return {Kind::kFashionMnist, path};
  if (name == "synthetic" && colon == std::string_view::npos) return {Kind::kSynthetic, {}};
  const Kind kind = name == "idx" ? Kind::kIdx : name == "cifar10" ? Kind::kCifar10 : Kind::kText;
  if (kind == Kind::kText && name != "text")
    throw base::input_error("data '{}': expected {}", text, kForms);
  if (path.empty())
    throw base::input_error("data '{}': a path must follow, as in {}:PATH", text, name);
  return {kind, path};
}

std::unique_ptr<DataSource> open_data(const TrainOptions& train, models::ModelOptions& options) {
  (void)models::complete_options(train.model,
                                 options);  // an unknown model is reported before any file is read
  require_fit(train);
  return is_sequence(train.model) ? open_text(train, options) : open_images(train, options);
}

void complete_from_data(const TrainOptions& train, models::ModelOptions& options) {
  if (train.data.kind == DataSpec::Kind::kSynthetic) {
    options = models::complete_options(train.model, options);
  } else {
    (void)open_data(train, options);
  }
}

}  // namespace reprise::api
