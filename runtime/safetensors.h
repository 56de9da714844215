#pragma once

// The safetensors file format (8-byte little-endian header length, JSON header, raw little-endian
// tensors).

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "graph/types.h"

namespace reprise::runtime {

struct TensorEntry {
  std::string name;
  graph::DType dtype = graph::DType::kF32;
  graph::Shape shape;
  std::vector<std::byte> data;  // row-major, little-endian
};

struct TensorFile {
  std::map<std::string, std::string> metadata;
  std::vector<TensorEntry> tensors;
};

// Writes to a temporary name beside `path`, syncs file and folder, renames. A failure (disk full,
// no permission) is Error(kDevice) naming path and reason; what was at `path` before stays intact.
void write_safetensors(const std::filesystem::path& path, const TensorFile& file);

// Error(kInput) naming file and tensor for anything wrong: too short, header length beyond the
// file, bad JSON, unknown dtype, negative or overflowing shape, bytes that disagree with the shape,
// overlap, gaps, offsets beyond the end, duplicate names. Never allocates more than the file's size
// justifies.
[[nodiscard]] TensorFile read_safetensors(const std::filesystem::path& path);

}  // namespace reprise::runtime
