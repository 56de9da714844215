#pragma once

// Failures. Three kinds take three forms (docs/design.md): an expected outcome is a value; a fault
// of the caller, a file or the device is an Error; a broken invariant of ours is a REPRISE_CHECK.

#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include "fmt/format.h"

namespace reprise::base {

enum class ErrorKind {
  kInput,     // a wrong flag, file, shape or value: exit code 2
  kDevice,    // a device, library, operating system or allocation failed: exit code 1
  kInternal,  // a broken invariant of Reprise itself: exit code 1
};

[[nodiscard]] const char* error_kind_name(ErrorKind kind);  // "input", "device", "internal"

class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const { return kind_; }

 private:
  ErrorKind kind_;
};

// throw input_error("batch {}: planned for {}", got, planned);
template <class... Args>
[[nodiscard]] Error input_error(fmt::format_string<Args...> format, Args&&... args) {
  return Error(ErrorKind::kInput, fmt::format(format, std::forward<Args>(args)...));
}
template <class... Args>
[[nodiscard]] Error device_error(fmt::format_string<Args...> format, Args&&... args) {
  return Error(ErrorKind::kDevice, fmt::format(format, std::forward<Args>(args)...));
}

// What an exception of the JSON library says, without the library's own tag:
// "[json.exception.parse_error.101] parse error at line 1, ..." -> "parse error at line 1, ...".
[[nodiscard]] std::string_view json_reason(std::string_view what);

[[noreturn]] void check_failed(const char* expression, const char* file, int line,
                               const std::string& message);

}  // namespace reprise::base

// Throws Error(kInternal) with file, line and the formatted message when an invariant of ours is
// broken.
#define REPRISE_CHECK(condition, ...)                                                            \
  do {                                                                                           \
    if (!(condition)) [[unlikely]] {                                                             \
      ::reprise::base::check_failed(#condition, __FILE__, __LINE__, ::fmt::format(__VA_ARGS__)); \
    }                                                                                            \
  } while (false)
