#pragma once

namespace reprise::cli {

inline constexpr const char* kVersion = REPRISE_VERSION;  // of the CMake project

}  // namespace reprise::cli
