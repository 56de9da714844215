#include "runtime/safetensors.h"

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "fmt/ranges.h"
#include "nlohmann/json.hpp"

#include "base/error.h"
#include "runtime/atomic_file.h"
#include "runtime/safetensors_header.h"

namespace reprise::runtime {
namespace {

static_assert(std::endian::native == std::endian::little, "tensor bytes are copied as they are");

nlohmann::ordered_json header_of(const std::string& path, const TensorFile& file) {
  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!file.metadata.empty()) header[kMetadataKey] = file.metadata;
  std::uint64_t at = 0;
  for (const TensorEntry& tensor : file.tensors) {
    const StoredType& type = stored_type(tensor.dtype);
    std::uint64_t bytes = type.bytes;
    for (const graph::Dim dim : tensor.shape) bytes *= static_cast<std::uint64_t>(dim);
    REPRISE_CHECK(bytes == tensor.data.size(), "tensor '{}' of {} bytes has shape [{}]",
                  tensor.name, tensor.data.size(), fmt::join(tensor.shape, ","));
    if (tensor.name == kMetadataKey || header.contains(tensor.name)) {
      throw base::input_error("cannot write '{}': tensor name '{}' is {}", path, tensor.name,
                              tensor.name == kMetadataKey ? "reserved" : "used twice");
    }
    header[tensor.name] = {
        {"dtype", type.name}, {"shape", tensor.shape}, {"data_offsets", {at, at + bytes}}};
    at += bytes;
  }
  return header;
}

std::string header_text(const std::string& path, const TensorFile& file) {
  std::string text;
  try {
    text = header_of(path, file).dump();
  } catch (const nlohmann::json::exception& error) {
    throw base::input_error("cannot write '{}': a name or metadata is not UTF-8 ({})", path,
                            error.what());
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data then starts at a multiple of 8
  return text;
}

}  // namespace

void write_safetensors(const std::filesystem::path& path, const TensorFile& file) {
  const std::string header = header_text(path.string(), file);
  const std::uint64_t length = header.size();
  AtomicFile out(path);
  out.write(std::as_bytes(std::span(&length, 1)));
  out.write(std::as_bytes(std::span(header)));
  for (const TensorEntry& tensor : file.tensors) out.write(tensor.data);
  out.commit();
}

TensorFile read_safetensors(const std::filesystem::path& path) {
  RandomAccessFile in(path);
  SafetensorsHeader header = read_safetensors_header(in);
  TensorFile file;
  file.metadata = std::move(header.metadata);
  file.tensors.reserve(header.tensors.size());
  for (TensorPlace& place : header.tensors) {
    TensorEntry tensor{.name = std::move(place.name),
                       .dtype = place.dtype,
                       .shape = std::move(place.shape),
                       .data = std::vector<std::byte>(place.end - place.begin)};
    in.read(header.data_start + place.begin, tensor.data, fmt::format("tensor '{}'", tensor.name));
    file.tensors.push_back(std::move(tensor));
  }
  return file;
}

}  // namespace reprise::runtime
