#include "tests/support/interpreter.h"

namespace reprise::test {

std::vector<std::string> tested_backends() {
  return {"reference", "cpu"};
}

}  // namespace reprise::test
