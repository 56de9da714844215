#include <charconv>
#include <cmath>
#include <string>

#include "api/plan.h"
#include "base/error.h"

namespace reprise::api {

Budget parse_budget(std::string_view text) {
  if (text == "floor") return {.kind = Budget::Kind::kFloor};
  if (text == "unlimited") return {.kind = Budget::Kind::kUnlimited};
  if (!text.empty() && text.back() == '%') {
    double percent = 0;
    const char* end = text.data() + text.size() - 1;
    const auto [rest, code] = std::from_chars(text.data(), end, percent);
    if (code != std::errc() || rest != end || !(percent > 0) || percent > 1e6) {
      throw base::input_error(
          "budget '{}': write a positive percentage of keep_all_bytes, e.g. 40%", text);
    }
    return {.kind = Budget::Kind::kPercent, .percent = percent};
  }
  const Bytes bytes = base::parse_bytes(text);
  if (bytes <= 0) {
    throw base::input_error(
        "budget '{}': must be more than 0 bytes; write e.g. 300MiB, 40% or floor", text);
  }
  return {.kind = Budget::Kind::kBytes, .bytes = bytes};
}

Bytes resolve_budget(const Budget& budget, Bytes keep_all, Bytes unlimited,
                     const std::function<Bytes()>& floor) {
  switch (budget.kind) {
    case Budget::Kind::kBytes:
      return budget.bytes;
    case Budget::Kind::kPercent:
      return static_cast<Bytes>(std::floor(static_cast<double>(keep_all) * budget.percent / 100.0));
    case Budget::Kind::kFloor:
      return floor();
    case Budget::Kind::kUnlimited:
      return unlimited;
  }
  return unlimited;
}

}  // namespace reprise::api
