#include "runtime/fingerprint.h"

#include "fmt/format.h"

#include "zlib.h"

namespace reprise::runtime {
namespace {

template <class T>
uLong add(uLong crc, std::span<const T> items) {
  return crc32_z(crc, reinterpret_cast<const Bytef*>(items.data()), items.size_bytes());
}

}  // namespace

std::string fingerprint(const ImageDataset& images) {
  uLong crc = crc32(0, nullptr, 0);
  crc = add<std::uint8_t>(crc, images.pixels);
  crc = add<std::int32_t>(crc, images.labels);
  return fmt::format("{} images of {}x{}x{}, crc32 {:08x}", images.items(), images.channels,
                     images.height, images.width, crc);
}

std::string fingerprint(std::span<const std::int32_t> tokens) {
  return fmt::format("{} tokens, crc32 {:08x}", tokens.size(), add(crc32(0, nullptr, 0), tokens));
}

}  // namespace reprise::runtime
