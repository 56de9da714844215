#pragma once

// The plain run: a program node by node, every value in a freshly allocated buffer of its own, with
// no planner, no arena and no executor. What these do must agree with it, bit for bit.
//
// Every buffer starts as NaN, between 64 sentinel bytes on either side. After each node the
// interpreter checks the sentinels of its outputs and workspace, and that its inputs are what they
// were; a changed byte is Error(kInternal) naming node and operand.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/backend.h"

namespace reprise::test {

using graph::NodeId;
using graph::ValueId;

struct InterpreterOptions {
  // Optional in-place pairs are taken too, wherever the node alone allows it. The node then works
  // in a copy of its input, so that later readers still find what they should.
  bool inplace = false;
  // Every recomputable forward node runs again before each backward or update node. Its outputs
  // must come out with the same bits; a difference is Error(kInternal) naming the first node.
  bool recompute = false;
};

class Interpreter {
 public:
  explicit Interpreter(std::unique_ptr<kernels::Program> program,
                       const InterpreterOptions& options = {});

  [[nodiscard]] const graph::PreparedGraph& prepared() const { return program_->prepared(); }
  [[nodiscard]] ValueId id(std::string_view name) const;  // Error(kInput) when there is none
  [[nodiscard]] bool has(std::string_view name) const;

  // Plain row-major elements of inputs and persistent values in, of any value out.
  template <class T>
  void set(std::string_view name, const std::vector<T>& plain) {
    import_plain(name, std::as_bytes(std::span(plain)));
  }
  template <class T = float>
  [[nodiscard]] std::vector<T> get(std::string_view name) const {
    std::vector<T> plain(elements(name));
    export_plain(name, std::as_writable_bytes(std::span(plain)));
    return plain;
  }
  void import_plain(std::string_view name, std::span<const std::byte> plain);
  void export_plain(std::string_view name, std::span<std::byte> plain) const;

  // The bytes as the backend stores them: doubles on the reference backend.
  [[nodiscard]] std::span<std::byte> stored(std::string_view name);

  // One step. Persistent values then hold their next versions.
  void step(const graph::StepContext& context = {});
  // One node alone; its inputs have been made.
  void run(NodeId node, const graph::StepContext& context = {});
  // How often kernels of each node ran so far.
  [[nodiscard]] const base::IdVector<NodeId, int>& runs() const { return runs_; }

 private:
  class Buffer;
  struct Operands;
  using Buffers = std::vector<std::shared_ptr<Buffer>>;

  [[nodiscard]] std::size_t elements(std::string_view name) const;
  [[nodiscard]] std::shared_ptr<Buffer> fresh(ValueId value) const;
  [[nodiscard]] Operands prepare_operands(NodeId node) const;
  [[nodiscard]] bool may_share(NodeId node, const graph::InplacePair& pair) const;
  void recompute_forward(const graph::StepContext& context);

  std::unique_ptr<kernels::Program> program_;
  InterpreterOptions options_;
  std::unordered_map<std::string, ValueId> by_name_;
  base::IdVector<ValueId, ValueId> roots_;  // reshapes share the buffer of what they view
  Buffers buffers_;                         // by root
  base::IdVector<NodeId, int> runs_;
};

// Prepared for the graph, with values in host memory whatever the backend.
[[nodiscard]] std::unique_ptr<kernels::Program> prepare_on(std::string_view backend,
                                                           const graph::Graph& graph);
// Those that tests "on every backend" run on: what the test program says (tested_backends.cc).
[[nodiscard]] std::vector<std::string> tested_backends();
// Whether this build has the backend.
[[nodiscard]] bool backend_is_built(std::string_view backend);

}  // namespace reprise::test
