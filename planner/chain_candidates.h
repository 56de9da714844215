#pragma once

// Plans of op graphs that are (nearly) chains, for the strategies `chain` and `rnn` and for auto.

#include <functional>

#include "planner/frontier.h"
#include "planner/structure.h"

namespace reprise::planner {

// Stages cut evenly, 2, 4, 8, ... of them, solved by the staircase programme; plans for some tens
// of levels of memory, each of the number of stages that promises most.
void offer_chains(const Structure& structure, const Request& request, Frontier& frontier);

// The forward part as equal stages of one or more periods, solved as uniform chains with several
// choices of what is recorded; the same levels. Offers nothing where the forward part does not
// repeat four times or more.
void offer_periods(const Structure& structure, const Request& request, Frontier& frontier);

}  // namespace reprise::planner
