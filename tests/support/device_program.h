#pragma once

// A program on a device, for tests that keep every value in host memory: each run copies its
// operands to the device and what they have become back.

#include <map>
#include <memory>

#include "kernels/backend.h"

namespace reprise::test {

class DeviceProgram final : public kernels::Program {
 public:
  DeviceProgram(std::unique_ptr<kernels::Program> program,
                std::shared_ptr<kernels::DeviceMemory> memory)
      : program_(std::move(program)), memory_(std::move(memory)) {}

  [[nodiscard]] const graph::PreparedGraph& prepared() const override {
    return program_->prepared();
  }
  void run(kernels::NodeId node, const kernels::Call& call,
           const graph::StepContext& context) override;
  void import_value(kernels::ValueId value, std::span<const std::byte> plain,
                    std::byte* stored) override;
  void export_value(kernels::ValueId value, const std::byte* stored,
                    std::span<std::byte> plain) override;

 private:
  class Reserved;

  std::unique_ptr<kernels::Program> program_;
  std::shared_ptr<kernels::DeviceMemory> memory_;
};

}  // namespace reprise::test
