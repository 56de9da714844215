#pragma once

// Sums over ranks run beside the step; the more instructions lie between begin and wait, the more
// is hidden. A plan weighs bytes and costs, to which the place of an all_reduce or an await is all
// the same, so it may stand anywhere.
//
//     before   g . reduce g . await g . update g . . h . (h takes g's bytes)
//     after    g reduce g . . . . . . . await g update g h
//
// The begin moves up to where its gradient is final, and the wait with the update behind it down to
// where other bytes need the place. Every slot stays where it is, so arena and cost do, too.

#include "schedule/schedule.h"

namespace reprise::planner {

// The same instructions in another order; as they were where the graph has no all_reduce. An update
// is moved when it books no workspace.
[[nodiscard]] schedule::Schedule spread_sums(const graph::PreparedGraph& prepared,
                                             schedule::Schedule schedule);

}  // namespace reprise::planner
