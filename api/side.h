#pragma once

// A program with its executor, the way from names to values, and which inputs a step still lacks.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "kernels/backend.h"
#include "runtime/executor.h"

namespace reprise::api {

class Side {
 public:
  Side() = default;
  Side(std::unique_ptr<kernels::Program> program, std::unique_ptr<runtime::Executor> executor);

  [[nodiscard]] const graph::Graph& graph() const { return program_->prepared().graph; }
  [[nodiscard]] kernels::Program& program() const { return *program_; }
  [[nodiscard]] runtime::Executor& executor() const { return *executor_; }

  [[nodiscard]] bool has(std::string_view name) const {
    return values_.contains(std::string(name));
  }
  // Error(kInput) naming graph and name; `what` is what was looked for.
  [[nodiscard]] graph::ValueId find(std::string_view name, std::string_view what) const;
  [[nodiscard]] std::size_t plain_bytes(graph::ValueId value) const;
  [[nodiscard]] std::vector<std::byte> read(graph::ValueId value) const;
  [[nodiscard]] float read_scalar(graph::ValueId value) const;  // f32 []

  // Error(kInput) for another size than planned (names both, and the batch sizes where the sizes
  // are whole batches), and for a name that is no input; nothing is written then.
  void write_input(std::string_view name, std::span<const std::byte> plain);

  // A step takes the bytes of its inputs, so each step wants all of them anew. Error(kInput) naming
  // the first input that was not written since forget_inputs().
  void require_inputs() const;
  void forget_inputs();

 private:
  struct Input {
    graph::ValueId value;
    bool written = false;
  };

  std::unique_ptr<kernels::Program> program_;
  std::unique_ptr<runtime::Executor> executor_;
  std::unordered_map<std::string, graph::ValueId> values_;
  std::vector<Input> inputs_;
};

}  // namespace reprise::api
