#include "base/error.h"

namespace reprise::base {

const char* error_kind_name(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::kInput:
      return "input";
    case ErrorKind::kDevice:
      return "device";
    case ErrorKind::kInternal:
      return "internal";
  }
  return "internal";
}

std::string_view json_reason(std::string_view what) {
  if (const std::size_t close = what.find("] "); what.starts_with('[') && close != what.npos) {
    what.remove_prefix(close + 2);
  }
  return what;
}

void check_failed(const char* expression, const char* file, int line, const std::string& message) {
  throw Error(ErrorKind::kInternal,
              fmt::format("{}:{}: broken invariant ({}): {}", file, line, expression, message));
}

}  // namespace reprise::base
