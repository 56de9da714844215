#include "api/data_source.h"

#include <algorithm>
#include <utility>

#include "api/sources.h"
#include "base/bytes.h"
#include "base/error.h"
#include "runtime/dataset.h"
#include "runtime/memory_info.h"

namespace reprise::api {
namespace {

constexpr std::int64_t kSyntheticBatches = 4;  // enough to see a loss fall, few enough to hold
constexpr std::int64_t kSyntheticVocabulary = 96;

// Synthetic data grows with the batch, so a slip in --batch shows here first.
void require_memory(base::Bytes needed, std::string_view what, std::string_view flags) {
  const base::Bytes available = runtime::available_memory_bytes();
  if (needed <= available) return;
  throw base::device_error(
      "{} need {} bytes ({}) of the host, but {} bytes ({}) are available; use a smaller {}", what,
      needed, base::format_bytes(needed), available, base::format_bytes(available), flags);
}

// Pixels as bytes and labels of the whole set, and one batch of both as it goes into a step.
void require_memory_for_images(const models::ModelOptions& o) {
  using base::checked_add;
  using base::checked_mul;
  constexpr std::string_view kWhat = "synthetic images";
  const std::int64_t pixels = checked_mul(checked_mul(o.channels, o.height, kWhat), o.width, kWhat);
  const std::int64_t of_set = checked_mul(kSyntheticBatches, checked_add(pixels, 4, kWhat), kWhat);
  const std::int64_t of_batch = checked_mul(4, checked_add(pixels, 1, kWhat), kWhat);
  const std::int64_t per_item = checked_add(of_set, of_batch, kWhat);
  require_memory(checked_mul(o.batch, per_item, kWhat),
                 fmt::format("synthetic images for --batch {}", o.batch), "--batch or --image");
}

void require_memory_for_text(const models::ModelOptions& o, std::int64_t tokens) {
  require_memory(base::checked_mul(4, tokens, "synthetic text"),
                 fmt::format("{} tokens of synthetic text for --batch {} and --seq-len {}", tokens,
                             o.batch, o.seq_len),
                 "--batch or --seq-len");
}

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

// Through the cache where the run has one.
template <class Data, class Load>
std::shared_ptr<const Data> loaded(const TrainOptions& train, const Load& load) {
  if (train.data_cache) return train.data_cache->get<Data>(load);
  return std::make_shared<const Data>(load());
}

runtime::ImageSplits load_images(const TrainOptions& train, const models::ModelOptions& complete) {
  const auto test = train.evaluate ? runtime::TestPart::kLoad : runtime::TestPart::kLeaveOut;
  switch (train.data.kind) {
    case DataSpec::Kind::kFashionMnist:
      return runtime::load_idx(
          train.data.path.empty() ? runtime::find_fashion_mnist() : train.data.path, test);
    case DataSpec::Kind::kIdx:
      return runtime::load_idx(train.data.path, test);
    case DataSpec::Kind::kCifar10:
      return runtime::load_cifar10(train.data.path, test);
    default:
      require_memory_for_images(complete);
      return runtime::make_synthetic_images(complete.channels, complete.height, complete.width,
                                            complete.classes, kSyntheticBatches * complete.batch,
                                            train.session.seed);
  }
}

std::unique_ptr<DataSource> open_images(const TrainOptions& train, models::ModelOptions& options,
                                        const Shard& shard) {
  const auto complete = models::complete_options(train.model, options);
  auto splits = loaded<runtime::ImageSplits>(train, [&] { return load_images(train, complete); });
  take_image_shape(splits->train, options);
  options = models::complete_options(train.model, options);
  return make_image_source(std::move(splits), options.batch, train.session.seed, train.augment,
                           shard);
}

std::unique_ptr<DataSource> open_text(const TrainOptions& train, models::ModelOptions& options,
                                      const Shard& shard) {
  std::shared_ptr<const runtime::TextDataset> text;
  if (is_text(train.data.kind)) {
    text = loaded<runtime::TextDataset>(train, [&] { return runtime::load_text(train.data.path); });
    take(options.vocabulary, text->vocabulary, "--vocabulary", text->name);
    options = models::complete_options(train.model, options);
  } else {
    if (options.vocabulary == 0) options.vocabulary = kSyntheticVocabulary;
    options = models::complete_options(train.model, options);
    // A tenth is the test part, and both parts need whole windows.
    constexpr std::string_view kWhat = "synthetic text";
    const std::int64_t window =
        base::checked_mul(options.batch, base::checked_add(options.seq_len, 1, kWhat), kWhat);
    const std::int64_t tokens = base::checked_mul(10 * kSyntheticBatches, window, kWhat);
    require_memory_for_text(options, tokens);
    text = loaded<runtime::TextDataset>(train, [&] {
      return runtime::make_synthetic_text(options.vocabulary, tokens, train.session.seed);
    });
  }
  return make_text_source(std::move(text), options.batch, options.seq_len, train.evaluate, shard);
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

std::unique_ptr<DataSource> open_data(const TrainOptions& train, models::ModelOptions& options,
                                      const Shard& shard) {
  (void)models::complete_options(train.model,
                                 options);  // an unknown model is reported before any file is read
  require_fit(train);
  return is_sequence(train.model) ? open_text(train, options, shard)
                                  : open_images(train, options, shard);
}

void complete_from_data(const TrainOptions& train, models::ModelOptions& options) {
  if (train.data.kind == DataSpec::Kind::kSynthetic) {
    options = models::complete_options(train.model, options);
  } else {
    TrainOptions sizes = train;
    sizes.evaluate = false;  // the test part says nothing about a step
    sizes.data_cache = nullptr;
    (void)open_data(sizes, options);
  }
}

}  // namespace reprise::api
