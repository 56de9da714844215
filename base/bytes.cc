#include "base/bytes.h"

#include <array>
#include <cctype>
#include <cstddef>
#include <limits>

#include "base/error.h"

namespace reprise::base {
namespace {

struct Unit {
  const char* name;  // lower case
  std::int64_t factor;
};

constexpr std::array<Unit, 10> kUnits{{{"", 1},
                                       {"b", 1},
                                       {"kb", 1'000},
                                       {"mb", 1'000'000},
                                       {"gb", 1'000'000'000},
                                       {"tb", 1'000'000'000'000},
                                       {"kib", kKiB},
                                       {"mib", kMiB},
                                       {"gib", kGiB},
                                       {"tib", kGiB * 1024}}};

std::int64_t unit_factor(std::string_view unit, std::string_view text) {
  std::string lower;
  for (char c : unit) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const Unit& candidate : kUnits) {
    if (lower == candidate.name) return candidate.factor;
  }
  throw input_error("size '{}': unknown unit '{}'; use B, kB, MB, GB, TB, KiB, MiB, GiB or TiB",
                    text, unit);
}

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

}  // namespace

std::int64_t checked_add(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t result = 0;
  if (__builtin_add_overflow(a, b, &result))
    throw input_error("{}: {} + {} exceeds 2^63", what, a, b);
  return result;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b, std::string_view what) {
  std::int64_t result = 0;
  if (__builtin_mul_overflow(a, b, &result))
    throw input_error("{}: {} * {} exceeds 2^63", what, a, b);
  return result;
}

Bytes parse_bytes(std::string_view text) {
  const auto require = [text](bool fits) {
    if (!fits) throw input_error("size '{}': is beyond 2^63 bytes", text);
  };
  // The number is whole * 10^-decimals, kept exact so that 1.5GiB is a whole number of bytes.
  std::int64_t digits = 0;
  std::int64_t divisor = 1;
  std::size_t at = 0;
  bool seen_digit = false;
  bool seen_point = false;
  for (; at < text.size() && (is_digit(text[at]) || (text[at] == '.' && !seen_point)); ++at) {
    if (text[at] == '.') {
      seen_point = true;
      continue;
    }
    seen_digit = true;
    require(!__builtin_mul_overflow(digits, 10, &digits) &&
            !__builtin_add_overflow(digits, text[at] - '0', &digits));
    if (seen_point && __builtin_mul_overflow(divisor, 10, &divisor)) {
      throw input_error("size '{}': has more than 18 decimals", text);
    }
  }
  if (!seen_digit) {
    throw input_error("size '{}' is not a number of bytes; write e.g. 300MiB, 2GB, 1.5GiB or 4096",
                      text);
  }
  while (at < text.size() && text[at] == ' ') ++at;
  std::int64_t scaled = 0;
  require(!__builtin_mul_overflow(digits, unit_factor(text.substr(at), text), &scaled));
  if (scaled % divisor != 0 && scaled == digits) {  // no unit, or bytes
    throw input_error("size '{}' is not a whole number of bytes", text);
  }
  return scaled / divisor;
}

std::string format_bytes(Bytes bytes) {
  constexpr std::array<const char*, 5> kNames{"B", "KiB", "MiB", "GiB", "TiB"};
  if (bytes < kKiB && bytes > -kKiB) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while ((value >= 1024 || value <= -1024) && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kNames[unit]);
}

}  // namespace reprise::base
