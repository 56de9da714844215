#pragma once

// Typed reads from JSON that others wrote. What is missing, of another type, fractional or beyond
// 2^63 is refused with the place where it stands: "ops[3] 'conv1': workspace -1; ...".

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "nlohmann/json.hpp"

namespace reprise::planner {

using Json = nlohmann::json;

// Throws Error(kInput) with line, column and the text around it: no JSON, a number beyond the range
// of a double, NaN, two fields of one name in an object, more than kDeepest levels.
[[nodiscard]] Json parse_json(std::string_view text);
inline constexpr int kDeepest = 32;

// An object with the words for where it stands. Remembers which of its fields were asked for.
class JsonObject {
 public:
  // Throws unless it is an object. `value` must outlive it.
  JsonObject(const Json& value, std::string place);

  [[nodiscard]] bool has(std::string_view field) const;
  [[nodiscard]] const Json& array(std::string_view field) const;
  [[nodiscard]] JsonObject object(std::string_view field) const;
  [[nodiscard]] std::string text(std::string_view field) const;
  [[nodiscard]] bool boolean(std::string_view field) const;
  // A whole number in [low, 2^63).
  [[nodiscard]] std::int64_t whole(std::string_view field, std::int64_t low) const;
  [[nodiscard]] std::vector<std::int64_t> wholes(std::string_view field, std::int64_t low) const;

  [[nodiscard]] const std::string& place() const { return place_; }
  // Fields that the reader has no use for.
  void collect_unknown(const std::set<std::string, std::less<>>& known,
                       std::set<std::string>& unknown) const;

 private:
  [[nodiscard]] const Json& at(std::string_view field) const;
  [[nodiscard]] std::string place_of(std::string_view field) const;

  const Json* value_;
  std::string place_;  // empty at the top
};

}  // namespace reprise::planner
