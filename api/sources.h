#pragma once

// The two kinds of data source (api/data_source.h).

#include <cstdint>
#include <memory>

#include "api/data_source.h"
#include "runtime/dataset.h"

namespace reprise::api {

[[nodiscard]] std::unique_ptr<DataSource> make_image_source(
    std::shared_ptr<const runtime::ImageSplits> splits, std::int64_t batch, std::uint64_t seed,
    bool augment, const Shard& shard);
// With `evaluate`, Error(kInput) when the test part is too short for one window.
[[nodiscard]] std::unique_ptr<DataSource> make_text_source(
    std::shared_ptr<const runtime::TextDataset> text, std::int64_t batch, std::int64_t seq_len,
    bool evaluate, const Shard& shard);

}  // namespace reprise::api
