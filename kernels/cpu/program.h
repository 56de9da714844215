#pragma once

#include <memory>
#include <string_view>
#include <unordered_map>

#include "kernels/backend.h"
#include "kernels/cpu/layouts.h"

namespace reprise::kernels::cpu {

// The kernels of one graph with the layouts they agreed on.
class CpuProgram final : public Program, public PersistentLayouts {
 public:
  CpuProgram(LaidOut laid_out, int threads);

  [[nodiscard]] const graph::PreparedGraph& prepared() const override { return laid_out_.prepared; }
  void run(NodeId node, const Call& call, const graph::StepContext& context) override;
  void import_value(ValueId value, std::span<const std::byte> plain, std::byte* stored) override;
  void export_value(ValueId value, const std::byte* stored, std::span<std::byte> plain) override;

  [[nodiscard]] const Layout* persistent_layout(std::string_view name) const override;

 private:
  // The layout of a value whose plain form has `bytes` bytes; checks that number.
  [[nodiscard]] const Layout& host_layout(ValueId value, std::size_t bytes) const;

  LaidOut laid_out_;
  int threads_;
  dnnl::stream stream_;
  std::unordered_map<std::string_view, LayoutId> persistent_;  // names live in the prepared graph
};

}  // namespace reprise::kernels::cpu
