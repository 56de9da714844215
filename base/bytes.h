#pragma once

// Byte counts: parsing, printing, and arithmetic that cannot wrap in silence.

#include <cstdint>
#include <string>
#include <string_view>

namespace reprise::base {

// A number of bytes. Signed, so that differences are ordinary numbers; never negative as a size.
using Bytes = std::int64_t;

inline constexpr Bytes kKiB = Bytes{1} << 10;
inline constexpr Bytes kMiB = Bytes{1} << 20;
inline constexpr Bytes kGiB = Bytes{1} << 30;

// a + b and a * b; throw Error(kInput) naming `what` when the result leaves [-2^63, 2^63).
[[nodiscard]] std::int64_t checked_add(std::int64_t a, std::int64_t b, std::string_view what);
[[nodiscard]] std::int64_t checked_mul(std::int64_t a, std::int64_t b, std::string_view what);

// The smallest multiple of `alignment` (a power of two) that is at least `bytes`.
[[nodiscard]] constexpr Bytes align_up(Bytes bytes, Bytes alignment) {
  return (bytes + alignment - 1) & ~(alignment - 1);
}

// "300MiB", "2GB", "1.5GiB", "4096", "64 KiB" -> bytes. Units: B, kB/KB, MB, GB, TB (powers of
// 1000), KiB, MiB, GiB, TiB (powers of 1024), in any case. Throws Error(kInput) naming the text
// when it is empty, negative, not a number, has an unknown unit, or overflows. What a fraction of a
// unit leaves of a byte is cut off ("2.9MiB"); a fraction of bytes is refused.
[[nodiscard]] Bytes parse_bytes(std::string_view text);

// 314572800 -> "300.0 MiB"; below 1 KiB "123 B".
[[nodiscard]] std::string format_bytes(Bytes bytes);

}  // namespace reprise::base
