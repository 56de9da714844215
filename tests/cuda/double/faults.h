#pragma once

// Where everything that a correct program never does is reported.

#include <string>

namespace reprise::test::cuda {

// Goes to the collector where there is one; prints and aborts otherwise.
void fault(const std::string& text);

}  // namespace reprise::test::cuda
