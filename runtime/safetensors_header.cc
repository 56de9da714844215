#include "runtime/safetensors_header.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <set>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "nlohmann/json.hpp"

#include "base/error.h"

namespace reprise::runtime {
namespace {

using nlohmann::json;

// More than any real header; a longer one is damage.
constexpr std::uint64_t kMaxHeaderBytes = 100'000'000;

constexpr std::array<StoredType, 3> kStoredTypes{
    {{graph::DType::kF32, "F32", 4}, {graph::DType::kI32, "I32", 4}, {graph::DType::kU8, "U8", 1}}};

// Parses JSON in which no object has a key twice (the parser alone would keep the last) and which
// is no deeper than a header is.
class StrictParser {
 public:
  explicit StrictParser(const std::string& file) : file_(file) {}

  json parse(const std::string& text) {
    try {
      return json::parse(text, [this](int depth, json::parse_event_t event, json& value) {
        return accept(depth, event, value);
      });
    } catch (const json::exception& error) {
      throw base::input_error("'{}': the header is not JSON: {}", file_,
                              base::json_reason(error.what()));
    }
  }

 private:
  bool accept(int depth, json::parse_event_t event, json& value) {
    using Event = json::parse_event_t;
    if (event == Event::object_start || event == Event::array_start) {
      if (depth > 2) throw base::input_error("'{}': the header is nested too deep", file_);
      if (event == Event::object_start) keys_[static_cast<std::size_t>(depth)].clear();
    }
    // A key has the depth of its object's content.
    if (event == Event::key &&
        !keys_.at(static_cast<std::size_t>(depth) - 1).insert(value).second) {
      throw base::input_error("'{}': the header has '{}' twice", file_, value.get<std::string>());
    }
    return true;
  }

  const std::string& file_;
  std::array<std::set<std::string>, 4> keys_;
};

// One entry of the header, which is wrong in the way that fail() says.
class TensorParser {
 public:
  TensorParser(const std::string& file, const std::string& name, std::uint64_t data_bytes)
      : file_(file), name_(name), data_bytes_(data_bytes) {}

  TensorPlace parse(const json& entry) const {
    if (!entry.is_object()) fail("is {}, not an object", entry.type_name());
    for (const auto& [key, value] : entry.items()) {
      if (key != "dtype" && key != "shape" && key != "data_offsets") {
        fail("has an unknown field '{}'", key);
      }
    }
    TensorPlace place;
    place.name = name_;
    const StoredType& type = parse_type(field(entry, "dtype"));
    place.dtype = type.dtype;
    std::uint64_t bytes = type.bytes;
    for (const std::uint64_t dim : numbers(field(entry, "shape"), "shape")) {
      if (dim > INT64_MAX || __builtin_mul_overflow(bytes, dim, &bytes) || bytes > INT64_MAX) {
        fail("has a shape beyond 2^63 bytes: {}", entry["shape"].dump());
      }
      place.shape.push_back(static_cast<graph::Dim>(dim));
    }
    const auto offsets = numbers(field(entry, "data_offsets"), "data_offsets");
    if (offsets.size() != 2) fail("has {} data_offsets in place of 2", offsets.size());
    place.begin = offsets[0];
    place.end = offsets[1];
    if (place.begin > place.end || place.end > data_bytes_) {
      fail("lies at [{}, {}), but the file has {} bytes of data", place.begin, place.end,
           data_bytes_);
    }
    if (place.end - place.begin != bytes) {
      fail("has {} bytes at [{}, {}), but {} of shape {} takes {}", place.end - place.begin,
           place.begin, place.end, type.name, entry["shape"].dump(), bytes);
    }
    return place;
  }

 private:
  template <class... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> format, Args&&... args) const {
    throw base::input_error("'{}': tensor '{}' {}", file_, name_,
                            fmt::format(format, std::forward<Args>(args)...));
  }

  const json& field(const json& entry, const char* key) const {
    const auto found = entry.find(key);
    if (found == entry.end()) fail("has no {}", key);
    return *found;
  }

  const StoredType& parse_type(const json& value) const {
    for (const StoredType& type : kStoredTypes) {
      if (value == type.name) return type;
    }
    fail("has dtype {}; F32, I32 and U8 can be read", value.dump());
  }

  std::vector<std::uint64_t> numbers(const json& value, const char* key) const {
    if (!value.is_array()) fail("has a {} that is no array: {}", key, value.dump());
    std::vector<std::uint64_t> result;
    for (const json& item : value) {
      if (!item.is_number_unsigned()) fail("has a {} with {}", key, item.dump());
      result.push_back(item.get<std::uint64_t>());
    }
    return result;
  }

  const std::string& file_;
  const std::string& name_;
  std::uint64_t data_bytes_;
};

std::map<std::string, std::string> parse_metadata(const std::string& file, const json& value) {
  if (!value.is_object()) {
    throw base::input_error("'{}': {} is {}, not an object", file, kMetadataKey, value.type_name());
  }
  std::map<std::string, std::string> metadata;
  for (const auto& [key, text] : value.items()) {
    if (!text.is_string()) {
      throw base::input_error("'{}': metadata '{}' is {}, not a string", file, key,
                              text.type_name());
    }
    metadata[key] = text.get<std::string>();
  }
  return metadata;
}

// Every byte of the data belongs to exactly one tensor.
void check_coverage(const std::string& file, std::vector<TensorPlace>& tensors,
                    std::uint64_t data_bytes) {
  std::stable_sort(tensors.begin(), tensors.end(), [](const auto& a, const auto& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  std::uint64_t covered = 0;
  for (const TensorPlace& tensor : tensors) {
    if (tensor.begin != covered) {
      throw base::input_error("'{}': tensor '{}' starts at {}, {} the tensor before it ends at {}",
                              file, tensor.name, tensor.begin,
                              tensor.begin < covered ? "overlapping:" : "leaving a gap:", covered);
    }
    covered = tensor.end;
  }
  if (covered != data_bytes) {
    throw base::input_error("'{}': the tensors take {} bytes, the file has {} bytes of data", file,
                            covered, data_bytes);
  }
}

std::string read_header_text(const RandomAccessFile& file) {
  std::uint64_t length = 0;
  if (file.bytes() < sizeof(length)) {
    throw base::input_error("'{}' is too short for a safetensors file: {} bytes", file.name(),
                            file.bytes());
  }
  file.read(0, std::as_writable_bytes(std::span(&length, 1)), "the header length");
  const std::uint64_t rest = file.bytes() - sizeof(length);
  if (length > rest || length > kMaxHeaderBytes) {
    throw base::input_error("'{}': the header claims {} bytes, the file has {} behind its length",
                            file.name(), length, rest);
  }
  std::string text(length, '\0');
  file.read(sizeof(length), std::as_writable_bytes(std::span(text)), "the header");
  return text;
}

}  // namespace

const StoredType& stored_type(graph::DType dtype) {
  for (const StoredType& type : kStoredTypes) {
    if (type.dtype == dtype) return type;
  }
  REPRISE_CHECK(false, "dtype {} has no form in a file", static_cast<int>(dtype));
  return kStoredTypes[0];
}

RandomAccessFile::RandomAccessFile(const std::filesystem::path& path) : name_(path.string()) {
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe must not hang
  if (descriptor_ < 0) throw base::input_error("cannot read '{}': {}", name_, std::strerror(errno));
  struct stat status {};
  const bool known = fstat(descriptor_, &status) == 0;
  if (!known || !S_ISREG(status.st_mode)) {
    close(descriptor_);
    throw base::input_error("cannot read '{}': {}", name_,
                            known && S_ISDIR(status.st_mode) ? "it is a folder" : "it is no file");
  }
  bytes_ = static_cast<std::uint64_t>(status.st_size);
}

RandomAccessFile::~RandomAccessFile() {
  close(descriptor_);
}

void RandomAccessFile::read(std::uint64_t at, std::span<std::byte> into,
                            std::string_view what) const {
  while (!into.empty()) {
    const ssize_t got = pread(descriptor_, into.data(), into.size(), static_cast<off_t>(at));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw base::input_error("'{}': {}: {}", name_, what, std::strerror(errno));
    if (got == 0) throw base::input_error("'{}': {} ends early, at byte {}", name_, what, at);
    at += static_cast<std::uint64_t>(got);
    into = into.subspan(static_cast<std::size_t>(got));
  }
}

SafetensorsHeader read_safetensors_header(const RandomAccessFile& file) {
  const std::string text = read_header_text(file);
  const json parsed = StrictParser(file.name()).parse(text);
  if (!parsed.is_object()) {
    throw base::input_error("'{}': the header is {}, not an object", file.name(),
                            parsed.type_name());
  }
  SafetensorsHeader header;
  header.data_start = sizeof(std::uint64_t) + text.size();
  const std::uint64_t data_bytes = file.bytes() - header.data_start;
  for (const auto& [name, entry] : parsed.items()) {
    if (name == kMetadataKey) {
      header.metadata = parse_metadata(file.name(), entry);
    } else {
      header.tensors.push_back(TensorParser(file.name(), name, data_bytes).parse(entry));
    }
  }
  check_coverage(file.name(), header.tensors, data_bytes);
  return header;
}

}  // namespace reprise::runtime
