#include "planner/problem_json.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace reprise::planner {
namespace {

using base::input_error;

// The text of a value, short enough for a message.
std::string shown(const Json& value) {
  if (value.is_object() || value.is_array()) {
    return value.is_object() ? "an object" : "an array";
  }
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 40) text = text.substr(0, 37) + "...";
  return text;
}

// Throws when it is none.
std::int64_t whole_number(const Json& value, std::int64_t low, const std::string& place) {
  constexpr double kTwoTo63 = 9223372036854775808.0;
  if (!value.is_number()) {
    throw input_error("{}: {}; expected a whole number", place, shown(value));
  }
  std::int64_t number = 0;
  bool fits = true;
  if (value.is_number_float()) {
    const double real = value.get<double>();
    if (std::abs(real) < kTwoTo63 && real != std::trunc(real)) {
      throw input_error("{}: {}; expected a whole number", place, shown(value));
    }
    fits = std::abs(real) < kTwoTo63;
    if (fits) number = static_cast<std::int64_t>(real);
  } else if (value.is_number_unsigned()) {
    fits = value.get<std::uint64_t>() < (std::uint64_t{1} << 63);
    if (fits) number = value.get<std::int64_t>();
  } else {
    number = value.get<std::int64_t>();
  }
  if (!fits) throw input_error("{}: {} is beyond 2^63", place, shown(value));
  if (number < low) throw input_error("{}: {}; it is at least {}", place, number, low);
  return number;
}

std::string parse_message(std::string_view text, const Json::exception& error) {
  std::string message = fmt::format("the problem is no JSON: {}", base::json_reason(error.what()));
  if (const auto* at = dynamic_cast<const Json::parse_error*>(&error)) {
    const std::size_t end = std::min(at->byte + 10, text.size());
    const std::size_t begin = at->byte > 40 ? std::min(at->byte - 40, end) : 0;
    std::string around(text.substr(begin, end - begin));
    for (char& c : around) {
      if (c < ' ' || c == 0x7f) c = ' ';
    }
    // dump() replaces what is not UTF-8.
    message +=
        fmt::format("; near {}", Json(around).dump(-1, ' ', true, Json::error_handler_t::replace));
  }
  return message;
}

// The parser keeps the last of two fields of one name; here that is an error.
class FieldNames {
 public:
  bool operator()(int depth, Json::parse_event_t event, const Json& parsed) {
    switch (event) {
      case Json::parse_event_t::array_start:
      case Json::parse_event_t::object_start:
        if (depth >= kDeepest) {
          throw input_error("the problem nests values deeper than {} levels", kDeepest);
        }
        if (event == Json::parse_event_t::object_start) open_.emplace_back();
        break;
      case Json::parse_event_t::object_end:
        open_.pop_back();
        break;
      case Json::parse_event_t::key:
        if (!open_.back().insert(parsed.get<std::string>()).second) {
          throw input_error("the problem has two fields {} in one object", shown(parsed));
        }
        break;
      default:
        break;
    }
    return true;
  }

 private:
  std::vector<std::set<std::string>> open_;
};

}  // namespace

Json parse_json(std::string_view text) {
  FieldNames names;
  try {
    return Json::parse(text.begin(), text.end(), std::ref(names));
  } catch (const Json::exception& error) {
    throw input_error("{}", parse_message(text, error));
  }
}

JsonObject::JsonObject(const Json& value, std::string place)
    : value_(&value), place_(std::move(place)) {
  if (value.is_object()) return;
  throw input_error("{}: {}; expected an object", place_.empty() ? "the problem" : place_,
                    shown(value));
}

bool JsonObject::has(std::string_view field) const {
  return value_->find(field) != value_->end();
}

std::string JsonObject::place_of(std::string_view field) const {
  return place_.empty() ? std::string(field) : fmt::format("{}: {}", place_, field);
}

const Json& JsonObject::at(std::string_view field) const {
  const auto found = value_->find(field);
  if (found != value_->end()) return *found;
  throw input_error("{}: field '{}' is missing", place_.empty() ? "the problem" : place_, field);
}

const Json& JsonObject::array(std::string_view field) const {
  const Json& value = at(field);
  if (value.is_array()) return value;
  throw input_error("{}: {}; expected an array", place_of(field), shown(value));
}

JsonObject JsonObject::object(std::string_view field) const {
  return {at(field), place_of(field)};
}

std::string JsonObject::text(std::string_view field) const {
  const Json& value = at(field);
  if (value.is_string()) return value.get<std::string>();
  throw input_error("{}: {}; expected a text", place_of(field), shown(value));
}

bool JsonObject::boolean(std::string_view field) const {
  const Json& value = at(field);
  if (value.is_boolean()) return value.get<bool>();
  throw input_error("{}: {}; expected true or false", place_of(field), shown(value));
}

std::int64_t JsonObject::whole(std::string_view field, std::int64_t low) const {
  return whole_number(at(field), low, place_of(field));
}

std::vector<std::int64_t> JsonObject::wholes(std::string_view field, std::int64_t low) const {
  const Json& values = array(field);
  std::vector<std::int64_t> result;
  result.reserve(values.size());
  for (const Json& value : values) {
    // The place costs a text; it is made where it is needed.
    if (value.is_number_unsigned() && value.get<std::uint64_t>() < (std::uint64_t{1} << 63) &&
        value.get<std::int64_t>() >= low) {
      result.push_back(value.get<std::int64_t>());
    } else {
      result.push_back(
          whole_number(value, low, fmt::format("{}[{}]", place_of(field), result.size())));
    }
  }
  return result;
}

void JsonObject::collect_unknown(const std::set<std::string, std::less<>>& known,
                                 std::set<std::string>& unknown) const {
  for (const auto& [field, value] : value_->items()) {
    if (!known.contains(field)) unknown.insert(field);
  }
}

}  // namespace reprise::planner
