#include "tests/support/interpreter.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "tests/support/device_program.h"

namespace reprise::test {

using graph::Bytes;
using graph::InplacePair;
using graph::Node;

namespace {

constexpr std::size_t kSentinelBytes = 64;
constexpr std::byte kSentinel{0xA5};

}  // namespace

// sentinel | bytes, from an aligned address | sentinel
class Interpreter::Buffer {
 public:
  explicit Buffer(Bytes bytes) : bytes_(static_cast<std::size_t>(bytes)) {
    const std::size_t total = bytes_ + 2 * kSentinelBytes;
    const auto rounded =
        static_cast<std::size_t>(base::align_up(static_cast<Bytes>(total), graph::kArenaAlignment));
    memory_.reset(static_cast<std::byte*>(std::aligned_alloc(graph::kArenaAlignment, rounded)));
    REPRISE_CHECK(memory_ != nullptr, "no memory for {} bytes", rounded);
    std::fill_n(memory_.get(), total, kSentinel);
    std::fill_n(data(), bytes_, std::byte{0xFF});  // NaN
  }

  [[nodiscard]] std::byte* data() const { return memory_.get() + kSentinelBytes; }
  [[nodiscard]] std::span<std::byte> span() const { return {data(), bytes_}; }
  [[nodiscard]] bool intact() const {
    const auto is_sentinel = [](std::byte b) { return b == kSentinel; };
    return std::all_of(memory_.get(), data(), is_sentinel) &&
           std::all_of(data() + bytes_, data() + bytes_ + kSentinelBytes, is_sentinel);
  }
  [[nodiscard]] bool same_bytes(const Buffer& other) const {
    return std::ranges::equal(span(), other.span());
  }
  void assign(const Buffer& other) { std::ranges::copy(other.span(), data()); }

 private:
  struct Free {
    void operator()(std::byte* p) const { std::free(p); }
  };
  std::size_t bytes_;
  std::unique_ptr<std::byte, Free> memory_;
};

// What one run of one node works on.
struct Interpreter::Operands {
  Buffers inputs, outputs;
  std::vector<Buffer> inputs_before;  // copies
  std::vector<bool> overwritten;      // inputs that an output took in place
  Buffer workspace;
};

Interpreter::Interpreter(std::unique_ptr<kernels::Program> program,
                         const InterpreterOptions& options)
    : program_(std::move(program)), options_(options) {
  const graph::Graph& graph = prepared().graph;
  roots_.resize(graph.values.size());
  buffers_.resize(graph.values.size());
  runs_.resize(graph.nodes.size());
  for (std::size_t i = 0; i < graph.values.size(); ++i) {
    const ValueId value(i);
    roots_[value] = graph::storage_root(graph, value);
    by_name_.emplace(graph.values[value].name, value);
    if (!graph.values[value].producer.valid()) buffers_[i] = fresh(value);
  }
}

bool Interpreter::has(std::string_view name) const {
  return by_name_.contains(std::string(name));
}

ValueId Interpreter::id(std::string_view name) const {
  const auto found = by_name_.find(std::string(name));
  if (found == by_name_.end()) throw base::input_error("no value is named '{}'", name);
  return found->second;
}

std::size_t Interpreter::elements(std::string_view name) const {
  return static_cast<std::size_t>(graph::element_count(prepared().graph.values[id(name)].shape));
}

std::span<std::byte> Interpreter::stored(std::string_view name) {
  const auto& buffer = buffers_[roots_[id(name)].index()];
  REPRISE_CHECK(buffer != nullptr, "value '{}' has not been made", name);
  return buffer->span();
}

void Interpreter::import_plain(std::string_view name, std::span<const std::byte> plain) {
  program_->import_value(id(name), plain, stored(name).data());
}

void Interpreter::export_plain(std::string_view name, std::span<std::byte> plain) const {
  const auto& buffer = buffers_[roots_[id(name)].index()];
  REPRISE_CHECK(buffer != nullptr, "value '{}' has not been made", name);
  program_->export_value(id(name), buffer->data(), plain);
}

std::shared_ptr<Interpreter::Buffer> Interpreter::fresh(ValueId value) const {
  return std::make_shared<Buffer>(prepared().value_bytes[value]);
}

// A pair may be taken when both ends have the same bytes and every place where the node reads the
// value has a pair with that output.
bool Interpreter::may_share(NodeId id, const InplacePair& pair) const {
  const Node& node = prepared().graph.nodes[id];
  const auto& pairs = prepared().nodes[id].inplace;
  const ValueId read = node.inputs[static_cast<std::size_t>(pair.input)];
  const ValueId written = node.outputs[static_cast<std::size_t>(pair.output)];
  if (prepared().value_bytes[read] != prepared().value_bytes[written]) return false;
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    if (roots_[node.inputs[i]] != roots_[read]) continue;
    const bool has_leave = std::ranges::any_of(pairs, [&](const InplacePair& p) {
      return p.input == static_cast<std::int32_t>(i) && p.output == pair.output;
    });
    if (!has_leave) return false;
  }
  return true;
}

Interpreter::Operands Interpreter::prepare_operands(NodeId id) const {
  const Node& node = prepared().graph.nodes[id];
  Operands operands{.inputs = {},
                    .outputs = Buffers(node.outputs.size()),
                    .inputs_before = {},
                    .overwritten = std::vector<bool>(node.inputs.size()),
                    .workspace = Buffer(prepared().nodes[id].workspace_bytes)};
  for (const ValueId value : node.inputs) {
    const auto& buffer = buffers_[roots_[value].index()];
    REPRISE_CHECK(buffer != nullptr, "node '{}' reads '{}', which has not been made", node.name,
                  prepared().graph.values[value].name);
    operands.inputs.push_back(buffer);
  }
  for (const InplacePair& pair : prepared().nodes[id].inplace) {
    const auto input = static_cast<std::size_t>(pair.input);
    auto& output = operands.outputs[static_cast<std::size_t>(pair.output)];
    if (output != nullptr || operands.overwritten[input]) continue;
    if (!pair.forced && !(options_.inplace && may_share(id, pair))) continue;
    const ValueId read = roots_[node.inputs[input]];
    output = fresh(read);
    output->assign(*buffers_[read.index()]);
    for (std::size_t i = 0; i < node.inputs.size(); ++i) {
      if (i != input && (pair.forced || roots_[node.inputs[i]] != read)) continue;
      operands.inputs[i] = output;
      operands.overwritten[i] = true;
    }
  }
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    if (operands.outputs[o] == nullptr) operands.outputs[o] = fresh(node.outputs[o]);
  }
  for (const auto& input : operands.inputs) {
    operands.inputs_before.emplace_back(static_cast<Bytes>(input->span().size()));
    operands.inputs_before.back().assign(*input);
  }
  return operands;
}

void Interpreter::run(NodeId id, const graph::StepContext& context) {
  const Node& node = prepared().graph.nodes[id];
  if (node.op == graph::OpKind::kReshape) return;
  Operands operands = prepare_operands(id);
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  for (const auto& buffer : operands.inputs) inputs.push_back(buffer->data());
  for (const auto& buffer : operands.outputs) outputs.push_back(buffer->data());
  program_->run(id, {inputs, outputs, operands.workspace.data()}, context);
  ++runs_[id];

  REPRISE_CHECK(operands.workspace.intact(), "node '{}' writes beyond its workspace", node.name);
  for (std::size_t i = 0; i < node.inputs.size(); ++i) {
    REPRISE_CHECK(operands.inputs[i]->intact(), "node '{}' writes beside its input {}", node.name,
                  i);
    REPRISE_CHECK(
        operands.overwritten[i] || operands.inputs[i]->same_bytes(operands.inputs_before[i]),
        "node '{}' changes its input {}", node.name, i);
  }
  for (std::size_t o = 0; o < node.outputs.size(); ++o) {
    REPRISE_CHECK(operands.outputs[o]->intact(), "node '{}' writes beyond its output {}", node.name,
                  o);
    buffers_[roots_[node.outputs[o]].index()] = std::move(operands.outputs[o]);
  }
}

void Interpreter::recompute_forward(const graph::StepContext& context) {
  const graph::Graph& graph = prepared().graph;
  const Buffers before = buffers_;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[NodeId(i)];
    if (node.phase != graph::Phase::kForward || node.op == graph::OpKind::kReshape) continue;
    if (!graph::op_info(node.op).recomputable) continue;
    run(NodeId(i), context);
    for (const ValueId output : node.outputs) {
      const std::size_t root = roots_[output].index();
      REPRISE_CHECK(buffers_[root]->same_bytes(*before[root]),
                    "node '{}' computes other bits of '{}' when it runs again", node.name,
                    graph.values[output].name);
    }
  }
}

void Interpreter::step(const graph::StepContext& context) {
  const graph::Graph& graph = prepared().graph;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const bool forward = graph.nodes[NodeId(i)].phase == graph::Phase::kForward;
    if (options_.recompute && !forward) recompute_forward(context);
    run(NodeId(i), context);
  }
  for (const graph::Update& update : graph.updates) {
    buffers_[update.initial.index()] = buffers_[roots_[update.final].index()];
  }
}

std::unique_ptr<kernels::Program> prepare_on(std::string_view name, const graph::Graph& graph) {
  const auto backend = kernels::make_backend(name, {.threads = 2});
  auto program = backend->prepare(graph);
  if (backend->memory() == nullptr) return program;
  return std::make_unique<DeviceProgram>(std::move(program), backend->memory());
}

bool backend_is_built(std::string_view backend) {
  // Only oneDNN may be missing where a test asks. Another backend that cannot be made is a failure,
  // and must not turn all of its tests into skipped ones.
  if (backend != "cpu") return true;
  try {
    (void)kernels::make_backend(backend, {.threads = 2});
    return true;
  } catch (const base::Error& error) {
    if (error.kind() != base::ErrorKind::kDevice) throw;
    return false;
  }
}

}  // namespace reprise::test
