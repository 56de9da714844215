// Every op case, network and update on the CUDA backend of the module that `reprise` opens too
// (REPRISE_CUDA_MODULE), without GoogleTest: results against the reference backend, and bits
// against a second run, a run in place and one with every forward node recomputed. A case whose ops
// have a bf16 form is checked in bf16, too.
//
//   gpu_check [--share I/N] [--seconds S] [--only TEXT]
//
// One line a case, then one of JSON with the counts. --share runs each Nth case only, so that
// several processes can share the work; no case starts after --seconds. Exit code 1: a case failed,
// or was not reached.

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fmt/format.h>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/kernels/agreement.h"
#include "tests/support/device_program.h"
#include "tests/support/op_cases.h"

namespace reprise::test {

// What programs that test several backends ask; this one has its own.
std::vector<std::string> tested_backends() {
  return {"cuda"};
}

namespace {

constexpr std::uint64_t kSeed = 11;
constexpr std::uint64_t kSteps = 2;

struct Options {
  std::size_t share = 1, shares = 1;
  double seconds = 1e9;
  std::string only;
};

struct Outcome {
  double difference = 0;  // the largest, of all values and steps
  std::vector<std::string> faults;
};

class CaseCheck {
 public:
  CaseCheck(const OpCase& op_case, BuiltCase built, const kernels::Backend& gpu,
            const kernels::Backend& reference)
      : gpu_(gpu),
        reference_(reference),
        built_(std::move(built)),
        graph_(training_graph(op_case, built_)) {
    for (const graph::Value& value : graph_.values) {
      if (!value.producer.valid() && graph::is_persistent(value.role)) read_.push_back(value.name);
    }
    for (const ValueId output : graph_.outputs) read_.push_back(graph_.values[output].name);
  }

  Outcome run() {
    Outcome outcome;
    Interpreter truth = fresh(reference_);
    Interpreter plain = fresh(gpu_);
    for (std::uint64_t step = 0; step < kSteps; ++step) {
      truth.step({.seed = 3, .step = step});
      plain.step({.seed = 3, .step = step});
      compare(truth, plain, step, outcome);
    }
    same_bits(plain, {}, "a second run", outcome);
    same_bits(plain, {.inplace = true}, "a run in place", outcome);
    same_bits(plain, {.recompute = true}, "a run with everything recomputed", outcome);
    same_bits(plain, {.recompute = true}, "a second such run", outcome);
    return outcome;
  }

 private:
  Interpreter fresh(const kernels::Backend& backend, const InterpreterOptions& options = {}) const {
    std::unique_ptr<kernels::Program> program = backend.prepare(graph_);
    if (backend.memory() != nullptr)
      program = std::make_unique<DeviceProgram>(std::move(program), backend.memory());
    Interpreter interpreter(std::move(program), options);
    fill_sources(built_, kSeed, interpreter);
    return interpreter;
  }

  // Of the largest element. Later steps start from parameters that differ in their last bits, and
  // cuDNN may take Winograd's algorithm, whose sums go through numbers larger than their result.
  // In bf16, the last place of a number is up to 2^-7 of it, and small networks round several
  // times.
  double tolerance(std::uint64_t step) const {
    bool convolves = false, bf16 = false;
    for (const graph::Node& node : graph_.nodes) {
      convolves = convolves || node.op == graph::OpKind::kConv2d;
      bf16 = bf16 || node.op == graph::OpKind::kCast;
    }
    if (bf16) return (step == 0 ? 4 : 8) / 128.0;
    return (convolves ? 1e-4 : 1e-5) * (step == 0 ? 1 : 3);
  }

  void compare(const Interpreter& truth, const Interpreter& tested, std::uint64_t step,
               Outcome& outcome) const {
    for (const std::string& name : read_) {
      const graph::DType dtype = truth.prepared().graph.values[truth.id(name)].dtype;
      if (dtype != graph::DType::kF32) {
        if (tested.get<std::int32_t>(name) != truth.get<std::int32_t>(name))
          outcome.faults.push_back(fmt::format("'{}' differs after step {}", name, step));
        continue;
      }
      const double difference = kernels::relative_difference(tested.get(name), truth.get(name));
      outcome.difference = std::max(outcome.difference, difference);
      if (difference > tolerance(step)) {
        outcome.faults.push_back(
            fmt::format("'{}' is off by {:.2e} of its largest element after "
                        "step {}; {:.0e} are fine",
                        name, difference, step, tolerance(step)));
      }
    }
  }

  void same_bits(Interpreter& plain, const InterpreterOptions& options, const char* what,
                 Outcome& outcome) const {
    Interpreter again = fresh(gpu_, options);
    for (std::uint64_t step = 0; step < kSteps; ++step) again.step({.seed = 3, .step = step});
    for (const std::string& name : read_) {
      const auto first = plain.stored(name), second = again.stored(name);
      if (!std::ranges::equal(first, second))
        outcome.faults.push_back(fmt::format("{} gives other bits of '{}'", what, name));
    }
  }

  const kernels::Backend& gpu_;
  const kernels::Backend& reference_;
  BuiltCase built_;
  graph::Graph graph_;
  std::vector<std::string> read_;
};

std::vector<OpCase> wanted_cases(const Options& options) {
  std::vector<OpCase> wanted;
  std::size_t number = 0;
  for (const auto* cases : {&op_cases(), &network_cases(), &update_cases()}) {
    for (const OpCase& op_case : *cases) {
      if (op_case.name.find(options.only) == std::string::npos) continue;
      if (number++ % options.shares == options.share - 1) wanted.push_back(op_case);
    }
  }
  return wanted;
}

int check_all(const Options& options) {
  const auto gpu = kernels::make_backend("cuda", {});
  const auto reference = kernels::make_backend("reference", {});
  fmt::print("{}\n", gpu->description());
  const auto start = std::chrono::steady_clock::now();
  const auto elapsed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  const std::vector<OpCase> cases = wanted_cases(options);
  std::size_t ran = 0, failed = 0;
  double largest = 0, largest_in_bf16 = 0;
  const auto check = [&](const OpCase& op_case, const BuiltCase& built, const char* form) {
    Outcome outcome;
    try {
      outcome = CaseCheck(op_case, built, *gpu, *reference).run();
    } catch (const std::exception& error) {
      outcome.faults.emplace_back(error.what());
    }
    failed += outcome.faults.empty() ? 0 : 1;
    fmt::print("{} {}{} {:.2e}\n", outcome.faults.empty() ? "ok    " : "FAILED", op_case.name, form,
               outcome.difference);
    for (const std::string& fault : outcome.faults) fmt::print("       {}\n", fault);
    std::fflush(stdout);
    return outcome.difference;
  };
  for (const OpCase& op_case : cases) {
    if (elapsed() > options.seconds) break;
    ++ran;
    const BuiltCase built = build(op_case);
    largest = std::max(largest, check(op_case, built, ""));
    if (op_case.optimizer) continue;
    if (const auto mixed = in_bf16(built)) {
      largest_in_bf16 = std::max(largest_in_bf16, check(op_case, *mixed, " in bf16"));
    }
  }
  fmt::print(
      "{{\"cases\": {}, \"ran\": {}, \"failed\": {}, \"largest_difference\": {:.3e}, "
      "\"largest_in_bf16\": {:.3e}, \"seconds\": {:.1f}}}\n",
      cases.size(), ran, failed, largest, largest_in_bf16, elapsed());
  return failed == 0 && ran == cases.size() && ran > 0 ? 0 : 1;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(fmt::format("{} takes a value", flag));
    const std::string value = argv[++i];
    if (flag == "--share") {
      if (std::sscanf(value.c_str(), "%zu/%zu", &options.share, &options.shares) != 2 ||
          options.share < 1 || options.share > options.shares)
        throw std::invalid_argument("--share takes I/N with 1 <= I <= N, not " + value);
    } else if (flag == "--seconds") {
      options.seconds = std::stod(value);
    } else if (flag == "--only") {
      options.only = value;
    } else {
      throw std::invalid_argument(fmt::format("there is no flag {}", flag));
    }
  }
  return options;
}

}  // namespace
}  // namespace reprise::test

int main(int argc, char** argv) {
  try {
    return reprise::test::check_all(reprise::test::parse(argc, argv));
  } catch (const std::invalid_argument& error) {
    fmt::print(stderr, "gpu_check: {}\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "gpu_check: {}\n", error.what());
    return 1;
  }
}
