#pragma once

// Several devices in one process: a thread each, with a session, an arena and a communicator of its
// own. To the trainer they are ranks: the batch is cut as api/shard.h says, sums go over
// runtime/comm/thread_communicator.h, and a run gives the bits of as many processes.

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "api/trainer.h"

namespace reprise::api {

struct DeviceList {
  std::string device = "cpu";  // of SessionOptions
  int count = 1;
  std::vector<int> ordinals{};  // of GPUs: which ones, `count` of them; empty for others
};
// "cpu:4", "reference:2": so many; "cuda:0,1": those GPUs. A name alone is one of them. Throws
// Error(kInput) naming the form.
[[nodiscard]] DeviceList parse_devices(std::string_view text);

struct DeviceName {
  std::string device = "cpu";
  std::optional<int> ordinal{};  // of a GPU, where it is named
};
// "cpu", "reference", "cuda", "cuda:1". Throws Error(kInput) naming the form.
[[nodiscard]] DeviceName parse_device(std::string_view text);

// train() on each of the devices. The budget is for each; so are SessionOptions::threads, by
// default the cores of the process shared out. Device 0 talks to the hooks, evaluates and saves.
// Stopping ends all after the same step. When a device fails the others end too, and what it threw
// is thrown here with its number in front, for device 0 as it is. The data set is loaded once, and
// one plan is made for all.
// `timeout`: of what the devices do together.
[[nodiscard]] std::variant<TrainReport, planner::Infeasible> train_on_devices(
    const TrainOptions& options, const DeviceList& devices, std::chrono::milliseconds timeout,
    const TrainHooks& hooks = {});

}  // namespace reprise::api
