#pragma once

// Updates that follow one another become one launch: what a step adds to it waits until something
// else is queued, or the step ends. In a plan whose updates stand at the end (clipping,
// accumulation) that is one kernel for dozens of parameters; where an update follows its gradient
// at once it has fewer neighbours.

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

#include "kernels/cuda/update.h"

namespace reprise::kernels::cuda {

class UpdateBatch {
 public:
  // So that a step allocates nothing: as many as there can be.
  void reserve(std::size_t updates);

  // Arrays of one arena. Updates with other settings than those that wait are queued behind them.
  void add(const SgdSettings& settings, const double* scalars, const float* norm,
           const SgdArrays& arrays, cudaStream_t stream);
  void add(const AdamSettings& settings, const double* scalars, const AdamScalars& at,
           const float* norm, const AdamArrays& arrays, cudaStream_t stream);
  // Queues what waits.
  void flush(cudaStream_t stream);
  // Forgets what waits: the step has failed.
  void drop();

 private:
  struct Sgd {
    SgdSettings settings;
    const double* scalars;
    const float* norm;
    friend bool operator==(const Sgd&, const Sgd&) = default;
  };
  struct Adam {
    AdamSettings settings;
    const double* scalars;
    AdamScalars at;
    const float* norm;
    friend bool operator==(const Adam&, const Adam&) = default;
  };
  std::optional<Sgd> sgd_;  // what those in sgd_arrays_ have in common
  std::vector<SgdArrays> sgd_arrays_;
  std::optional<Adam> adam_;
  std::vector<AdamArrays> adam_arrays_;
};

}  // namespace reprise::kernels::cuda
