#pragma once

// Counts allocations between start() and stop(), by who asks: oneDNN and OpenMP, or anybody else.

namespace reprise::kernels {

class AllocationCounter {
 public:
  struct Counts {
    long ours = 0;
    long libraries = 0;             // calls from libdnnl and libgomp
    long largest_of_libraries = 0;  // bytes
  };

  // False under sanitizers, which replace the allocator themselves.
  static bool works();
  static void start();  // from zero
  static void stop();
  static Counts counts();
};

}  // namespace reprise::kernels
