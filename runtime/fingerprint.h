#pragma once

// A short text by which the data of a training run is known again: how much there is and its
// CRC-32. Two data sets of one text are the same to training, but for one chance in 2^32.

#include <cstdint>
#include <span>
#include <string>

#include "runtime/dataset.h"

namespace reprise::runtime {

// Over pixels and labels: "60000 images of 1x28x28, crc32 1a2b3c4d".
[[nodiscard]] std::string fingerprint(const ImageDataset& images);
// Over the ids: "900000 tokens, crc32 1a2b3c4d".
[[nodiscard]] std::string fingerprint(std::span<const std::int32_t> tokens);

}  // namespace reprise::runtime
