#include "schedule/line_reader.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "fmt/format.h"

namespace reprise::schedule {
namespace {

bool is_control(char c) {
  return static_cast<unsigned char>(c) < 0x20 || c == 0x7F;
}

// A piece of somebody else's text, fit to be printed: cut to a readable length, nothing invisible.
std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string shown;
  for (char c : text.substr(0, kLongest)) {
    const bool plain = !is_control(c) && static_cast<unsigned char>(c) < 0x80;
    shown += plain ? std::string(1, c) : fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  if (text.size() > kLongest) shown += "...";
  return shown;
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

base::Error LineReader::failure(std::string_view found, std::string_view expected) const {
  return base::input_error("{}:{}: '{}': expected {}", source_, line_number_, excerpt(found),
                           expected);
}

void LineReader::next_line(std::string_view expected) {
  do {
    ++line_number_;
    const std::size_t newline = rest_.find('\n');
    if (newline == std::string_view::npos) {
      throw failure(rest_, fmt::format("{}, but the text ends here; it was cut short", expected));
    }
    line_ = rest_.substr(0, newline);
    rest_.remove_prefix(newline + 1);
    at_ = 0;
    skip_spaces();
  } while (at_ == line_.size() || line_[at_] == '#');
}

std::string_view LineReader::take_block(std::string_view last) {
  const std::string_view start = rest_;
  std::size_t length = 0;
  for (;;) {
    ++line_number_;
    const std::size_t newline = rest_.find('\n');
    if (newline == std::string_view::npos) {
      throw failure(rest_,
                    fmt::format("the line '{}', but the text ends here; it was cut short", last));
    }
    const std::string_view line = rest_.substr(0, newline);
    rest_.remove_prefix(newline + 1);
    if (line == last) return start.substr(0, length);
    length += newline + 1;
  }
}

void LineReader::skip_spaces() {
  while (at_ < line_.size() && line_[at_] == ' ') ++at_;
}

bool LineReader::line_done() {
  skip_spaces();
  return at_ == line_.size();
}

std::string_view LineReader::peek() {
  skip_spaces();
  const std::size_t end = line_.find(' ', at_);
  return line_.substr(at_, end == std::string_view::npos ? end : end - at_);
}

std::string_view LineReader::word(std::string_view expected) {
  const std::string_view found = peek();
  if (found.empty()) throw failure(line_, fmt::format("{} at the end of the line", expected));
  at_ += found.size();
  return found;
}

void LineReader::keyword(std::string_view expected) {
  const std::string quoted = fmt::format("'{}'", expected);
  const std::string_view found = word(quoted);
  if (found != expected) throw failure(found, quoted);
}

std::int64_t LineReader::integer(std::string_view expected, std::int64_t low, std::int64_t high) {
  const std::string_view found = word(expected);
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
  if (error != std::errc() || end != found.data() + found.size() || value < low || value > high) {
    throw failure(found, fmt::format("{} in [{}, {}]", expected, low, high));
  }
  return value;
}

double LineReader::number(std::string_view expected) {
  const std::string_view found = word(expected);
  double value = 0;
  const auto [end, error] = std::from_chars(found.data(), found.data() + found.size(), value);
  if (error != std::errc() || end != found.data() + found.size() || !std::isfinite(value)) {
    throw failure(found, fmt::format("{}, a finite number", expected));
  }
  return value;
}

std::string LineReader::quoted(std::string_view expected) {
  skip_spaces();
  const auto fail = [&] {
    return failure(line_.substr(at_), fmt::format("{} in double quotes", expected));
  };
  std::size_t at = at_;
  if (at >= line_.size() || line_[at] != '"') throw fail();
  std::string text;
  for (++at;; ++at) {
    if (at >= line_.size() || is_control(line_[at])) throw fail();
    if (line_[at] == '"') break;
    if (line_[at] != '\\') {
      text += line_[at];
      continue;
    }
    const std::string_view escape = line_.substr(at + 1, 3);
    if (escape.empty()) throw fail();
    if (escape[0] == '"' || escape[0] == '\\') {
      text += escape[0];
      at += 1;
    } else if (escape.size() == 3 && escape[0] == 'x' && hex_digit(escape[1]) >= 0 &&
               hex_digit(escape[2]) >= 0) {
      text += static_cast<char>(hex_digit(escape[1]) * 16 + hex_digit(escape[2]));
      at += 3;
    } else {
      throw fail();
    }
  }
  at_ = at + 1;
  if (at_ < line_.size() && line_[at_] != ' ') throw fail();
  return text;
}

void LineReader::end_line() {
  if (line_done()) return;
  throw failure(line_.substr(at_), "the end of the line");
}

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (is_control(c)) {
      quoted += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace reprise::schedule
