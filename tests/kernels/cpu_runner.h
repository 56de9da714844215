#pragma once

// Runs a program node by node, each value in a buffer of its own, without a planner. Buffers and
// workspaces start as NaN, so that a kernel that leaves a byte unwritten shows.

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "kernels/backend.h"

namespace reprise::kernels {

class CpuRunner {
 public:
  // With `inplace`, outputs take the buffer of an input wherever the program allows it and nobody
  // reads that input later.
  explicit CpuRunner(std::unique_ptr<Program> program, bool inplace = false)
      : program_(std::move(program)), inplace_(inplace) {
    const graph::PreparedGraph& prepared = program_->prepared();
    buffers_.resize(prepared.graph.values.size());
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      buffers_[i] = allocate(prepared.value_bytes[ValueId(i)]);
      by_name_.emplace(prepared.graph.values[ValueId(i)].name, ValueId(i));
    }
  }

  [[nodiscard]] const Program& program() const { return *program_; }
  [[nodiscard]] const graph::PreparedGraph& prepared() const { return program_->prepared(); }
  [[nodiscard]] ValueId id(const std::string& name) const { return by_name_.at(name); }

  template <class T>
  void set(const std::string& name, const std::vector<T>& plain) {
    program_->import_value(id(name), std::as_bytes(std::span(plain)),
                           buffers_[id(name).index()].get());
  }
  template <class T = float>
  [[nodiscard]] std::vector<T> get(const std::string& name) const {
    const graph::Value& value = prepared().graph.values[id(name)];
    std::vector<T> plain(static_cast<std::size_t>(graph::element_count(value.shape)));
    program_->export_value(id(name), buffers_[id(name).index()].get(),
                           std::as_writable_bytes(std::span(plain)));
    return plain;
  }

  void step(const graph::StepContext& context = {}) {
    const graph::Graph& graph = prepared().graph;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) run_node(NodeId(i), context);
    for (const graph::Update& update : graph.updates) {
      if (buffers_[update.initial.index()] == buffers_[update.final.index()]) continue;
      std::memcpy(buffers_[update.initial.index()].get(), buffers_[update.final.index()].get(),
                  static_cast<std::size_t>(prepared().value_bytes[update.initial]));
    }
  }

  // Addresses of one run of a node, made ahead: running them allocates nothing here.
  struct Prepared {
    std::vector<const std::byte*> inputs;
    std::vector<std::byte*> outputs;
    std::shared_ptr<std::byte> workspace;
  };
  [[nodiscard]] Prepared addresses(NodeId id) {
    const graph::Node& node = prepared().graph.nodes[id];
    Prepared call;
    for (const ValueId value : node.inputs) call.inputs.push_back(buffers_[value.index()].get());
    for (const ValueId value : node.outputs) call.outputs.push_back(buffers_[value.index()].get());
    call.workspace = allocate(prepared().nodes[id].workspace_bytes);
    return call;
  }
  void run(NodeId id, const Prepared& call, const graph::StepContext& context) {
    program_->run(id, {call.inputs, call.outputs, call.workspace.get()}, context);
  }

  // The outputs of one more run of a node, in new buffers.
  [[nodiscard]] std::vector<std::vector<std::byte>> fresh_outputs(
      NodeId id, const graph::StepContext& context) {
    const graph::Node& node = prepared().graph.nodes[id];
    Prepared call = addresses(id);
    std::vector<std::shared_ptr<std::byte>> fresh;
    for (std::size_t o = 0; o < node.outputs.size(); ++o) {
      fresh.push_back(allocate(prepared().value_bytes[node.outputs[o]]));
      call.outputs[o] = fresh[o].get();
    }
    run(id, call, context);
    std::vector<std::vector<std::byte>> bytes;
    for (std::size_t o = 0; o < fresh.size(); ++o) {
      bytes.emplace_back(fresh[o].get(), fresh[o].get() + prepared().value_bytes[node.outputs[o]]);
    }
    return bytes;
  }

 private:
  static std::shared_ptr<std::byte> allocate(base::Bytes bytes) {
    const auto size = static_cast<std::size_t>(base::align_up(bytes + 1, graph::kArenaAlignment));
    auto* memory = static_cast<std::byte*>(std::aligned_alloc(graph::kArenaAlignment, size));
    std::memset(memory, 0xFF, size);
    return {memory, [](std::byte* p) { std::free(p); }};
  }

  void run_node(NodeId id, const graph::StepContext& context) {
    const graph::Graph& graph = prepared().graph;
    const graph::Node& node = graph.nodes[id];
    for (const ValueId value : node.outputs) {
      buffers_[value.index()] = allocate(prepared().value_bytes[value]);
    }
    for (const graph::InplacePair& pair : prepared().nodes[id].inplace) {
      const ValueId read = node.inputs[static_cast<std::size_t>(pair.input)];
      const ValueId write = node.outputs[static_cast<std::size_t>(pair.output)];
      if (inplace_ && free_to_overwrite(id, read, pair)) {
        buffers_[write.index()] = buffers_[read.index()];
      } else if (pair.forced) {  // in place on a copy, so that all values stay readable
        std::memcpy(buffers_[write.index()].get(), buffers_[read.index()].get(),
                    static_cast<std::size_t>(prepared().value_bytes[read]));
      }
    }
    Prepared call = addresses(id);
    for (const graph::InplacePair& pair : prepared().nodes[id].inplace) {
      if (!pair.forced) continue;
      call.inputs[static_cast<std::size_t>(pair.input)] =
          call.outputs[static_cast<std::size_t>(pair.output)];
    }
    run(id, call, context);
  }

  bool free_to_overwrite(NodeId id, ValueId value, const graph::InplacePair& pair) const {
    const graph::Graph& graph = prepared().graph;
    if (pair.forced) return true;
    if (!graph.values[value].producer.valid()) return false;
    for (const ValueId output : graph.outputs) {
      if (output == value) return false;
    }
    for (std::size_t n = id.index(); n < graph.nodes.size(); ++n) {
      const graph::Node& node = graph.nodes[NodeId(n)];
      for (std::size_t i = 0; i < node.inputs.size(); ++i) {
        const bool itself = n == id.index() && i == static_cast<std::size_t>(pair.input);
        if (node.inputs[i] == value && !itself) return false;
      }
    }
    return true;
  }

  std::unique_ptr<Program> program_;
  bool inplace_;
  std::vector<std::shared_ptr<std::byte>> buffers_;
  std::unordered_map<std::string, ValueId> by_name_;
};

}  // namespace reprise::kernels
