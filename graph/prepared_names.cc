#include "graph/prepared_names.h"

#include <algorithm>
#include <bitset>
#include <cstddef>

namespace reprise::graph {
namespace {

constexpr int kMaxAxes = 12;

// Takes digits of a number without leading zeros; false when there are none.
bool take_number(std::string_view& rest) {
  const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
  if (end == 0 || rest.front() == '0') return false;
  rest.remove_prefix(end);
  return true;
}

// ".64."
bool take_stride(std::string_view& rest) {
  rest.remove_prefix(1);
  if (!take_number(rest) || !rest.starts_with('.')) return false;
  rest.remove_prefix(1);
  return true;
}

bool is_blocked_name(std::string_view rest) {
  std::bitset<kMaxAxes> seen, split, inner;
  while (!rest.empty()) {
    const bool is_inner = take_number(rest);
    if (rest.empty()) return false;
    const bool is_split = rest.front() >= 'A' && rest.front() <= 'Z';
    const int axis = rest.front() - (is_split ? 'A' : 'a');
    if (axis < 0 || axis >= kMaxAxes) return false;
    const auto at = static_cast<std::size_t>(axis);
    // An inner part belongs to a split axis in front of it; an outer one comes once.
    if (is_inner ? is_split || !split[at] : seen[at]) return false;
    seen.set(at);
    if (is_split) split.set(at);
    if (is_inner) inner.set(at);
    rest.remove_prefix(1);
    if (rest.starts_with('.') && !take_stride(rest)) return false;
  }
  return seen.any() && split == inner;
}

}  // namespace

bool is_layout_name(std::string_view text) {
  return text == "plain" || text == "workspace" || is_blocked_name(text);
}

}  // namespace reprise::graph
