#pragma once

// The header of a safetensors file: read with every claim checked against the file before anything
// is allocated for it.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/types.h"

namespace reprise::runtime {

inline constexpr const char* kMetadataKey = "__metadata__";

struct StoredType {
  graph::DType dtype;
  const char* name;  // in the file
  std::uint64_t bytes;
};
[[nodiscard]] const StoredType& stored_type(graph::DType dtype);

// A regular file open for reading. Throws Error(kInput) naming the file and the reason.
class RandomAccessFile {
 public:
  explicit RandomAccessFile(const std::filesystem::path& path);
  ~RandomAccessFile();
  RandomAccessFile(const RandomAccessFile&) = delete;
  RandomAccessFile& operator=(const RandomAccessFile&) = delete;

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }
  // Fills `into` from offset `at`; Error(kInput) when the file has become shorter than that.
  void read(std::uint64_t at, std::span<std::byte> into, std::string_view what) const;

 private:
  std::string name_;
  int descriptor_ = -1;
  std::uint64_t bytes_ = 0;
};

// Where one tensor lies, from the start of the data.
struct TensorPlace {
  std::string name;
  graph::DType dtype = graph::DType::kF32;
  graph::Shape shape;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
};

struct SafetensorsHeader {
  std::map<std::string, std::string> metadata;
  std::vector<TensorPlace> tensors;  // in the order of their bytes, without gap or overlap
  std::uint64_t data_start = 0;
};

// Throws as read_safetensors() does.
[[nodiscard]] SafetensorsHeader read_safetensors_header(const RandomAccessFile& file);

}  // namespace reprise::runtime
