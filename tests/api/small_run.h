#pragma once

// A training run of a small network, for tests of ranks, devices and micro-batches.

#include "api/trainer.h"
#include "tests/api/training_case.h"

namespace reprise::api {

// Five steps of a perceptron without evaluation, replicas compared after each.
inline TrainOptions small_mlp_run(std::int64_t batch, std::int64_t layers) {
  TrainOptions options;
  options.model = "mlp";
  options.model_options = {.batch = batch,
                           .channels = 1,
                           .height = 4,
                           .width = 4,
                           .classes = 3,
                           .hidden = 8,
                           .layers = layers};
  options.session = on("reference", "keep_all");
  options.steps = 5;
  options.evaluate = false;
  options.compare_every = 1;
  return options;
}

}  // namespace reprise::api
