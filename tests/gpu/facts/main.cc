// Checks facts about CUDA's libraries, one line each; exit code 1 when one does not hold.

#include "tests/gpu/facts/facts.h"

namespace reprise::test::facts {
namespace {

void print_versions() {
  int devices = 0, driver = 0, runtime = 0, blas = 0, nccl = 0;
  const cudaError_t status = cudaGetDeviceCount(&devices);
  expect(status == cudaSuccess, fmt::format("no GPU: {}", cudaGetErrorString(status)));
  REPRISE_MUST(cudaDriverGetVersion(&driver));
  REPRISE_MUST(cudaRuntimeGetVersion(&runtime));
  REPRISE_MUST(cublasGetProperty(MAJOR_VERSION, &blas));
  REPRISE_MUST(ncclGetVersion(&nccl));
  fmt::print("driver {}, runtime {}, cuBLAS {}, NCCL {}\n", driver, runtime, blas, nccl);
}

int check_all() {
  std::vector<Fact> facts;
  add_memory_facts(facts);
  add_recording_facts(facts);
  add_product_facts(facts);
  add_convolution_facts(facts);
  add_bf16_facts(facts);
  add_collective_facts(facts);
  int failed = 0;
  for (const Fact& fact : facts) {
    Notes notes;
    std::string fault;
    try {
      fact.check(notes);
    } catch (const std::exception& error) {
      fault = error.what();
      (void)cudaGetLastError();
    }
    fmt::print("{} {}\n", fault.empty() ? "ok    " : "FAILED", fact.name);
    if (!fault.empty()) fmt::print("       {}\n", fault);
    for (const std::string& note : notes) fmt::print("       note: {}\n", note);
    std::fflush(stdout);
    failed += fault.empty() ? 0 : 1;
  }
  fmt::print("{{\"facts\": {}, \"failed\": {}}}\n", facts.size(), failed);
  return failed == 0 ? 0 : 1;
}

}  // namespace
}  // namespace reprise::test::facts

int main() {
  try {
    reprise::test::facts::print_versions();
    return reprise::test::facts::check_all();
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_facts: {}\n", error.what());
    return 1;
  }
}
