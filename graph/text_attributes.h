#pragma once

// The text form of a node's attributes: "stride=[2,2] padding=[1,1]".

#include <string>

#include "graph/op.h"
#include "graph/text_line.h"

namespace reprise::graph {

// The fields that differ from their defaults, each after a blank; empty when none does.
[[nodiscard]] std::string print_attributes(OpKind op, const Attributes& attributes);

// Reads fields up to the end of the line; those left out keep their defaults. Throws Error(kInput).
[[nodiscard]] Attributes parse_attributes(OpKind op, TextLine& line);

}  // namespace reprise::graph
