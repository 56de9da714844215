#include "cli/table.h"

#include <algorithm>

#include "fmt/format.h"

#include "base/bytes.h"
#include "base/error.h"

namespace reprise::cli {

void Table::add(std::vector<std::string> cells) {
  REPRISE_CHECK(cells.size() == columns_.size(), "{} cells for {} columns", cells.size(),
                columns_.size());
  rows_.push_back(std::move(cells));
}

std::string Table::text(int indent) const {
  std::vector<std::size_t> widths;
  std::vector<std::string> titles;
  for (const Column& column : columns_) {
    titles.push_back(column.title);
    widths.push_back(column.title.size());
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  const auto print = [&](const std::vector<std::string>& row) {
    std::string line(static_cast<std::size_t>(indent), ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += columns_[i].align == Align::kLeft ? fmt::format("{:<{}}", row[i], widths[i])
                                                : fmt::format("{:>{}}", row[i], widths[i]);
    }
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  };
  print(titles);
  for (const auto& row : rows_) print(row);
  return text;
}

void Facts::add(std::string name, std::string value) {
  facts_.emplace_back(std::move(name), std::move(value));
}

std::string Facts::text(int indent) const {
  std::size_t width = 0;
  for (const auto& [name, value] : facts_) width = std::max(width, name.size());
  std::string text;
  for (const auto& [name, value] : facts_) {
    const auto margin = static_cast<std::size_t>(indent);
    text += std::string(margin, ' ') + hanging(name, value, width + 2, 100 - margin, margin) + "\n";
  }
  return text;
}

std::string hanging(const std::string& name, const std::string& text, std::size_t width,
                    std::size_t end, std::size_t indent) {
  const std::string margin = fmt::format("\n{:{}}", "", width + indent);
  std::string out = name;
  if (name.size() + 1 < width) {
    out += std::string(width - name.size(), ' ');
  } else {
    out += margin;
  }
  std::size_t column = width;
  std::size_t at = 0;
  while (at < text.size()) {
    const std::size_t stop = std::min(text.find_first_of(" \n", at), text.size());
    if (column > width && column + (stop - at) > end) {
      while (out.back() == ' ') out.pop_back();
      out += margin;
      column = width;
    }
    out += text.substr(at, stop - at);
    column += stop - at;
    if (stop == text.size()) break;
    if (text[stop] == '\n') {
      out += margin;
      column = width;
    } else {
      out += ' ';
      ++column;
    }
    at = stop + 1;
  }
  return out;
}

std::string grouped(std::int64_t number) {
  std::string digits = fmt::format("{}", number);
  const std::size_t first = digits.front() == '-' ? 1 : 0;
  for (std::size_t i = digits.size(); i > first + 3;) {
    i -= 3;
    digits.insert(i, 1, ',');
  }
  return digits;
}

std::string exact_bytes(std::int64_t bytes) {
  return fmt::format("{} ({} bytes)", base::format_bytes(bytes), grouped(bytes));
}

std::string milliseconds(std::int64_t nanoseconds) {
  return fmt::format("{:.2f} ms", static_cast<double>(nanoseconds) * 1e-6);
}

std::string percent(double fraction) {
  return fmt::format("{:+.1f} %", fraction * 100.0);
}

}  // namespace reprise::cli
