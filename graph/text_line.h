#pragma once

// Reads one line of the text form, token by token. Blanks may stand before every token.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/error.h"
#include "graph/attributes.h"

namespace reprise::graph {

class TextLine {
 public:
  TextLine(std::string_view line, std::size_t number) : rest_(line), number_(number) {}

  [[nodiscard]] bool done();
  // Takes `token` if it comes next.
  bool take(std::string_view token);
  void expect(std::string_view token);
  void expect_end();

  // A name as in graph/names.h, which also covers keywords and the names of dtypes, roles and ops.
  std::string_view name(std::string_view what);
  std::int64_t integer(std::string_view what);
  double number(std::string_view what);
  bool boolean(std::string_view what);
  Ints integers(std::string_view what);       // [1,2,3]
  std::string quoted(std::string_view what);  // "text", with \" \\ and \xHH

  // "line 7: expected <expected>, got '<rest of the line>'".
  [[nodiscard]] base::Error fail(std::string_view expected);
  // "line 7: <message>".
  template <class... Args>
  [[nodiscard]] base::Error fault(fmt::format_string<Args...> format, Args&&... args) const {
    return base::input_error("line {}: {}", number_,
                             fmt::format(format, std::forward<Args>(args)...));
  }

 private:
  void skip_blanks();

  std::string_view rest_;
  std::size_t number_;
};

// "text" with quotes, backslashes and unprintable bytes escaped; quoted() reads it back.
[[nodiscard]] std::string quote(std::string_view text);

}  // namespace reprise::graph
