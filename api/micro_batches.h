#pragma once

// The options of one micro-batch of one rank, and which batches can be cut so.

#include <cstdint>

#include "api/shard.h"
#include "models/model.h"

namespace reprise::api {

// `all` of the global batch, as one micro-batch of the shard has them.
[[nodiscard]] models::ModelOptions options_of_micro_batch(models::ModelOptions all,
                                                          const Shard& shard);

// Throws Error(kInput) for a model with batch norm over ranks that do not share the batch evenly:
// padding would count in the statistics, unless they are of all ranks.
void require_even_ranks(const models::Model& model, std::int64_t batch, const Shard& shard,
                        bool batch_norm_over_ranks);

// Throws Error(kInput) with the nearest good numbers: more micro-batches than items, or uneven ones
// for a model that cannot do with padding. Batch norm would count it, unless its statistics are of
// all ranks, and the rows of a carried state have to be those of the batch. `model` is that of one
// micro-batch.
void require_micro_batches(const models::Model& model, std::int64_t batch, const Shard& shard,
                           bool batch_norm_over_ranks = false);

}  // namespace reprise::api
