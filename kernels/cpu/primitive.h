#pragma once

// A oneDNN primitive with its argument list made ahead, so that running it only sets addresses.

#include <cstddef>
#include <memory>
#include <vector>

#include "kernels/cpu/kernel.h"
#include "kernels/cpu/layout.h"

namespace reprise::kernels::cpu {

// The one CPU engine of the process.
[[nodiscard]] const dnnl::engine& cpu_engine();
// Scratchpads come from the caller.
[[nodiscard]] dnnl::primitive_attr user_scratchpad();

class Primitive {
 public:
  struct Argument {
    int index = 0;  // DNNL_ARG_*
    Desc desc;
  };

  // `arguments` in the order of the slots of bind().
  Primitive(const dnnl::primitive& primitive, const std::vector<Argument>& arguments);

  // Setting an address costs nothing, but for layouts with padding: there oneDNN 2.6 also writes
  // the zeros of the padding, which are zeros already. An address set before is left alone.
  void bind(std::size_t slot, const void* address);
  void execute(const Run& run);

 private:
  dnnl::primitive primitive_;
  std::vector<dnnl::memory> memories_;
  std::vector<const void*> addresses_;
  std::vector<dnnl_exec_arg_t> arguments_;
};

// Where the address of an argument comes from.
struct Operand {
  enum class From { kInput, kOutput, kWorkspace };
  int index = 0;  // DNNL_ARG_*
  Desc desc;
  From from = From::kInput;
  std::size_t at = 0;  // input or output number, or offset in the workspace
};
[[nodiscard]] Operand reads(int index, std::size_t input, const Desc& desc);
[[nodiscard]] Operand writes(int index, std::size_t output, const Desc& desc);
[[nodiscard]] Operand scratch(const Desc& desc, std::size_t offset = 0);  // the scratchpad argument

// A node that is one primitive.
class PrimitiveKernel final : public Kernel {
 public:
  PrimitiveKernel(const dnnl::primitive& primitive, std::vector<Operand> operands);
  void execute(const Run& run) override;

 private:
  std::vector<Operand> operands_;
  Primitive primitive_;
};

// Copies between two layouts with the same axes.
[[nodiscard]] std::unique_ptr<Kernel> reorder_kernel(const Desc& from, const Desc& to,
                                                     Bytes& workspace_bytes);

}  // namespace reprise::kernels::cpu
