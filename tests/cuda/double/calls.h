#pragma once

// What every function of the APIs does at its start: take the lock, be counted, fail when a test
// asked for it, and answer with a device's earlier fault.

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <nccl.h>
#include <optional>
#include <string>
#include <type_traits>

#include "tests/cuda/double/engine.h"

namespace reprise::test::cuda {

// The mutex of the engine is held by the functions below.
[[nodiscard]] int current_device();  // of the calling thread
void set_current_device(int device);
[[nodiscard]] const Machine& machine();
void count_kernel();
void count_bytes(cudaMemcpyKind kind, std::size_t bytes);
void count_graph_launch();
// From now on calls for this device answer with this error.
void break_device(int device, cudaError_t status);
[[nodiscard]] cudaError_t device_status(int device);
cudaError_t keep_error(cudaError_t status);  // for cudaGetLastError; returns it
[[nodiscard]] cudaError_t take_error(bool clear);
// A library or context takes memory of the device, as the real ones do.
void take_overhead(int device, std::size_t bytes);
void give_back_overhead(int device, std::size_t bytes);
[[nodiscard]] std::size_t overhead(int device);

void reset_events();
void reset_graphs();
void reset_blas();
void reset_dnn();
void reset_nccl();

// Ends the process where an operation makes the call: on a real device it would wait for itself.
void refuse_inside_operation(const char* name);
// The status that a test wants this call to return.
[[nodiscard]] std::optional<int> begin_call(const char* name);

// A function of an API: body() with the lock held, unless it is to fail.
template <class Status, class Body>
Status api(const char* name, Body body) {
  refuse_inside_operation(name);
  const std::lock_guard<std::mutex> lock(engine().mutex);
  Status status;
  if (const std::optional<int> injected = begin_call(name))
    status = static_cast<Status>(*injected);
  else
    status = body();
  if constexpr (std::is_same_v<Status, cudaError_t>) keep_error(status);
  return status;
}
// The same for what needs a working device.
template <class Body>
cudaError_t device_api(const char* name, Body body) {
  return api<cudaError_t>(name, [&]() -> cudaError_t {
    if (machine().status != 0) return static_cast<cudaError_t>(machine().status);
    const cudaError_t before = device_status(current_device());
    if (before != cudaSuccess) return before;
    const cudaError_t status = body();
    const cudaError_t after = device_status(current_device());
    return after != cudaSuccess ? after : status;
  });
}

}  // namespace reprise::test::cuda
