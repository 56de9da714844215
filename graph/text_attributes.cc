#include "graph/text_attributes.h"

#include <array>
#include <charconv>
#include <type_traits>
#include <unordered_set>

namespace reprise::graph {
namespace {

const char* reduction_name(Reduction reduction) {
  return reduction == Reduction::kMean ? "mean" : "sum";
}

std::string text_of(std::int64_t number) {
  return fmt::format("{}", number);
}
std::string text_of(bool flag) {
  return flag ? "true" : "false";
}
std::string text_of(const Ints& numbers) {
  return shape_text(numbers);
}
std::string text_of(const std::string& text) {
  return quote(text);
}
std::string text_of(Reduction reduction) {
  return reduction_name(reduction);
}
std::string text_of(LearningRate::Kind kind) {
  return learning_rate_kind_name(kind);
}
std::string text_of(DType dtype) {
  return dtype_name(dtype);
}
std::string text_of(double number) {  // the shortest text that reads back to the same bits
  std::array<char, 32> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number).ptr;
  return {buffer.data(), end};
}

void read(TextLine& line, std::int64_t& field) {
  field = line.integer("an integer");
}
void read(TextLine& line, bool& field) {
  field = line.boolean("true or false");
}
void read(TextLine& line, double& field) {
  field = line.number("a number");
}
void read(TextLine& line, Ints& field) {
  field = line.integers("a list of integers");
}
void read(TextLine& line, std::string& field) {
  field = line.quoted("a text in quotes");
}
void read(TextLine& line, Reduction& field) {
  if (line.take("mean")) {
    field = Reduction::kMean;
  } else if (line.take("sum")) {
    field = Reduction::kSum;
  } else {
    throw line.fail("mean or sum");
  }
}
void read(TextLine& line, DType& field) {
  const std::string_view name = line.name("a dtype");
  try {
    field = parse_dtype(name);
  } catch (const base::Error& error) {
    throw line.fault("{}", error.what());
  }
}
void read(TextLine& line, LearningRate::Kind& field) {
  const std::string_view name = line.name("a learning-rate schedule");
  try {
    field = parse_learning_rate_kind(name);
  } catch (const base::Error& error) {
    throw line.fault("{}", error.what());
  }
}

void read_field(OpKind op, Attributes& attributes, std::string_view wanted, TextLine& line) {
  bool found = false;
  std::string known;
  visit(attributes, [&](std::string_view field, auto& content) {
    known += fmt::format("{}{}", known.empty() ? "" : ", ", field);
    if (found || field != wanted) return;
    read(line, content);
    found = true;
  });
  if (!found) {
    throw line.fault("op '{}' has no attribute '{}'; it has {}", op_info(op).name, wanted,
                     known.empty() ? "none" : known);
  }
}

}  // namespace

std::string print_attributes(OpKind op, const Attributes& attributes) {
  std::vector<std::string> defaults;
  visit(default_attributes(op),
        [&](std::string_view, const auto& content) { defaults.push_back(text_of(content)); });
  std::string text;
  std::size_t field_number = 0;
  visit(attributes, [&](std::string_view field, const auto& content) {
    const std::string written = text_of(content);
    const std::size_t i = field_number++;
    // Compared as text, which tells 0 from -0.
    if (i >= defaults.size() || written != defaults[i])
      text += fmt::format(" {}={}", field, written);
  });
  return text;
}

Attributes parse_attributes(OpKind op, TextLine& line) {
  Attributes attributes = default_attributes(op);
  std::unordered_set<std::string_view> seen;
  while (!line.done()) {
    const std::string_view field = line.name("an attribute");
    line.expect("=");
    if (!seen.insert(field).second) throw line.fault("attribute '{}' comes twice", field);
    read_field(op, attributes, field, line);
  }
  return attributes;
}

}  // namespace reprise::graph
