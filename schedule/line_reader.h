#pragma once

// Lines and words of a text form, and the errors that name them.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"

namespace reprise::schedule {

// Reads a text line by line; words are separated by single or more spaces. Every failure is an
// Error(kInput) "source:line: 'text': expected ...".
class LineReader {
 public:
  LineReader(std::string_view text, std::string_view source) : rest_(text), source_(source) {}

  // Moves to the next line that is neither empty nor a comment ('#'). A text that ends before, or
  // inside a line without its newline, is a failure that says it was cut short.
  void next_line(std::string_view expected);
  // Takes everything up to the line `last`, which is consumed too.
  [[nodiscard]] std::string_view take_block(std::string_view last);
  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  [[nodiscard]] std::int64_t line_number() const { return line_number_; }

  // -- words of the current line
  [[nodiscard]] bool line_done();
  [[nodiscard]] std::string_view peek();  // the next word, "" at the end of the line
  [[nodiscard]] std::string_view word(std::string_view expected);
  void keyword(std::string_view word);
  [[nodiscard]] std::int64_t integer(std::string_view expected, std::int64_t low,
                                     std::int64_t high);
  [[nodiscard]] double number(std::string_view expected);  // finite
  [[nodiscard]] std::string quoted(std::string_view expected);
  void end_line();

  [[nodiscard]] base::Error failure(std::string_view found, std::string_view expected) const;

 private:
  void skip_spaces();

  std::string_view rest_;  // after the current line
  std::string_view source_;
  std::string_view line_;
  std::size_t at_ = 0;  // in line_
  std::int64_t line_number_ = 0;
};

// In double quotes, with \" and \\ for these two and \xNN for control characters.
[[nodiscard]] std::string quote(std::string_view text);

}  // namespace reprise::schedule
