#include "api/micro_batches.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace reprise::api {
namespace {

bool has(const models::Model& model, graph::OpKind op) {
  return std::any_of(model.graph.nodes.begin(), model.graph.nodes.end(),
                     [&](const graph::Node& node) { return node.op == op; });
}

std::string either(std::int64_t low, std::int64_t high) {
  return low > 0 ? fmt::format("{} or {}", low, high) : fmt::format("{}", high);
}

// The divisors of `items` next to `count`.
std::string nearest_divisors(std::int64_t items, std::int64_t count) {
  std::int64_t low = count;
  while (items % low != 0) --low;
  std::int64_t high = count;
  while (items % high != 0) ++high;
  return either(low, high);
}

std::string nearest_multiples(std::int64_t number, std::int64_t of) {
  const std::int64_t low = number / of * of;
  return either(low, low + of);
}

}  // namespace

models::ModelOptions options_of_micro_batch(models::ModelOptions all, const Shard& shard) {
  all.batch = shard.planned(all.batch);
  return all;
}

void require_even_ranks(const models::Model& model, std::int64_t batch, const Shard& shard,
                        bool batch_norm_over_ranks) {
  if (batch % shard.ranks == 0 || batch_norm_over_ranks) return;
  if (!has(model, graph::OpKind::kBatchNorm)) return;
  throw base::input_error(
      "--batch {} over {} ranks: the last parts are padded, and padding would count in each "
      "rank's statistics of batch norm; take a multiple of {}, or --sync-batch-norm",
      batch, shard.ranks, shard.ranks);
}

void require_micro_batches(const models::Model& model, std::int64_t batch, const Shard& shard,
                           bool batch_norm_over_ranks) {
  if (shard.micro_batches == 1) return;
  const std::int64_t part = shard.planned_by_rank(batch);
  const std::string of_rank = shard.ranks > 1 ? fmt::format(" over {} ranks", shard.ranks) : "";
  if (shard.micro_batches > part) {
    throw base::input_error("--accumulate {}: --batch {}{} has only {} items to cut",
                            shard.micro_batches, batch, of_rank, part);
  }
  if (part % shard.micro_batches == 0) return;
  const bool counts =
      has(model, graph::OpKind::kBatchNorm) && !(batch_norm_over_ranks && shard.ranks > 1);
  if (!counts && !has(model, graph::OpKind::kAssign)) return;
  throw base::input_error(
      "--accumulate {}: of {} items{}, {} micro-batches of {} leave the last one short, and {}; "
      "take --accumulate {}, or --batch {}",
      shard.micro_batches, part, shard.ranks > 1 ? " of a rank" : "", shard.micro_batches,
      shard.planned(batch),
      counts ? "the padding would count in the statistics of batch norm"
             : "carried state has a row for each item (--stateless carries none)",
      nearest_divisors(part, shard.micro_batches),
      nearest_multiples(batch, shard.micro_batches * shard.ranks));
}

}  // namespace reprise::api
