#pragma once

// Small data files in the formats that the loaders read, byte by byte.

#include <cstdint>
#include <initializer_list>
#include <stdexcept>
#include <string>
#include <zlib.h>

#include "tests/runtime/temp_folder.h"

namespace reprise::runtime::testing {

inline std::string big_endian(std::uint32_t number) {
  return {static_cast<char>(number >> 24), static_cast<char>(number >> 16),
          static_cast<char>(number >> 8), static_cast<char>(number)};
}

inline std::string idx(std::initializer_list<std::uint32_t> axes, const std::string& elements) {
  std::string bytes = big_endian(0x0800 + static_cast<std::uint32_t>(axes.size()));
  for (const std::uint32_t axis : axes) bytes += big_endian(axis);
  return bytes + elements;
}

inline std::string gzip(const std::string& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("deflateInit2 failed");
  }
  std::string out(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  if (deflate(&stream, Z_FINISH) != Z_STREAM_END) throw std::runtime_error("deflate failed");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// Three training images of 2x2 pixels 0..11 with labels 0 2 1; one test image with label 2.
inline std::string train_images() {
  return idx({3, 2, 2}, std::string("\0\1\2\3\4\5\6\7\10\11\12\13", 12));
}
inline std::string train_labels() {
  return idx({3}, std::string("\0\2\1", 3));
}
inline std::string test_images() {
  return idx({1, 2, 2}, std::string("\11\11\11\11", 4));
}
inline std::string test_labels() {
  return idx({1}, "\2");
}

inline void write_idx_folder(const TempFolder& folder) {
  write_file(folder / "train-images-idx3-ubyte", train_images());
  write_file(folder / "train-labels-idx1-ubyte", train_labels());
  write_file(folder / "t10k-images-idx3-ubyte", test_images());
  write_file(folder / "t10k-labels-idx1-ubyte", test_labels());
}

}  // namespace reprise::runtime::testing
