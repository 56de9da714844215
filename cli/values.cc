#include "cli/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>

#include "fmt/ranges.h"

#include "base/bytes.h"
#include "base/error.h"

namespace reprise::cli {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j + 1] + 1, row[j] + 1});
    }
  }
  return row.back();
}

}  // namespace

std::int64_t parse_whole(std::string_view flag, std::string_view text, std::int64_t low,
                         std::int64_t high) {
  std::int64_t value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  if (code != std::errc() || rest != end || value < low || value > high) {
    const bool too_large = code == std::errc::result_out_of_range && !text.starts_with('-');
    const std::string range = high != kNoLimit ? fmt::format("from {} to {}", low, high)
                              : too_large      ? fmt::format("of at least {} and below 2^63", low)
                                               : fmt::format("of at least {}", low);
    throw base::input_error("{} '{}': expected a whole number {}", flag, text, range);
  }
  return value;
}

double parse_real(std::string_view flag, std::string_view text, double low, double high,
                  bool above) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  const bool fits = above ? value > low : value >= low;
  if (code != std::errc() || rest != end || !std::isfinite(value) || !fits || value > high) {
    throw base::input_error("{} '{}': expected a number {} {} and at most {}", flag, text,
                            above ? "above" : "of at least", low, high);
  }
  return value;
}

double parse_rate(std::string_view flag, std::string_view text) {
  constexpr std::string_view kPerSecond = "/s";
  base::Bytes bytes = 0;
  if (text.ends_with(kPerSecond)) {
    try {
      bytes = base::parse_bytes(text.substr(0, text.size() - kPerSecond.size()));
    } catch (const base::Error&) {  // the message below has the form
    }
  }
  if (bytes <= 0)
    throw base::input_error("{} '{}': expected bytes a second, e.g. 50GB/s or 1.2GB/s", flag, text);
  return static_cast<double>(bytes);
}

double parse_duration_ns(std::string_view flag, std::string_view text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [rest, code] = std::from_chars(text.data(), end, value);
  std::string_view unit(rest, static_cast<std::size_t>(end - rest));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const double factor = unit == "ns"   ? 1
                        : unit == "us" ? 1e3
                        : unit == "ms" ? 1e6
                        : unit == "s"  ? 1e9
                                       : 0;
  if (code != std::errc() || !std::isfinite(value) || value < 0 || factor == 0)
    throw base::input_error("{} '{}': expected a time in ns, us, ms or s, e.g. 5us", flag, text);
  return value * factor;
}

std::string parse_choice(std::string_view flag, std::string_view text,
                         const std::vector<std::string>& choices) {
  if (std::find(choices.begin(), choices.end(), text) != choices.end()) return std::string(text);
  throw base::input_error("{} '{}': expected one of {}", flag, text, fmt::join(choices, ", "));
}

std::vector<std::string> split_list(std::string_view flag, std::string_view text) {
  std::vector<std::string> items;
  std::size_t begin = 0;
  while (true) {
    const std::size_t comma = std::min(text.find(',', begin), text.size());
    if (comma == begin) {
      throw base::input_error("{} '{}': an item between commas is empty", flag, text);
    }
    items.emplace_back(text.substr(begin, comma - begin));
    if (comma == text.size()) return items;
    begin = comma + 1;
  }
}

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates) {
  std::string nearest;
  std::size_t best = std::max<std::size_t>(2, word.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(word, candidate);
    if (distance >= best) continue;
    best = distance;
    nearest = candidate;
  }
  return nearest;
}

}  // namespace reprise::cli
