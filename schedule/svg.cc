#include "schedule/svg.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace reprise::schedule {
namespace {

// The smallest of ..., 0.5, 1, 2, 5, 10, 20, ... that is at least `step`.
double round_step(double step) {
  const double power = std::pow(10.0, std::floor(std::log10(step)));
  for (double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * (1 - 1e-12)) return factor * power;
  }
  return 10 * power;
}

}  // namespace

std::string xml_escape(std::string_view text) {
  std::string escaped;
  for (char c : text) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&apos;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20) escaped += c;
    }
  }
  return escaped;
}

std::string svg_number(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

std::string group_digits(double value) {
  const std::string digits = fmt::format("{:.0f}", value);
  std::string grouped;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) grouped += ',';
    grouped += digits[i];
  }
  return grouped;
}

void SvgWriter::text(double x, double y, std::string_view words, const TextStyle& style) {
  add("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\" text-anchor=\"{}\"{}>{}</text>\n",
      svg_number(x), svg_number(y), svg_number(style.size), style.colour, style.anchor,
      style.bold ? " font-weight=\"600\"" : "", xml_escape(words));
}

void SvgWriter::line(double x1, double y1, double x2, double y2, std::string_view attributes) {
  add("<line x1=\"{}\" y1=\"{}\" x2=\"{}\" y2=\"{}\" {}/>\n", svg_number(x1), svg_number(y1),
      svg_number(x2), svg_number(y2), attributes);
}

void SvgWriter::rect(double x, double y, double width, double height, std::string_view attributes,
                     std::string_view title) {
  add("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {}", svg_number(x), svg_number(y),
      svg_number(width), svg_number(height), attributes);
  if (title.empty()) {
    add("/>\n");
  } else {
    add("><title>{}</title></rect>\n", xml_escape(title));
  }
}

double text_width(std::string_view text, double font_size) {
  double ems = 0;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0) == 0x80) continue;  // inside a UTF-8 sequence
    const bool narrow = std::string_view("iljtfI.,:;|'!()[] ").find(c) != std::string_view::npos;
    const bool wide = std::string_view("mwMW%@").find(c) != std::string_view::npos;
    ems += narrow ? 0.34 : wide ? 0.92 : 0.61;
  }
  return ems * font_size;
}

std::string fit_text(std::string_view text, double font_size, double width) {
  if (text_width(text, font_size) <= width) return std::string(text);
  std::string_view shorter = text;
  const double room = width - text_width("m", font_size);
  while (!shorter.empty() && text_width(shorter, font_size) > room) {
    shorter.remove_suffix(1);
    while (!shorter.empty() && (static_cast<unsigned char>(shorter.back()) & 0xC0) == 0x80) {
      shorter.remove_suffix(1);
    }
  }
  // A lead byte whose sequence was cut off goes too.
  while (!shorter.empty() && (static_cast<unsigned char>(shorter.back()) & 0x80) != 0) {
    shorter.remove_suffix(1);
  }
  return std::string(shorter) + "\xE2\x80\xA6";
}

std::vector<Tick> count_ticks(std::int64_t high, int count) {
  std::vector<Tick> ticks;
  const double step = round_step(std::max(1.0, static_cast<double>(high) / count));
  for (int i = 0; i * step <= static_cast<double>(high); ++i) {
    ticks.push_back({i * step, group_digits(i * step)});
  }
  return ticks;
}

std::vector<Tick> byte_ticks(base::Bytes high, int count) {
  constexpr std::array<const char*, 7> kNames{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  std::size_t unit = 0;
  double scale = 1;
  while (static_cast<double>(high) / scale >= 1024 && unit + 1 < kNames.size()) {
    scale *= 1024;
    ++unit;
  }
  const double smallest = unit == 0 ? 1 : 0.001;
  const double step = round_step(std::max(smallest, static_cast<double>(high) / scale / count));
  std::vector<Tick> ticks{{0, "0"}};
  for (int i = 1; i * step * scale <= static_cast<double>(high); ++i) {
    ticks.push_back({i * step * scale, svg_number(i * step) + " " + kNames[unit]});
  }
  return ticks;
}

}  // namespace reprise::schedule
