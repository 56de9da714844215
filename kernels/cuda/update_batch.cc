#include "kernels/cuda/update_batch.h"

namespace reprise::kernels::cuda {

void UpdateBatch::reserve(std::size_t updates) {
  sgd_arrays_.reserve(updates);
  adam_arrays_.reserve(updates);
}

void UpdateBatch::add(const SgdSettings& settings, const double* scalars, const float* norm,
                      const SgdArrays& arrays, cudaStream_t stream) {
  const Sgd wanted{settings, scalars, norm};
  if (adam_ || (sgd_ && *sgd_ != wanted)) flush(stream);
  sgd_ = wanted;
  if (arrays.count > 0) sgd_arrays_.push_back(arrays);
}

void UpdateBatch::add(const AdamSettings& settings, const double* scalars, const AdamScalars& at,
                      const float* norm, const AdamArrays& arrays, cudaStream_t stream) {
  const Adam wanted{settings, scalars, at, norm};
  if (sgd_ || (adam_ && *adam_ != wanted)) flush(stream);
  adam_ = wanted;
  if (arrays.count > 0) adam_arrays_.push_back(arrays);
}

void UpdateBatch::flush(cudaStream_t stream) {
  if (sgd_) launch_sgd(sgd_->settings, sgd_->scalars, sgd_->norm, sgd_arrays_, stream);
  if (adam_)
    launch_adam(adam_->settings, adam_->scalars, adam_->at, adam_->norm, adam_arrays_, stream);
  drop();
}

void UpdateBatch::drop() {
  sgd_.reset();
  adam_.reset();
  sgd_arrays_.clear();
  adam_arrays_.clear();
}

}  // namespace reprise::kernels::cuda
