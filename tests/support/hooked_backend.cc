#include "tests/support/hooked_backend.h"

namespace reprise::test {
namespace {

class HookedProgram : public kernels::Program {
 public:
  HookedProgram(std::unique_ptr<kernels::Program> inner, HookedBackend::Hook before,
                HookedBackend::Hook after)
      : inner_(std::move(inner)), before_(std::move(before)), after_(std::move(after)) {}

  [[nodiscard]] const kernels::Program& inner() const { return *inner_; }
  [[nodiscard]] const graph::PreparedGraph& prepared() const override { return inner_->prepared(); }

  void run(graph::NodeId node, const kernels::Call& call,
           const graph::StepContext& context) override {
    if (before_) before_(prepared(), node, call);
    inner_->run(node, call, context);
    if (after_) after_(prepared(), node, call);
  }

  void import_value(graph::ValueId value, std::span<const std::byte> plain,
                    std::byte* stored) override {
    inner_->import_value(value, plain, stored);
  }
  void export_value(graph::ValueId value, const std::byte* stored,
                    std::span<std::byte> plain) override {
    inner_->export_value(value, stored, plain);
  }

 private:
  std::unique_ptr<kernels::Program> inner_;
  HookedBackend::Hook before_, after_;
};

}  // namespace

std::unique_ptr<kernels::Program> HookedBackend::prepare(const graph::Graph& graph,
                                                         const kernels::Program* like) const {
  const auto* hooked = dynamic_cast<const HookedProgram*>(like);
  return std::make_unique<HookedProgram>(inner_->prepare(graph, hooked ? &hooked->inner() : like),
                                         before_, after_);
}

}  // namespace reprise::test
