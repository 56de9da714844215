#pragma once

// What tests set on the double and ask it: the order in which queued work runs, faults found, calls
// counted, and the device that it pretends to be.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace reprise::test::cuda {

// The order in which queued operations run. Whatever the policy, an operation runs only after all
// that it was made to wait for.
enum class Policy {
  kEager,        // at once, as soon as queued: what a naive fake does
  kRandom,       // any that may run; a few already when others are queued
  kStarve,       // only what the waiting host needs; all others as late as possible
  kOthersFirst,  // all others first, what the waiting host needs last
};               // what is left open is left to the seed
[[nodiscard]] const char* to_string(Policy policy);
void set_policy(Policy policy, std::uint64_t seed = 0);

// Everything as at the start of the process: one device, no memory, no counts, no faults, random
// policy with seed 0, the default fault handler. Handles made before are dead. Lets nothing run.
void reset();

// Faults: what a correct program never does, whether or not the results are right. Unordered
// accesses to common bytes, use of memory that is not there, handles used after their end.
// Without a collector, a fault is printed and ends the process.
class CollectedFaults {
 public:
  CollectedFaults();
  ~CollectedFaults();  // does nothing with what is left: ask all()
  CollectedFaults(const CollectedFaults&) = delete;
  CollectedFaults& operator=(const CollectedFaults&) = delete;
  [[nodiscard]] std::vector<std::string> all() const;
  void clear();
};

// The host reads or writes pinned memory here and now. Only marked accesses are checked.
void host_access(const void* pinned, std::size_t bytes, bool written);

// The devices that there are. Affects calls from now on.
struct Machine {
  int devices = 1;
  std::size_t memory_bytes = std::size_t{8} << 30;  // of each
  // What cudaGetDeviceCount answers, and all that need a device: 35 is a missing driver, 100 no
  // GPU.
  int status = 0;
  int generation = 9;  // the first number of its compute capability
};
void set_machine(const Machine& machine);

// The n-th call (1: the next one) of this name returns `status` and does nothing else.
void fail_call(const std::string& name, std::size_t n, int status);

// Communicators of this rank report `status` from their poll number `after_polls` + 1 on. (A rank
// that is dead is one that queues nothing: the others wait until they are aborted.)
void break_communicator(int rank, std::size_t after_polls, int status);

struct Counts {
  std::map<std::string, std::size_t> calls;  // by the name of the API's function
  std::size_t api_calls = 0;                 // all of those together
  std::size_t kernels = 0;                   // that ran, those of libraries and graphs included
  std::size_t graph_launches = 0;
  std::size_t host_to_device_bytes = 0;
  std::size_t device_to_host_bytes = 0;
  std::size_t device_to_device_bytes = 0;
  std::size_t allocations = 0;      // live, of device memory
  std::size_t allocated_bytes = 0;  // by those
  std::size_t peak_bytes = 0;
};
[[nodiscard]] Counts counts();
void clear_counts();  // allocations stay

}  // namespace reprise::test::cuda
