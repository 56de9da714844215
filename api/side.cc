#include "api/side.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace reprise::api {

using graph::ValueId;

namespace {

// ": planned for 8, got 16" where both are whole batches of one kind of item, else nothing.
std::string batch_note(const graph::Shape& shape, std::size_t planned_bytes, std::size_t got) {
  if (shape.empty() || planned_bytes == 0) return "";
  const std::size_t item = planned_bytes / static_cast<std::size_t>(shape[0]);
  if (got % item != 0) return "";
  return fmt::format(": planned for {}, got {} along its first axis", shape[0], got / item);
}

}  // namespace

Side::Side(std::unique_ptr<kernels::Program> program, std::unique_ptr<runtime::Executor> executor)
    : program_(std::move(program)), executor_(std::move(executor)) {
  for (std::size_t i = 0; i < graph().values.size(); ++i) {
    const graph::Value& value = graph().values[ValueId(i)];
    values_.emplace(value.name, ValueId(i));
    if (value.role == graph::Role::kInput) inputs_.push_back({ValueId(i)});
  }
}

ValueId Side::find(std::string_view name, std::string_view what) const {
  const auto found = values_.find(std::string(name));
  if (found == values_.end()) {
    throw base::input_error("graph '{}' has no {} '{}'", graph().name, what, name);
  }
  return found->second;
}

std::size_t Side::plain_bytes(ValueId value) const {
  const graph::Value& described = graph().values[value];
  return static_cast<std::size_t>(graph::element_count(described.shape) *
                                  graph::dtype_bytes(described.dtype));
}

std::vector<std::byte> Side::read(ValueId value) const {
  std::vector<std::byte> plain(plain_bytes(value));
  executor_->read(value, plain);
  return plain;
}

float Side::read_scalar(ValueId value) const {
  float scalar = 0;
  executor_->read(value, std::as_writable_bytes(std::span(&scalar, 1)));
  return scalar;
}

void Side::write_input(std::string_view name, std::span<const std::byte> plain) {
  const ValueId id = find(name, "input");
  const graph::Value& value = graph().values[id];
  if (value.role != graph::Role::kInput) {
    throw base::input_error("graph '{}': '{}' is no input but {}", graph().name, name,
                            graph::role_name(value.role));
  }
  const std::size_t planned = plain_bytes(id);
  if (plain.size() != planned) {
    throw base::input_error("input '{}' was planned for {} {} ({} bytes), got {} bytes{}", name,
                            graph::dtype_name(value.dtype), graph::shape_text(value.shape), planned,
                            plain.size(), batch_note(value.shape, planned, plain.size()));
  }
  executor_->write_ahead(id, plain);
  std::find_if(inputs_.begin(), inputs_.end(), [&](const Input& each) {
    return each.value == id;
  })->written = true;
}

void Side::require_inputs() const {
  for (const Input& input : inputs_) {
    if (input.written) continue;
    throw base::input_error(
        "input '{}' has not been set since the last step, which took its bytes; set every input "
        "before each step",
        graph().values[input.value].name);
  }
}

void Side::forget_inputs() {
  for (Input& input : inputs_) input.written = false;
}

}  // namespace reprise::api
