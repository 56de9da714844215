#include "tests/cuda/double/faults.h"

#include <cstdio>
#include <cstdlib>
#include <mutex>

#include "tests/cuda/double/control.h"

namespace reprise::test::cuda {
namespace {

std::mutex faults_mutex;
std::vector<std::string>* collected = nullptr;  // owned; null without a collector

}  // namespace

void fault(const std::string& text) {
  const std::lock_guard<std::mutex> lock(faults_mutex);
  if (collected != nullptr) {
    collected->push_back(text);
    return;
  }
  std::fprintf(stderr, "double of CUDA: %s\n", text.c_str());
  std::abort();
}

CollectedFaults::CollectedFaults() {
  const std::lock_guard<std::mutex> lock(faults_mutex);
  if (collected != nullptr) std::abort();  // one at a time
  collected = new std::vector<std::string>;
}

CollectedFaults::~CollectedFaults() {
  const std::lock_guard<std::mutex> lock(faults_mutex);
  delete collected;
  collected = nullptr;
}

std::vector<std::string> CollectedFaults::all() const {
  const std::lock_guard<std::mutex> lock(faults_mutex);
  return *collected;
}

void CollectedFaults::clear() {
  const std::lock_guard<std::mutex> lock(faults_mutex);
  collected->clear();
}

}  // namespace reprise::test::cuda
