#pragma once

// The training run behind `reprise train`: a model, a data set and a budget become trained weights.

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/session.h"
#include "base/error.h"
#include "graph/autodiff.h"
#include "models/model.h"

namespace reprise::api {

// A data set as a user names it: "fashion-mnist", "fashion-mnist:DIR", "cifar10:DIR", "idx:DIR",
// "text:FILE", "synthetic".
struct DataSpec {
  enum class Kind : std::uint8_t {
    kFashionMnist,
    kIdx,
    kCifar10,
    kText,
    kSynthetic
  } kind = Kind::kSynthetic;
  std::filesystem::path path{};  // empty: where the Debian package puts it (fashion-mnist only)
};
[[nodiscard]] DataSpec parse_data(std::string_view text);  // throws Error(kInput) listing the forms

struct TrainOptions {
  std::string model = "resnet20";
  models::ModelOptions model_options{};
  DataSpec data{};
  graph::Optimizer optimizer = graph::SgdAttributes{};
  bool updates_last = false;  // graph::TrainingOptions::updates_last
  // The batch (of one rank, its part) is computed in so many pieces, one after the other; see
  // docs/accumulation.md.
  std::int64_t micro_batches = 1;
  // Steps to take in all (counting those before a resume); 0: `epochs` passes over the data.
  std::int64_t steps = 0;
  std::int64_t epochs = 1;
  SessionOptions session{};
  bool augment = false;                 // images: pad 4 (28 and 32 pixel images), random crop, flip
  bool evaluate = true;                 // on the test split after each epoch and at the end
  std::filesystem::path save_folder{};  // empty: nothing is saved
  std::int64_t save_every = 0;          // steps; 0: after each epoch and at the end
  // With SessionOptions::ranks every rank calls train(): `batch` is that of all ranks together, and
  // rank 0 alone saves. Every so many steps, and at the end, parameters and optimizer state are
  // compared over the ranks (0: at the end only).
  std::int64_t compare_every = 100;
  std::optional<std::filesystem::path> resume{};  // a snapshot, or a folder with snapshots
  // Where each rank writes what ran when in the third step of the run, or its last (api/trace.h).
  std::filesystem::path trace_file{};  // empty: nowhere
  // lstm, gru: model_options.chunk is chosen together with the plan (api/chunk.h); a resumed run
  // takes that of its snapshot.
  bool choose_chunk = false;
  // Runs of one process on the same data share what they load; null: this one loads its own.
  std::shared_ptr<class DataCache> data_cache{};
};

struct TrainReport {
  PlanReport plan;
  std::int64_t steps = 0;            // taken in this run
  bool stopped_early = false;        // TrainHooks::stop ended it before its last step
  std::vector<float> losses;         // one per step of this run
  double ms_per_step = 0;            // running the schedule: median, without the first step
  double data_ms_per_step = 0;       // filling the batch before it, likewise
  double predicted_ms_per_step = 0;  // from the plan's cost
  Bytes peak_bytes_measured = 0;
  std::optional<double> grad_norm;   // of the last step, before clipping; where it was needed
  std::int64_t skipped_steps = 0;    // for a norm that was not finite; their losses are in the list
  Bytes process_overhead_bytes = 0;  // resident bytes beyond the arena, at the end
  // On a GPU: what context and libraries hold of its memory, beside the arena.
  std::optional<Bytes> device_overhead_bytes;
  std::uint64_t state_hash = 0;
  int world_size = 1;
  std::optional<std::int64_t> resumed_from;  // step
  std::optional<double> test_accuracy, test_loss;
  std::optional<std::filesystem::path> trace_file;  // as written
  std::vector<std::string> warnings;
};

// What the caller may watch and do while training runs.
struct TrainHooks {
  std::function<void(const PlanReport&)> planned{};
  struct Step {
    std::int64_t step = 0, total_steps = 0, epoch = 0;
    float loss = 0;
    double items_per_second = 0;
    Bytes arena_bytes = 0;
  };
  std::function<void(const Step&)> stepped{};
  struct Evaluated {
    std::int64_t step = 0, epoch = 0;
    double accuracy = 0, loss = 0;
  };
  std::function<void(const Evaluated&)> evaluated{};
  std::function<void(const std::string&)> note{};  // warnings and files written
  const std::atomic<bool>* stop =
      nullptr;  // set by a signal: save at the next step boundary and end
};

// So many steps skipped one after the other end a run as diverged.
inline constexpr std::int64_t kMostSkippedInARow = 10;

// A loss or a state is not finite any more: a fault of the run, not of a device.
class Diverged : public base::Error {
 public:
  explicit Diverged(const std::string& message) : base::Error(base::ErrorKind::kDevice, message) {}
};

// Trains. The infeasible answer is a value; everything else that goes wrong is an Error. A loss or
// a state that is not finite is Diverged: nothing of that state is saved, snapshots written
// before stay.
[[nodiscard]] std::variant<TrainReport, planner::Infeasible> train(const TrainOptions& options,
                                                                   const TrainHooks& hooks = {});

}  // namespace reprise::api
