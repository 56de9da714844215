#pragma once

// The bytes of a data file from its start to its end, plain or through gzip.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::runtime {

// Every fault is Error(kInput) naming the file: not there, a folder, not in gzip form, cut off,
// damaged (checksum), bytes behind the end of the gzip stream, more than 1 GiB of a pipe or device.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  [[nodiscard]] const std::string& name() const { return name_; }
  // Fills as much of `into` as there are bytes left; fewer than its size only at the end.
  [[nodiscard]] virtual std::size_t read(std::span<std::uint8_t> into) = 0;

 protected:
  explicit ByteSource(std::string name) : name_(std::move(name)) {}

 private:
  std::string name_;
};

// Files whose name ends in .gz are read through gzip, all others as they are.
[[nodiscard]] std::unique_ptr<ByteSource> open_bytes(const std::filesystem::path& path);

// The next `count` bytes, which `what` names in the error when the file ends before. Memory grows
// with the bytes that arrive.
[[nodiscard]] std::vector<std::uint8_t> read_exactly(ByteSource& source, std::uint64_t count,
                                                     std::string_view what);
// All bytes that are left.
[[nodiscard]] std::vector<std::uint8_t> read_rest(ByteSource& source);
// Error(kInput) naming `expected` when bytes are left.
void require_end(ByteSource& source, std::string_view expected);

}  // namespace reprise::runtime
