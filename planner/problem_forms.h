#pragma once

// The forms of a problem file, one reader each (problem_graph.cc, problem_chain.cc,
// problem_file.cc).

#include <set>
#include <string>

#include "planner/problem_file.h"
#include "planner/problem_json.h"

namespace reprise::planner {

// Names of fields that a form knows, and where those it does not know are noted.
using FieldSet = std::set<std::string, std::less<>>;
using Ignored = std::set<std::string>;

[[nodiscard]] OpGraphFile read_op_graph(const JsonObject& file, Ignored& ignored);
[[nodiscard]] ChainFile read_chain(const JsonObject& chain, Ignored& ignored);
[[nodiscard]] UniformChainFile read_uniform_chain(const JsonObject& file);
[[nodiscard]] BuffersFile read_buffers(const JsonObject& file, Ignored& ignored);

// `alignment`, a power of two; 1 when there is none.
[[nodiscard]] Bytes read_alignment(const JsonObject& file);

}  // namespace reprise::planner
