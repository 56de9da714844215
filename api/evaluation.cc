#include "api/evaluation.h"

#include <algorithm>
#include <numeric>
#include <span>

#include "api/replicas.h"

namespace reprise::api {

std::vector<models::Model> evaluation_candidates(std::string_view name,
                                                 models::ModelOptions options, bool sequence,
                                                 std::vector<models::ModelOptions>& tried) {
  options.training = false;
  std::vector<models::Model> candidates;
  std::int64_t& size =
      sequence ? options.seq_len : options.batch;  // carried state fixes the batch of sequences
  for (;; size /= 2) {
    if (sequence) options.chunk = std::min(options.chunk, options.seq_len);
    candidates.push_back(models::make_model(name, options));
    tried.push_back(options);
    if (size <= 1) return candidates;
  }
}

Scores evaluate(Session& session, DataSource& source, const Shard& shard,
                runtime::comm::Communicator* ranks) {
  if (ranks != nullptr) copy_statistics_from_first_rank(session, *ranks);
  // Added up in the order of the parts, whichever rank has them.
  std::vector<double> losses(static_cast<std::size_t>(source.evaluation_parts()));
  std::int64_t items_and_correct[2] = {0, 0};
  session.begin_evaluation();
  for (std::int64_t i = shard.rank; i < source.evaluation_parts(); i += shard.ranks) {
    const DataSource::EvaluationPart part = source.fill_evaluation(session, i);
    const Session::Evaluation result = session.evaluate();
    losses[static_cast<std::size_t>(i)] =
        static_cast<double>(result.loss) * static_cast<double>(part.divisor);
    items_and_correct[0] += part.items;
    items_and_correct[1] += result.correct;
  }
  session.end_evaluation();
  if (ranks != nullptr) {
    ranks->all_reduce(std::span(losses));
    ranks->all_reduce(std::span<std::int64_t>(items_and_correct));
  }
  const auto items = static_cast<double>(items_and_correct[0]);
  return {.loss = std::accumulate(losses.begin(), losses.end(), 0.0) / items,
          .accuracy = static_cast<double>(items_and_correct[1]) / items};
}

}  // namespace reprise::api
