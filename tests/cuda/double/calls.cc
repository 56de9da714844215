#include "tests/cuda/double/calls.h"

#include <cstdlib>
#include <cstring>
#include <fmt/format.h>

#include "tests/cuda/double/capture.h"
#include "tests/cuda/double/memory.h"

namespace reprise::test::cuda {
namespace {

struct Injected {
  std::size_t calls_left = 0;
  int status = 0;
};

// Never destroyed: it is asked at the end of the process too.
struct State {
  Machine machine;
  Counts counts;
  std::map<std::string, Injected> to_fail;
  std::map<int, cudaError_t> broken;
  std::map<int, std::size_t> overheads;
};

State& state() {
  static State* const instance = new State;
  return *instance;
}

thread_local int the_device = 0;
thread_local cudaError_t last_error = cudaSuccess;

}  // namespace

int current_device() {
  return the_device;
}
void set_current_device(int device) {
  the_device = device;
}
const Machine& machine() {
  return state().machine;
}

void count_kernel() {
  ++state().counts.kernels;
}
void count_graph_launch() {
  ++state().counts.graph_launches;
}

void count_bytes(cudaMemcpyKind kind, std::size_t bytes) {
  if (kind == cudaMemcpyHostToDevice) state().counts.host_to_device_bytes += bytes;
  if (kind == cudaMemcpyDeviceToHost) state().counts.device_to_host_bytes += bytes;
  if (kind == cudaMemcpyDeviceToDevice) state().counts.device_to_device_bytes += bytes;
}

void break_device(int device, cudaError_t status) {
  state().broken.emplace(device, status);
}

cudaError_t device_status(int device) {
  const auto found = state().broken.find(device);
  return found == state().broken.end() ? cudaSuccess : found->second;
}

cudaError_t keep_error(cudaError_t status) {
  if (status != cudaSuccess && status != cudaErrorNotReady) last_error = status;
  return status;
}

cudaError_t take_error(bool clear) {
  const cudaError_t status = last_error;
  if (clear) last_error = cudaSuccess;
  return status;
}

void take_overhead(int device, std::size_t bytes) {
  state().overheads[device] += bytes;
}

void give_back_overhead(int device, std::size_t bytes) {
  state().overheads[device] -= bytes;
}

std::size_t overhead(int device) {
  constexpr std::size_t kContext = std::size_t{256} << 20;
  return kContext + state().overheads[device];
}

void refuse_inside_operation(const char* name) {
  if (!inside_operation()) return;
  std::fprintf(stderr, "double of CUDA: %s is called from a host function or a kernel\n", name);
  std::abort();
}

std::optional<int> begin_call(const char* name) {
  ++state().counts.calls[name];
  ++state().counts.api_calls;
  const auto found = state().to_fail.find(name);
  if (found == state().to_fail.end() || --found->second.calls_left > 0) return std::nullopt;
  const int status = found->second.status;
  state().to_fail.erase(found);
  return status;
}

const char* to_string(Policy policy) {
  switch (policy) {
    case Policy::kEager:
      return "eager";
    case Policy::kRandom:
      return "random";
    case Policy::kStarve:
      return "starve";
    case Policy::kOthersFirst:
      return "others first";
  }
  return "";
}

void set_policy(Policy policy, std::uint64_t seed) {
  const std::lock_guard<std::mutex> lock(engine().mutex);
  engine().set_policy(policy, seed);
}

void set_machine(const Machine& wanted) {
  const std::lock_guard<std::mutex> lock(engine().mutex);
  state().machine = wanted;
}

void fail_call(const std::string& name, std::size_t n, int status) {
  const std::lock_guard<std::mutex> lock(engine().mutex);
  state().to_fail[name] = {n, status};
}

Counts counts() {
  const std::lock_guard<std::mutex> lock(engine().mutex);
  const Memory::Usage usage = memory().usage();
  Counts result = state().counts;
  result.allocations = usage.allocations;
  result.allocated_bytes = usage.bytes;
  result.peak_bytes = usage.peak_bytes;
  return result;
}

void clear_counts() {
  const std::lock_guard<std::mutex> lock(engine().mutex);
  state().counts = {};
  memory().clear_peak();
}

void host_access(const void* pinned, std::size_t bytes, bool written) {
  const std::lock_guard<std::mutex> lock(engine().mutex);
  engine().host_access(pinned, bytes, written, "marked access");
}

void reset() {
  const std::lock_guard<std::mutex> lock(engine().mutex);
  reset_nccl();
  reset_blas();
  reset_dnn();
  reset_graphs();
  reset_events();
  reset_captures();
  engine().reset();
  memory().release_all();
  memory().clear_peak();
  state() = {};
  the_device = 0;
  last_error = cudaSuccess;
}

}  // namespace reprise::test::cuda
