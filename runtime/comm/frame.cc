#include "runtime/comm/frame.h"

namespace reprise::runtime::comm {
namespace {

constexpr std::string_view kMark = "RPS1";
constexpr std::size_t kHeader = 4 + 1 + 4;

template <class T>
void put(std::string& into, T value) {
  for (std::size_t i = 0; i < sizeof(T); ++i)
    into.push_back(static_cast<char>(value >> (8 * i) & 0xFF));
}

template <class T>
T take(std::string_view from) {
  T value = 0;
  for (std::size_t i = 0; i < sizeof(T); ++i)
    value |= static_cast<T>(static_cast<unsigned char>(from[i])) << (8 * i);
  return value;
}

}  // namespace

Frame& Frame::add(std::string_view text) {
  put<std::uint64_t>(fields, text.size());
  fields += text;
  return *this;
}

Frame& Frame::add_number(std::int64_t number) {
  put(fields, static_cast<std::uint64_t>(number));
  return *this;
}

std::string Frame::encoded() const {
  std::string bytes(kMark);
  bytes.push_back(static_cast<char>(type));
  put(bytes, static_cast<std::uint32_t>(fields.size()));
  return bytes + fields;
}

std::optional<std::int64_t> FieldReader::number() {
  if (rest_.size() < 8) return std::nullopt;
  const auto value = static_cast<std::int64_t>(take<std::uint64_t>(rest_));
  rest_.remove_prefix(8);
  return value;
}

std::optional<std::string> FieldReader::text() {
  const auto size = number();
  if (!size || *size < 0 || static_cast<std::uint64_t>(*size) > rest_.size()) return std::nullopt;
  std::string value(rest_.substr(0, static_cast<std::size_t>(*size)));
  rest_.remove_prefix(value.size());
  return value;
}

std::optional<Frame> FrameBuffer::next() {
  const std::string_view seen(bytes_);
  const std::size_t mark = std::min(seen.size(), kMark.size());
  if (broken_ || seen.substr(0, mark) != kMark.substr(0, mark)) {
    broken_ = true;
    return std::nullopt;
  }
  if (seen.size() < kHeader) return std::nullopt;
  const std::size_t size = take<std::uint32_t>(seen.substr(5));
  if (size > kMostBytes) {
    broken_ = true;
    return std::nullopt;
  }
  if (seen.size() < kHeader + size) return std::nullopt;
  Frame frame(static_cast<FrameType>(seen[4]));
  frame.fields = seen.substr(kHeader, size);
  bytes_.erase(0, kHeader + size);
  return frame;
}

}  // namespace reprise::runtime::comm
