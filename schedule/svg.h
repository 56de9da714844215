#pragma once

// Writing SVG: escaping, numbers without noise, ticks, and how wide a text will be.

#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include "base/bytes.h"

namespace reprise::schedule {

// Fit for XML text and attributes: the five special characters escaped, control characters dropped.
[[nodiscard]] std::string xml_escape(std::string_view text);

// At most two decimals, no trailing zeros: 12.5 -> "12.5", 3.0 -> "3".
[[nodiscard]] std::string svg_number(double value);

// Width in pixels of a text in a sans-serif font, on the safe side.
[[nodiscard]] double text_width(std::string_view text, double font_size);
// The text, its tail replaced by an ellipsis when it is wider than `width`.
[[nodiscard]] std::string fit_text(std::string_view text, double font_size, double width);

[[nodiscard]] std::string group_digits(double value);  // 40000 -> "40,000"

struct TextStyle {
  double size = 11;
  const char* colour = "#2b2f36";
  const char* anchor = "start";
  bool bold = false;
};

// Collects the elements of one picture.
class SvgWriter {
 public:
  template <class... Args>
  void add(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(out_), format, std::forward<Args>(args)...);
  }
  void text(double x, double y, std::string_view words, const TextStyle& style);
  void line(double x1, double y1, double x2, double y2, std::string_view attributes);
  // `title` is shown when the pointer rests on the rectangle; none when empty.
  void rect(double x, double y, double width, double height, std::string_view attributes,
            std::string_view title = {});
  [[nodiscard]] std::string take() { return std::move(out_); }

 private:
  std::string out_;
};

struct Tick {
  double value = 0;
  std::string label;
};
// Round numbers (1, 2 or 5 times a power of ten) in [0, high], at most `count` steps.
[[nodiscard]] std::vector<Tick> count_ticks(std::int64_t high, int count);
// Round numbers of bytes in one binary unit: 0, 50 MiB, 100 MiB, ... or 0, 0.5 GiB, 1 GiB, ...
[[nodiscard]] std::vector<Tick> byte_ticks(base::Bytes high, int count);

}  // namespace reprise::schedule
