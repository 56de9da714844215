#pragma once

// The test part of a run: which inference form of a model is evaluated, and what all ranks together
// find.

#include <string_view>
#include <vector>

#include "api/data_source.h"
#include "api/session.h"
#include "api/shard.h"
#include "runtime/comm/communicator.h"

namespace reprise::api {

// Inference forms of the model, largest first: Session takes the first that fits the arena of
// training. `tried` gets the options of each.
[[nodiscard]] std::vector<models::Model> evaluation_candidates(
    std::string_view name, models::ModelOptions options, bool sequence,
    std::vector<models::ModelOptions>& tried);

struct Scores {
  double loss = 0;      // mean over the items of the test part
  double accuracy = 0;  // in [0, 1]
};
// Of its parts each rank has every N-th, and the sums are in the order of the parts, so all ranks
// get the same. `ranks` is null for one alone; statistics of batch norm are then its own, else
// those of rank 0.
[[nodiscard]] Scores evaluate(Session& session, DataSource& source, const Shard& shard,
                              runtime::comm::Communicator* ranks);

}  // namespace reprise::api
