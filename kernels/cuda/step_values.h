#pragma once

// What a step's kernels read from device memory because it differs from step to step: a recorded
// step (a CUDA graph) is played again with the same arguments.

namespace reprise::kernels::cuda {

struct StepValues {
  unsigned long long seed;
  unsigned long long step;
  // Behind these two: the scalars that kernels asked for (Booking::step_scalar), as doubles.
  double scalars[1];
};

}  // namespace reprise::kernels::cuda
