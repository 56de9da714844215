#include "api/devices.h"

#include <algorithm>
#include <charconv>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <vector>

#include "fmt/ranges.h"

#include "api/data_source.h"
#include "base/error.h"
#include "graph/prepared_names.h"
#include "runtime/comm/thread_communicator.h"
#include "runtime/processor_info.h"

namespace reprise::api {
namespace {

using Outcome = std::variant<TrainReport, planner::Infeasible>;
constexpr int kMostDevices = 256;

// Is it word of another device's fault?
bool is_echo(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const runtime::comm::CommError& error) {
    const auto& culprit = error.failure().rank;
    return culprit && *culprit != error.rank();
  } catch (...) {
    return false;
  }
}

[[noreturn]] void rethrow_from(std::size_t device, const std::exception_ptr& thrown) {
  if (device == 0) std::rethrow_exception(thrown);
  try {
    std::rethrow_exception(thrown);
  } catch (const Diverged& error) {
    throw Diverged(fmt::format("device {}: {}", device, error.what()));
  } catch (const base::Error& error) {
    throw base::Error(error.kind(), fmt::format("device {}: {}", device, error.what()));
  } catch (const std::bad_alloc&) {
    throw base::device_error("device {}: the host is out of memory", device);
  } catch (const std::exception& error) {
    throw base::Error(base::ErrorKind::kInternal,
                      fmt::format("device {}: {}", device, error.what()));
  }
}

// What the devices came to, and who failed first.
class Ends {
 public:
  explicit Ends(std::size_t devices) : outcomes_(devices) { faults_.resize(devices); }

  void ended(std::size_t device, Outcome outcome) {
    const std::lock_guard lock(mutex_);
    outcomes_[device] = std::move(outcome);
  }
  void failed(std::size_t device, std::exception_ptr thrown) {
    const std::lock_guard lock(mutex_);
    faults_[device] = std::move(thrown);
    order_.push_back(device);
  }

  // After all have ended. What is wrong with the flags or the data is wrong on every device: then
  // device 0 says it.
  [[nodiscard]] Outcome result() {
    if (order_.empty()) return std::move(*outcomes_[0]);
    if (faults_[0] && !is_echo(faults_[0])) rethrow_from(0, faults_[0]);
    const auto culprit = std::find_if(order_.begin(), order_.end(), [&](std::size_t device) {
      return !is_echo(faults_[device]);
    });
    const std::size_t device = culprit == order_.end() ? order_.front() : *culprit;
    rethrow_from(device, faults_[device]);
  }

 private:
  std::mutex mutex_;
  std::vector<std::optional<Outcome>> outcomes_;
  std::vector<std::exception_ptr> faults_;
  std::vector<std::size_t> order_;  // of those that failed
};

// Devices but the first leave the talking to it.
TrainHooks silent(const TrainHooks& hooks) {
  TrainHooks quiet;
  quiet.stop = hooks.stop;
  return quiet;
}

void run_device(const TrainOptions& options, const DeviceList& devices, const TrainHooks& hooks,
                std::unique_ptr<runtime::comm::Communicator> end, Ends& ends) {
  const auto device = static_cast<std::size_t>(end->rank());
  try {
    TrainOptions mine = options;
    if (!devices.ordinals.empty()) mine.session.ordinal = devices.ordinals[device];
    mine.session.ranks = std::move(end);
    ends.ended(device, train(mine, device == 0 ? hooks : silent(hooks)));
  } catch (...) {
    ends.failed(device, std::current_exception());
  }
}

constexpr std::string_view kGpuName = "cuda";

// What is wrong with `text`, and what it should be.
struct Fault {
  std::string_view text, form;
  [[nodiscard]] base::Error operator()(std::string_view what) const {
    return base::input_error("'{}': {}; expected {}, with the name one of {}", text, what, form,
                             fmt::join(graph::kBackendNames, ", "));
  }
};

// "cuda:0,1" -> "cuda" and "0,1".
std::pair<std::string_view, std::optional<std::string_view>> split_device(const Fault& fault) {
  const std::size_t colon = fault.text.find(':');
  const std::string_view name = fault.text.substr(0, colon);
  const auto& names = graph::kBackendNames;
  if (std::find(names.begin(), names.end(), name) == names.end())
    throw fault(fmt::format("there is no device '{}'", name));
  if (colon == std::string_view::npos) return {name, std::nullopt};
  return {name, fault.text.substr(colon + 1)};
}

int parse_number(const Fault& fault, std::string_view text, std::string_view what) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size() || number < 0)
    throw fault(fmt::format("'{}' is no {}", text, what));
  return number;
}

std::vector<int> parse_ordinals(const Fault& fault, std::string_view text) {
  std::vector<int> ordinals;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const int ordinal = parse_number(fault, text.substr(begin, end - begin), "number of a GPU");
    if (std::find(ordinals.begin(), ordinals.end(), ordinal) != ordinals.end())
      throw fault(fmt::format("GPU {} comes twice", ordinal));
    ordinals.push_back(ordinal);
    begin = end + 1;
  }
  if (static_cast<int>(ordinals.size()) > kMostDevices)
    throw fault(fmt::format("more than {} devices", kMostDevices));
  return ordinals;
}

}  // namespace

DeviceList parse_devices(std::string_view text) {
  const Fault fault{text, "NAME:COUNT, such as cpu:4, or GPUs by number, such as cuda:0,1"};
  const auto [name, rest] = split_device(fault);
  DeviceList list{.device = std::string(name)};
  if (name == kGpuName) {
    list.ordinals = rest ? parse_ordinals(fault, *rest) : std::vector<int>{0};
    list.count = static_cast<int>(list.ordinals.size());
  } else if (rest) {
    list.count = parse_number(fault, *rest, "number of devices");
    if (list.count < 1 || list.count > kMostDevices)
      throw fault(fmt::format("the number of devices must lie in [1, {}]", kMostDevices));
  }
  return list;
}

DeviceName parse_device(std::string_view text) {
  const Fault fault{text, "a name; a GPU may have its number behind it, such as cuda:1"};
  const auto [name, rest] = split_device(fault);
  DeviceName device{.device = std::string(name)};
  if (!rest) return device;
  if (name != kGpuName) throw fault(fmt::format("{} has no numbers (--devices counts)", name));
  device.ordinal = parse_number(fault, *rest, "number of a GPU");
  return device;
}

Outcome train_on_devices(const TrainOptions& options, const DeviceList& devices,
                         std::chrono::milliseconds timeout, const TrainHooks& hooks) {
  if (options.session.ranks) {
    throw base::input_error(
        "{} devices in a process that is one of several ranks; use one device "
        "a process and as many more ranks",
        devices.count);
  }
  TrainOptions each = options;
  each.session.device = devices.device;
  if (!devices.ordinals.empty()) each.session.ordinal = devices.ordinals.front();
  if (devices.count == 1) return train(each, hooks);
  each.data_cache = std::make_shared<DataCache>();
  each.session.shared_plan = std::make_shared<SharedPlan>();
  const int cores = runtime::read_processor().cores;
  if (each.session.plan.threads == 0) each.session.plan.threads = std::max(1, cores);
  if (each.session.threads == 0) each.session.threads = std::max(1, cores / devices.count);
  auto group = runtime::comm::make_thread_group(
      {.world_size = devices.count, .timeout = timeout, .name = "devices"});
  Ends ends(group.size());
  std::vector<std::thread> others;
  const auto join = [&] {
    for (std::thread& thread : others) thread.join();
  };
  try {
    for (std::size_t device = 1; device < group.size(); ++device) {
      others.emplace_back([&, end = std::move(group[device])]() mutable {
        run_device(each, devices, hooks, std::move(end), ends);
      });
    }
  } catch (...) {  // no thread to be had; those that run hear that device 0 has left
    group[0]->abort("a thread could not be started");
    join();
    throw;
  }
  run_device(each, devices, hooks, std::move(group[0]), ends);
  join();
  Outcome outcome = ends.result();
  if (auto* report = std::get_if<TrainReport>(&outcome)) {
    // Device 0 took the arenas of the others for overhead.
    const Bytes arenas = (devices.count - 1) * report->plan.peak_bytes;
    report->process_overhead_bytes = std::max<Bytes>(0, report->process_overhead_bytes - arenas);
  }
  return outcome;
}

}  // namespace reprise::api
