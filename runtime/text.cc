// Texts as tokens, and windows over them.

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "runtime/byte_source.h"
#include "runtime/dataset.h"

namespace reprise::runtime {

TextDataset load_text(const std::filesystem::path& file) {
  const auto source = open_bytes(file);
  const std::vector<std::uint8_t> bytes = read_rest(*source);
  if (bytes.empty()) throw base::input_error("'{}' is empty", source->name());

  std::array<std::int32_t, 256> tokens{};
  for (const std::uint8_t byte : bytes) tokens[byte] = 1;
  std::int32_t vocabulary = 0;
  for (std::int32_t& token : tokens) token = token != 0 ? vocabulary++ : -1;

  TextDataset text{
      .name = file.filename().string(), .vocabulary = vocabulary, .train = {}, .test = {}};
  const std::size_t train = bytes.size() - bytes.size() / 10;
  text.train.reserve(train);
  text.test.reserve(bytes.size() - train);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    (i < train ? text.train : text.test).push_back(tokens[bytes[i]]);
  }
  return text;
}

TextWindows::TextWindows(std::span<const std::int32_t> tokens, std::int64_t batch,
                         std::int64_t seq_len)
    : tokens_(tokens), batch_(batch), seq_len_(seq_len), stream_length_(0) {
  if (batch < 1 || seq_len < 1) {
    throw base::input_error("windows of {} streams and {} tokens: both must be at least 1", batch,
                            seq_len);
  }
  const std::int64_t needed =
      base::checked_mul(batch, base::checked_add(seq_len, 1, "window"), "window tokens");
  const auto found = static_cast<std::int64_t>(tokens.size());
  if (found < needed) {
    throw base::input_error(
        "the text is too short: {} streams with one window of {} tokens and its targets need {} "
        "tokens, found {}; use a smaller batch or sequence length",
        batch, seq_len, needed, found);
  }
  stream_length_ = found / batch;
}

std::int64_t TextWindows::windows() const {
  return (stream_length_ - 1) / seq_len_;
}

void TextWindows::fill(std::int64_t window, std::span<std::int32_t> tokens,
                       std::span<std::int32_t> targets) const {
  REPRISE_CHECK(window >= 0 && window < windows(), "window {} of {}", window, windows());
  const auto size = static_cast<std::size_t>(batch_ * seq_len_);
  REPRISE_CHECK(tokens.size() == size && targets.size() == size,
                "a window has {} tokens; buffers hold {} and {}", size, tokens.size(),
                targets.size());
  std::size_t to = 0;
  for (std::int64_t t = 0; t < seq_len_; ++t) {
    for (std::int64_t b = 0; b < batch_; ++b, ++to) {
      const auto from = static_cast<std::size_t>(b * stream_length_ + window * seq_len_ + t);
      tokens[to] = tokens_[from];
      targets[to] = tokens_[from + 1];
    }
  }
}

}  // namespace reprise::runtime
