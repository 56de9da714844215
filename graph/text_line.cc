#include "graph/text_line.h"

#include <algorithm>
#include <charconv>

#include "graph/names.h"

namespace reprise::graph {
namespace {

// Long or binary text is of no use in a message.
std::string excerpt(std::string_view text) {
  constexpr std::size_t kLongest = 40;
  if (text.empty()) return "the end of the line";
  return quote(text.substr(0, kLongest)) + (text.size() > kLongest ? "..." : "");
}

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return -1;
}

}  // namespace

std::string quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += {'\\', c};
    } else if (byte < 0x20 || byte >= 0x7f) {
      quoted += fmt::format("\\x{:02x}", byte);
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

base::Error TextLine::fail(std::string_view expected) {
  skip_blanks();
  return fault("expected {}, got {}", expected, excerpt(rest_));
}

void TextLine::skip_blanks() {
  rest_.remove_prefix(std::min(rest_.find_first_not_of(" \t"), rest_.size()));
}

bool TextLine::done() {
  skip_blanks();
  return rest_.empty();
}

bool TextLine::take(std::string_view token) {
  skip_blanks();
  if (!rest_.starts_with(token)) return false;
  rest_.remove_prefix(token.size());
  return true;
}

void TextLine::expect(std::string_view token) {
  if (!take(token)) throw fail(fmt::format("'{}'", token));
}

void TextLine::expect_end() {
  if (!done()) throw fail("the end of the line");
}

std::string_view TextLine::name(std::string_view what) {
  skip_blanks();
  std::size_t length = 0;
  while (length < rest_.size() && is_name(rest_.substr(length, 1))) ++length;
  if (length == 0) throw fail(what);
  const std::string_view found = rest_.substr(0, length);
  rest_.remove_prefix(length);
  return found;
}

std::int64_t TextLine::integer(std::string_view what) {
  skip_blanks();
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
  if (error == std::errc::result_out_of_range) {
    throw fail(fmt::format("{} of at most 63 bits", what));
  }
  if (error != std::errc{}) throw fail(what);
  rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
  return value;
}

double TextLine::number(std::string_view what) {
  skip_blanks();
  double value = 0;
  const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
  if (error == std::errc::result_out_of_range) {
    throw fail(fmt::format("{} in the range of a double", what));
  }
  if (error != std::errc{}) throw fail(what);
  rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
  return value;
}

bool TextLine::boolean(std::string_view what) {
  if (take("true")) return true;
  if (take("false")) return false;
  throw fail(what);
}

Ints TextLine::integers(std::string_view what) {
  if (!take("[")) throw fail(what);
  Ints found;
  if (take("]")) return found;
  do {
    found.push_back(integer("an integer"));
  } while (take(","));
  expect("]");
  return found;
}

std::string TextLine::quoted(std::string_view what) {
  if (!take("\"")) throw fail(what);
  std::string found;
  while (!rest_.empty() && rest_.front() != '"') {
    if (rest_.front() != '\\') {
      found += rest_.front();
      rest_.remove_prefix(1);
    } else if (rest_.size() >= 2 && (rest_[1] == '"' || rest_[1] == '\\')) {
      found += rest_[1];
      rest_.remove_prefix(2);
    } else if (rest_.size() >= 4 && rest_[1] == 'x' && hex_digit(rest_[2]) >= 0 &&
               hex_digit(rest_[3]) >= 0) {
      found += static_cast<char>(hex_digit(rest_[2]) * 16 + hex_digit(rest_[3]));
      rest_.remove_prefix(4);
    } else {
      throw fail("one of \\\" \\\\ \\xHH");
    }
  }
  expect("\"");
  return found;
}

}  // namespace reprise::graph
