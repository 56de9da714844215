#pragma once

// FNV-1a (Fowler, Noll, Vo), 64 bits: tells whether two runs ended in the same bits. No protection
// against malice.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace reprise::api {

class Fnv1a {
 public:
  void add(std::span<const std::byte> bytes) {
    for (std::byte byte : bytes) {
      value_ = (value_ ^ static_cast<std::uint64_t>(byte)) * 0x100000001b3ULL;
    }
  }
  void add(std::string_view text) { add(std::as_bytes(std::span(text.data(), text.size()))); }
  [[nodiscard]] std::uint64_t value() const { return value_; }

 private:
  std::uint64_t value_ = 0xcbf29ce484222325ULL;
};

}  // namespace reprise::api
