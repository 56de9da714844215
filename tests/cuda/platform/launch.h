#pragma once

// The tests' form of kernels/cuda/platform/launch.h, with the same interface: kernels run on the
// host (host/grid.h) when the double of the host APIs gets to them (double/operation.h).

#include <cstddef>
#include <cuda_runtime.h>
#include <initializer_list>
#include <span>
#include <tuple>
#include <type_traits>
#include <vector>

#include "double/operation.h"
#include "host/device_language.h"
#include "host/grid.h"
#include "host/touch_guard.h"
#include "kernels/cuda/status.h"

namespace reprise::kernels::cuda {

struct Touched {
  const void* begin = nullptr;
  std::size_t bytes = 0;
  bool written = false;
};
template <class T>
[[nodiscard]] inline Touched reads(const T* data, std::size_t count) {
  return {data, count * sizeof(T), false};
}
template <class T>
[[nodiscard]] inline Touched writes(T* data, std::size_t count) {
  return {data, count * sizeof(T), true};
}

// A kernel's argument as its code sees it: a pointer to the bytes behind a device address.
template <class T>
[[nodiscard]] T on_host(T argument) {
  if constexpr (std::is_pointer_v<T>)
    return test::cuda::translated(argument);
  else
    return argument;
}

template <class T>
[[nodiscard]] const void* as_pointer(T argument) {
  if constexpr (std::is_pointer_v<T>)
    return argument;
  else
    return nullptr;
}

template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            cudaStream_t stream, std::span<const Touched> touched, Arguments... arguments) {
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
  std::vector<test::cuda::Range> ranges;
  for (const Touched& t : touched)
    if (t.bytes > 0) ranges.push_back({t.begin, t.bytes, t.written});
  const std::tuple<Parameters...> given(static_cast<Parameters>(arguments)...);
  const auto work = [=] {
    std::apply(
        [&](auto... device) {
          const std::tuple<Parameters...> host(on_host(device)...);
          const auto thread = [&] { std::apply(kernel, host); };
          if (!test::cuda::touch_guard_is_on())
            return test::cuda::run_grid(name, grid, block, thread);
          const test::cuda::TouchGuard guard(name, ranges, {as_pointer(device)...});
          test::cuda::run_grid(name, grid, block, thread);
          guard.check();
        },
        given);
  };
  check(test::cuda::enqueue(stream, name, ranges, work), name);
}
template <class... Parameters, class... Arguments>
void launch(const char* name, void (*kernel)(Parameters...), dim3 grid, dim3 block,
            cudaStream_t stream, std::initializer_list<Touched> touched, Arguments... arguments) {
  launch(name, kernel, grid, block, stream, std::span(touched.begin(), touched.size()),
         arguments...);
}

}  // namespace reprise::kernels::cuda
