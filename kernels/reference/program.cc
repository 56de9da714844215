// The reference backend: every op by plain loops in double precision, every value a row-major
// array.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "graph/bf16.h"
#include "kernels/backend.h"
#include "kernels/reference/booking.h"
#include "kernels/reference/op.h"

namespace reprise::kernels {
namespace {

using base::Bytes;
using graph::DType;

class ReferenceProgram final : public Program {
 public:
  explicit ReferenceProgram(const graph::Graph& graph) {
    prepared_.graph = graph;
    prepared_.backend = "reference";
    prepared_.cost_source = "analytic";
    for (const graph::Value& value : graph.values) {
      prepared_.value_bytes.push_back(
          base::checked_mul(graph::element_count(value.shape),
                            reference::stored_element_bytes(value.dtype), value.name));
      prepared_.value_layouts.push_back("plain");
    }
    for (const graph::Node& node : graph.nodes) {
      prepared_.nodes.push_back(reference::book(graph, node, prepared_.value_bytes));
    }
  }

  [[nodiscard]] const graph::PreparedGraph& prepared() const override { return prepared_; }

  void run(NodeId id, const Call& call, const graph::StepContext& context) override {
    const graph::Node& node = prepared_.graph.nodes[id];
    reference::find_kernel(node.op)(reference::Op(prepared_.graph, node, call, context));
    round_outputs(node, call);
  }

  void import_value(ValueId id, std::span<const std::byte> plain, std::byte* stored) override {
    check_size(id, plain.size());
    const DType dtype = prepared_.graph.values[id].dtype;
    if (!graph::is_float(dtype)) {
      std::memcpy(stored, plain.data(), plain.size());
      return;
    }
    auto* doubles = reinterpret_cast<double*>(stored);
    if (dtype == DType::kBF16) return import_bf16(plain, doubles);
    for (std::size_t i = 0; i < plain.size() / sizeof(float); ++i) {
      float value = 0;
      std::memcpy(&value, plain.data() + i * sizeof(float), sizeof(float));
      doubles[i] = static_cast<double>(value);
    }
  }

  void export_value(ValueId id, const std::byte* stored, std::span<std::byte> plain) override {
    check_size(id, plain.size());
    const DType dtype = prepared_.graph.values[id].dtype;
    if (!graph::is_float(dtype)) {
      std::memcpy(plain.data(), stored, plain.size());
      return;
    }
    const auto* doubles = reinterpret_cast<const double*>(stored);
    if (dtype == DType::kBF16) return export_bf16(doubles, plain);
    for (std::size_t i = 0; i < plain.size() / sizeof(float); ++i) {
      const auto value = static_cast<float>(doubles[i]);
      std::memcpy(plain.data() + i * sizeof(float), &value, sizeof(float));
    }
  }

 private:
  // The kernels write doubles everywhere; here those of bf16 values become what 16 bits can hold.
  void round_outputs(const graph::Node& node, const Call& call) const {
    if (node.op == graph::OpKind::kReshape) return;
    for (std::size_t i = 0; i < node.outputs.size(); ++i) {
      const graph::Value& value = prepared_.graph.values[node.outputs[i]];
      if (value.dtype != DType::kBF16) continue;
      auto* numbers = reinterpret_cast<double*>(call.outputs[i]);
      const reference::Dim count = reference::elements(value.shape);
      std::transform(numbers, numbers + count, numbers, graph::nearest_bf16);
    }
  }

  static void import_bf16(std::span<const std::byte> plain, double* doubles) {
    for (std::size_t i = 0; i < plain.size() / sizeof(std::uint16_t); ++i) {
      std::uint16_t bits = 0;
      std::memcpy(&bits, plain.data() + i * sizeof(bits), sizeof(bits));
      doubles[i] = static_cast<double>(graph::from_bf16(bits));
    }
  }

  static void export_bf16(const double* doubles, std::span<std::byte> plain) {
    for (std::size_t i = 0; i < plain.size() / sizeof(std::uint16_t); ++i) {
      const std::uint16_t bits = graph::to_bf16(static_cast<float>(doubles[i]));
      std::memcpy(plain.data() + i * sizeof(bits), &bits, sizeof(bits));
    }
  }

  void check_size(ValueId id, std::size_t bytes) const {
    const graph::Value& value = prepared_.graph.values[id];
    const Bytes expected = graph::element_count(value.shape) * graph::dtype_bytes(value.dtype);
    if (static_cast<Bytes>(bytes) != expected) {
      throw base::input_error("value '{}' has {} bytes in plain form, got {}", value.name, expected,
                              bytes);
    }
  }

  graph::PreparedGraph prepared_;
};

class ReferenceBackend final : public Backend {
 public:
  [[nodiscard]] std::string_view name() const override { return "reference"; }
  [[nodiscard]] std::string description() const override {
    return "plain loops in double precision, 1 thread";
  }
  [[nodiscard]] std::unique_ptr<Program> prepare(const graph::Graph& graph,
                                                 const Program* /*like*/) const override {
    // There is one layout, so `like` has nothing to add.
    return std::make_unique<ReferenceProgram>(graph);
  }
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() {
  return std::make_unique<ReferenceBackend>();
}

}  // namespace reprise::kernels
