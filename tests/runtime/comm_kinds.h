#pragma once

// The communicators of this build, for tests that hold for all of them.

#include <vector>

#include "tests/runtime/comm_group.h"

namespace reprise::runtime::comm::testing {

inline std::vector<GroupKind> group_kinds() {
  return {threads_kind()};
}

}  // namespace reprise::runtime::comm::testing
