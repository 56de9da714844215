#pragma once

// Plain text tables: columns sized to their widest cell, numbers to the right.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace reprise::cli {

class Table {
 public:
  enum class Align { kLeft, kRight };
  struct Column {
    std::string title;
    Align align = Align::kRight;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  void add(std::vector<std::string> cells);  // as many as columns
  // With `indent` spaces before each line and a line of titles on top.
  [[nodiscard]] std::string text(int indent = 2) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

// Names with values behind them, aligned: "peak        300.0 MiB (314,572,800 bytes)".
class Facts {
 public:
  void add(std::string name, std::string value);
  [[nodiscard]] std::string text(int indent = 2) const;

 private:
  std::vector<std::pair<std::string, std::string>> facts_;
};

// `name`, then `text` from column `width` on, broken at spaces before column `end` and at its own
// line ends; further lines are indented by `indent` more than the text's place on the first.
[[nodiscard]] std::string hanging(const std::string& name, const std::string& text,
                                  std::size_t width, std::size_t end, std::size_t indent = 0);

[[nodiscard]] std::string grouped(std::int64_t number);            // "1,234,567"
[[nodiscard]] std::string exact_bytes(std::int64_t bytes);         // "1.2 MiB (1,234,567 bytes)"
[[nodiscard]] std::string milliseconds(std::int64_t nanoseconds);  // "12.34 ms"
[[nodiscard]] std::string percent(double fraction);                // 0.0312 -> "+3.1 %"

}  // namespace reprise::cli
