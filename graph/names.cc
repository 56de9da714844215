#include "graph/names.h"

#include <algorithm>

#include "base/error.h"

namespace reprise::graph {
namespace {

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '/' || c == '-';
}

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_name_character);
}

std::string output_name(OpKind op, std::string_view node, std::size_t output) {
  if (output == 0) return std::string(node);
  const auto& further = op_info(op).further_outputs;
  REPRISE_CHECK(output <= further.size(), "op '{}' has no name for output {}", op_info(op).name,
                output);
  return fmt::format("{}.{}", node, further[output - 1]);
}

}  // namespace reprise::graph
