#pragma once

// What the tests of several ranks on the double share: a run of a few steps on each rank, ranks as
// threads with a GPU each.

#include <cmath>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "api/data_source.h"
#include "api/replicas.h"
#include "api/shard.h"
#include "tests/api/training_case.h"
#include "tests/cuda/double/control.h"
#include "tests/runtime/comm_group.h"

namespace reprise::api {

using runtime::comm::Communicator;
using runtime::comm::testing::run_ranks;
using runtime::comm::testing::threads_kind;
using runtime::comm::testing::world;

inline TrainOptions rank_options(const std::string& model, std::int64_t batch) {
  TrainOptions options;
  options.model = model;
  options.evaluate = false;
  options.session = on("cuda", "keep_all");
  options.session.synchronise_batch_norm = true;
  options.session.bucket_bytes = 512;  // several sums under way
  options.optimizer = graph::SgdAttributes{.rate = {.base = 0.05}, .momentum = 0.9};
  if (model == "lstm") {
    options.model_options = {
        .batch = batch, .hidden = 8, .layers = 1, .vocabulary = 11, .seq_len = 8, .chunk = 2};
  } else if (model == "mlp") {
    options.model_options = {.batch = batch,
                             .channels = 1,
                             .height = 4,
                             .width = 4,
                             .classes = 3,
                             .hidden = 12,
                             .layers = 6};
  } else {
    options.model_options = {.batch = batch, .channels = 3, .height = 8, .width = 8, .classes = 4};
  }
  return options;
}

// What a rank has seen of its run.
struct RankRun {
  std::vector<double> losses;         // by step: its part of the global loss
  std::vector<std::uint64_t> hashes;  // by step: of parameters and optimizer state
  std::map<std::string, std::vector<float>> parameters;  // at the end
};

// One rank's session and its part of the data.
class RankSession {
 public:
  explicit RankSession(TrainOptions options, Communicator* ranks = nullptr) {
    if (ranks != nullptr) {
      shard_ = {.rank = ranks->rank(), .ranks = ranks->world_size()};
      options.session.ranks = {ranks, [](Communicator*) {}};
      options.session.ordinal = ranks->rank();
    }
    models::ModelOptions local = options.model_options;
    source_ = open_data(options, local, shard_);
    batch_ = local.batch;
    local.batch = shard_.planned(batch_);
    session_ = make_session(models::make_model(options.model, local), options.session,
                            {.optimizer = options.optimizer});
  }

  // This rank's part of the global loss.
  double step(std::int64_t index) {
    source_->fill(*session_, 0, index);
    const float weight = source_->gradient_weight();
    session_->set_gradient_weight(weight);
    session_->set_batch_parts(shard_.counts(batch_));
    const auto loss = static_cast<double>(session_->step());
    return shard_.count(batch_) == 0 ? 0.0 : static_cast<double>(weight) * loss;
  }
  [[nodiscard]] Session& session() { return *session_; }

 private:
  Shard shard_;
  std::int64_t batch_ = 0;
  std::unique_ptr<DataSource> source_;
  std::unique_ptr<Session> session_;
};

inline RankRun run_rank(const TrainOptions& options, std::int64_t steps,
                        Communicator* ranks = nullptr) {
  RankSession rank(options, ranks);
  RankRun run;
  for (std::int64_t step = 0; step < steps; ++step) {
    run.losses.push_back(rank.step(step));
    run.hashes.push_back(replica_hash(rank.session()));
  }
  for (const Session::Variable& variable : rank.session().variables()) {
    if (variable.role == graph::Role::kParameter)
      run.parameters[variable.name] = numbers(rank.session().read(variable.name));
  }
  return run;
}

// What each rank has seen, and what it threw.
struct GroupRun {
  std::vector<RankRun> ranks;
  std::vector<std::string> thrown;
};

inline GroupRun run_group(const TrainOptions& options, int size, std::int64_t steps,
                          std::chrono::milliseconds timeout = std::chrono::seconds(60)) {
  GroupRun group;
  group.ranks.resize(static_cast<std::size_t>(size));
  group.thrown = run_ranks(threads_kind(), world(size, timeout), [&](Communicator& end) {
    group.ranks[static_cast<std::size_t>(end.rank())] = run_rank(options, steps, &end);
  });
  return group;
}

inline void set_gpus(int count) {
  test::cuda::reset();
  test::cuda::set_machine({.devices = count});
}

}  // namespace reprise::api
