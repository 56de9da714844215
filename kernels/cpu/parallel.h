#pragma once

// How own loops use the cores. Work is cut into one contiguous part per thread, so that results
// depend on the thread count at most, never on timing.

#include <algorithm>
#include <cstdint>
#include <omp.h>

// Loops over plain arrays are compiled once per instruction set; the loader picks one. Contraction
// into fused multiply-adds is off, so all of them give the same bits. The sanitizers' runtimes are
// not up when the loader asks, hence one version there.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__x86_64__)
#define REPRISE_VECTOR
#else
#define REPRISE_VECTOR __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#endif

namespace reprise::kernels::cpu {

// Elements below which a second thread costs more than it brings.
inline constexpr std::int64_t kSerialElements = 8192;

// Settings of the calling thread, which need not be the one of the last call. Without adjustment by
// load: the bits of a result may depend on the number of threads.
inline void use_threads(int threads) {
  omp_set_dynamic(0);
  omp_set_num_threads(threads);
}

// f(begin, end) over [0, count) cut into equal parts, one a thread; `work` is about the number of
// elements touched in all.
template <class F>
void parallel_ranges(std::int64_t count, std::int64_t work, F&& f) {
  if (work < kSerialElements || count <= 1) {
    f(std::int64_t{0}, count);
    return;
  }
#pragma omp parallel
  {
    const std::int64_t threads = omp_get_num_threads();
    const std::int64_t part = omp_get_thread_num();
    const std::int64_t begin = count * part / threads;
    const std::int64_t end = count * (part + 1) / threads;
    if (begin < end) f(begin, end);
  }
}

// f(part, begin, end) with `parts` fixed at plan time: for sums that are combined part by part.
template <class F>
void parallel_parts(std::int64_t parts, std::int64_t count, F&& f) {
#pragma omp parallel for schedule(static)
  for (std::int64_t part = 0; part < parts; ++part) {
    f(part, count * part / parts, count * (part + 1) / parts);
  }
}

}  // namespace reprise::kernels::cpu
