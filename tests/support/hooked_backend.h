#pragma once

// A backend with somebody watching: a hook before and after each kernel call, to count calls, to
// make one fail or to spoil what it wrote.

#include <functional>
#include <memory>

#include "kernels/backend.h"

namespace reprise::test {

class HookedBackend : public kernels::Backend {
 public:
  // What `before` throws takes the place of the kernel.
  using Hook =
      std::function<void(const graph::PreparedGraph&, graph::NodeId, const kernels::Call&)>;

  HookedBackend(std::unique_ptr<kernels::Backend> inner, Hook before, Hook after = {})
      : inner_(std::move(inner)), before_(std::move(before)), after_(std::move(after)) {}

  [[nodiscard]] std::string_view name() const override { return inner_->name(); }
  [[nodiscard]] std::string description() const override { return inner_->description(); }
  [[nodiscard]] std::unique_ptr<kernels::Program> prepare(
      const graph::Graph& graph, const kernels::Program* like = nullptr) const override;

 private:
  std::unique_ptr<kernels::Backend> inner_;
  Hook before_, after_;
};

}  // namespace reprise::test
