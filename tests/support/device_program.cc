#include "tests/support/device_program.h"

#include <algorithm>
#include <vector>

namespace reprise::test {

// Bytes on the device that begin as a copy of the host's.
class DeviceProgram::Reserved {
 public:
  Reserved(kernels::DeviceMemory& memory, std::byte* host, base::Bytes bytes)
      : memory_(memory),
        host_(host, static_cast<std::size_t>(bytes)),
        device_(memory.reserve(bytes)) {
    memory_.write(device_, host_);
  }
  ~Reserved() { memory_.release(device_); }
  Reserved(const Reserved&) = delete;
  Reserved& operator=(const Reserved&) = delete;

  [[nodiscard]] std::byte* device() const { return device_; }
  void copy_back() const { memory_.read(device_, host_); }

 private:
  kernels::DeviceMemory& memory_;
  std::span<std::byte> host_;
  std::byte* device_;
};

void DeviceProgram::run(kernels::NodeId id, const kernels::Call& call,
                        const graph::StepContext& context) {
  const graph::Node& node = prepared().graph.nodes[id];
  std::map<const std::byte*, std::unique_ptr<Reserved>> reserved;  // by host address
  const auto address = [&](const std::byte* host, base::Bytes bytes) {
    auto& copy = reserved[host];
    if (!copy) copy = std::make_unique<Reserved>(*memory_, const_cast<std::byte*>(host), bytes);
    return copy->device();
  };
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    inputs.push_back(address(call.inputs[i], prepared().value_bytes[node.inputs[i]]));
  for (std::size_t o = 0; o < call.outputs.size(); ++o)
    outputs.push_back(address(call.outputs[o], prepared().value_bytes[node.outputs[o]]));
  const base::Bytes booked =
      prepared().nodes[id].workspace_of(static_cast<std::size_t>(call.algorithm));
  std::byte* const workspace =
      call.workspace == nullptr ? nullptr : address(call.workspace, booked);
  program_->run(id, {inputs, outputs, workspace, call.algorithm}, context);
  memory_->wait();
  // All of them: whoever writes into an input is found by the caller.
  for (const auto& [host, copy] : reserved) copy->copy_back();
}

void DeviceProgram::import_value(kernels::ValueId value, std::span<const std::byte> plain,
                                 std::byte* stored) {
  const Reserved copy(*memory_, stored, prepared().value_bytes[value]);
  program_->import_value(value, plain, copy.device());
  copy.copy_back();
}

void DeviceProgram::export_value(kernels::ValueId value, const std::byte* stored,
                                 std::span<std::byte> plain) {
  const Reserved copy(*memory_, const_cast<std::byte*>(stored), prepared().value_bytes[value]);
  program_->export_value(value, copy.device(), plain);
}

}  // namespace reprise::test
