// The double as a module that `reprise` opens (REPRISE_CUDA_MODULE) is set up by variables:
//
//   REPRISE_DOUBLE_POLICY   eager, random, starve or others-first
//   REPRISE_DOUBLE_SEED     of that policy
//   REPRISE_DOUBLE_DEVICES  how many
//   REPRISE_DOUBLE_MEMORY   bytes of each
//   REPRISE_DOUBLE_STATUS   what cudaGetDeviceCount answers, such as 35: no driver
//   REPRISE_DOUBLE_COUNTS   a file that gets the counts at the end, a line each
//
// A test program does not link this file: nothing in it is called by name.

#include <cstdio>
#include <cstdlib>
#include <fmt/format.h>
#include <stdexcept>

#include "tests/cuda/double/control.h"

namespace reprise::test::cuda {
namespace {

// A wrong value ends the process: a test that sets one must not run with another.
template <class Read>
void with_variable(const char* name, Read read) {
  const char* const text = std::getenv(name);
  if (text == nullptr || *text == '\0') return;
  try {
    read(std::string(text));
  } catch (const std::exception&) {
    std::fprintf(stderr, "double of CUDA: %s=%s is no value for it\n", name, text);
    std::abort();
  }
}

Policy policy_named(const std::string& name) {
  if (name == "eager") return Policy::kEager;
  if (name == "random") return Policy::kRandom;
  if (name == "starve") return Policy::kStarve;
  if (name == "others-first") return Policy::kOthersFirst;
  throw std::invalid_argument(name);
}

class Environment {
 public:
  Environment() {
    Policy policy = Policy::kRandom;
    std::uint64_t seed = 0;
    Machine machine;
    with_variable("REPRISE_DOUBLE_POLICY", [&](const auto& text) { policy = policy_named(text); });
    with_variable("REPRISE_DOUBLE_SEED", [&](const auto& text) { seed = std::stoull(text); });
    with_variable("REPRISE_DOUBLE_DEVICES",
                  [&](const auto& text) { machine.devices = std::stoi(text); });
    with_variable("REPRISE_DOUBLE_MEMORY",
                  [&](const auto& text) { machine.memory_bytes = std::stoull(text); });
    with_variable("REPRISE_DOUBLE_STATUS",
                  [&](const auto& text) { machine.status = std::stoi(text); });
    with_variable("REPRISE_DOUBLE_COUNTS", [&](const auto& text) { counts_file_ = text; });
    set_policy(policy, seed);
    set_machine(machine);
  }
  ~Environment() {
    if (counts_file_.empty()) return;
    std::FILE* const file = std::fopen(counts_file_.c_str(), "w");
    if (file == nullptr) return;
    const Counts found = counts();
    fmt::print(file, "api_calls {}\nkernels {}\ngraph_launches {}\n", found.api_calls,
               found.kernels, found.graph_launches);
    fmt::print(file, "host_to_device_bytes {}\ndevice_to_host_bytes {}\npeak_bytes {}\n",
               found.host_to_device_bytes, found.device_to_host_bytes, found.peak_bytes);
    for (const auto& [name, calls] : found.calls) fmt::print(file, "{} {}\n", name, calls);
    std::fclose(file);
  }

 private:
  std::string counts_file_;
};

const Environment environment;

}  // namespace
}  // namespace reprise::test::cuda
