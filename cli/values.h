#pragma once

// The values of flags: from text to numbers, with errors that name flag, value and rule.

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace reprise::cli {

inline constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();

// "64" -> 64. Throws Error(kInput) unless the whole text is a decimal number in [low, high].
[[nodiscard]] std::int64_t parse_whole(std::string_view flag, std::string_view text,
                                       std::int64_t low, std::int64_t high = kNoLimit);

// "0.05", "1e-4". Throws Error(kInput) unless the whole text is a finite number in [low, high], or
// in (low, high] with `above`.
[[nodiscard]] double parse_real(std::string_view flag, std::string_view text, double low,
                                double high, bool above = false);

// "50GB/s" -> 5e10 bytes a second. Throws Error(kInput) unless it is above 0.
[[nodiscard]] double parse_rate(std::string_view flag, std::string_view text);

// "5us", "300ns", "1.5 ms", "2s" -> nanoseconds. Throws Error(kInput) for others and below 0.
[[nodiscard]] double parse_duration_ns(std::string_view flag, std::string_view text);

// Throws Error(kInput) listing `choices` when the text is none of them.
[[nodiscard]] std::string parse_choice(std::string_view flag, std::string_view text,
                                       const std::vector<std::string>& choices);

// "a,b,c" -> {"a", "b", "c"}. Throws Error(kInput) for an empty item.
[[nodiscard]] std::vector<std::string> split_list(std::string_view flag, std::string_view text);

// The candidate nearest to `word` in single-letter edits, or empty when none is near.
[[nodiscard]] std::string nearest_word(std::string_view word,
                                       const std::vector<std::string>& candidates);

}  // namespace reprise::cli
