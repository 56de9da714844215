#include "runtime/executor.h"

#include <algorithm>
#include <exception>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "runtime/binding.h"
#include "runtime/debug_arena.h"
#include "runtime/rank_sums.h"
#include "runtime/recorder.h"
#include "schedule/input_windows.h"
#include "schedule/verify.h"

namespace reprise::runtime {

using schedule::Schedule;
using schedule::Slot;
using schedule::SlotId;

namespace {

// Inside a catch block: the exception in flight, as an Error that names the node.
[[noreturn]] void rethrow_naming(const std::string& node) {
  const auto named = [&](const std::string& message) {
    const bool named_already = message.find(fmt::format("'{}'", node)) != std::string::npos;
    return named_already ? message : fmt::format("node '{}': {}", node, message);
  };
  try {
    throw;
  } catch (const comm::CommError&) {
    throw;  // names rank and operation, which is what counts
  } catch (const base::Error& error) {
    throw base::Error(error.kind(), named(error.what()));
  } catch (const std::bad_alloc&) {
    throw base::device_error("node '{}': out of memory", node);
  } catch (const std::exception& error) {
    throw base::device_error("{}", named(error.what()));
  }
}

}  // namespace

struct Executor::Impl {
  Impl(kernels::Program& program_, Schedule schedule_, Arena& arena_,
       const ExecutorOptions& options);

  void index_ends();
  void place_marks();
  void find_first_update();
  // Inside a catch block: the other ranks hear of it, and nobody writes to the arena any more.
  void give_up_sums(graph::NodeId node, const graph::StepContext& context) noexcept {
    if (sums)
      sums->give_up(fmt::format("node '{}'", prepared().graph.nodes[node].name), context.step);
  }
  void end_sums(const graph::StepContext& context);
  void run(const graph::StepContext& context);
  void run_debug(const graph::StepContext& context);
  void call(const BoundInstruction& bound, const graph::StepContext& context);
  void run_node(const BoundInstruction& bound, const graph::StepContext& context);
  [[nodiscard]] const graph::PreparedGraph& prepared() const { return program.prepared(); }
  [[nodiscard]] Arena& held_in() { return debug ? debug->arena() : arena; }
  [[nodiscard]] std::byte* address(Bytes offset) {
    return debug ? debug->address(offset) : arena.data() + offset;
  }
  // Address of a slot that the host reads or writes.
  [[nodiscard]] std::byte* touch(const Slot& slot);
  [[nodiscard]] const Slot& require(const base::IdVector<ValueId, SlotId>& slots, ValueId value,
                                    std::string_view problem) const;

  kernels::Program& program;
  const Schedule schedule;
  Arena& arena;
  std::optional<DebugArena> debug;
  std::optional<RankSums> sums;
  Binding binding;
  base::IdVector<ValueId, SlotId> entry_slots;  // invalid where a value has none
  base::IdVector<ValueId, SlotId> exit_slots;
  base::IdVector<ValueId, std::int32_t> ahead;  // 1 + mark from which an input may be written; or 0
  std::int32_t marks = 0;
  Bytes entry_bytes = 0;
  Bytes reached = 0;
  std::size_t first_update = 0;  // first instruction that writes over a persistent value
  bool state_lost = false;
  Recorder* recorder = nullptr;  // of the step that is running
  const BoundInstruction* running = nullptr;
  std::unique_ptr<kernels::Tape> tape;
  // All of them, one after the other; made once, since making it allocates.
  const std::function<void(const graph::StepContext&)> instructions =
      [this](const graph::StepContext& context) {
        const BoundInstruction* const end =
            binding.instructions.data() + binding.instructions.size();
        for (running = binding.instructions.data(); running != end; ++running)
          call(*running, context);
      };
};

Executor::Impl::Impl(kernels::Program& program_, Schedule schedule_, Arena& arena_,
                     const ExecutorOptions& options)
    : program(program_), schedule(std::move(schedule_)), arena(arena_) {
  if (arena.bytes() < schedule.arena_bytes) {
    throw base::input_error("the schedule needs an arena of {} bytes, got one of {} bytes",
                            schedule.arena_bytes, arena.bytes());
  }
  // Form first: the debug arena relies on ids and offsets that are in range.
  binding = bind_schedule(prepared(), schedule, [&](Bytes at) { return arena.data() + at; });
  if (options.debug) {
    // Stretching moves slots apart, so an overlap would be hidden rather than found.
    const auto violations = schedule::verify(prepared(), schedule, 1);
    if (!violations.empty()) {
      throw base::input_error("the schedule is not correct ({}): {}",
                              schedule::rule_name(violations[0].rule), violations[0].message);
    }
    debug.emplace(prepared(), schedule, options.device);
    binding = bind_schedule(prepared(), schedule, [&](Bytes at) { return debug->address(at); });
  }
  index_ends();
  find_first_update();
  tape = program.make_tape();
  if (options.device && !debug) place_marks();
  if (options.communicator != nullptr) {
    sums.emplace(prepared(), schedule, *options.communicator,
                 options.debug ? 0 : options.bucket_bytes, options.device_sums);
  }
}

void Executor::Impl::find_first_update() {
  const graph::Graph& graph = prepared().graph;
  base::IdVector<graph::NodeId, char> updates(graph.nodes.size());
  for (const graph::Update& update : graph.updates) {
    updates[graph.values[graph::storage_root(graph, update.final)].producer] = 1;
  }
  const auto& all = schedule.instructions;
  const auto first = std::find_if(all.begin(), all.end(), [&](const schedule::Instruction& each) {
    return updates[each.node] != 0;
  });
  first_update = static_cast<std::size_t>(first - all.begin());
}

void Executor::Impl::place_marks() {
  ahead.resize(prepared().graph.values.size());
  for (const schedule::InputWindow& window : schedule::input_windows(prepared().graph, schedule)) {
    if (!window.last_use || binding.instructions.empty()) continue;
    BoundInstruction& last = binding.instructions[*window.last_use];
    if (last.mark < 0) last.mark = marks++;
    ahead[schedule.slots[window.slot].value] = last.mark + 1;
  }
}

void Executor::Impl::index_ends() {
  const graph::Graph& graph = prepared().graph;
  entry_slots.resize(graph.values.size());
  exit_slots.resize(graph.values.size());
  for (const SlotId slot : schedule.entry) {
    entry_slots[schedule.slots[slot].value] = slot;
    entry_bytes += schedule.slots[slot].bytes;
  }
  for (const SlotId slot : schedule.exit) exit_slots[schedule.slots[slot].value] = slot;
  for (const ValueId output : graph.outputs) {
    exit_slots[output] = exit_slots[graph::storage_root(graph, output)];
  }
  for (const graph::Update& update : graph.updates) {
    exit_slots[update.initial] = exit_slots[graph::storage_root(graph, update.final)];
  }
}

void Executor::Impl::call(const BoundInstruction& bound, const graph::StepContext& context) {
  if (recorder != nullptr) recorder->begin_instruction();
  run_node(bound, context);
  if (bound.mark >= 0) program.mark(static_cast<std::size_t>(bound.mark));
  if (recorder != nullptr) recorder->end_instruction();
}

void Executor::Impl::run_node(const BoundInstruction& bound, const graph::StepContext& context) {
  const kernels::Call call{
      .inputs = std::span<const std::byte* const>(bound.addresses, bound.input_count),
      .outputs = std::span(bound.addresses + bound.input_count, bound.output_count),
      .workspace = bound.workspace,
      .algorithm = bound.algorithm};
  if (!sums || !sums->run(bound.node, call)) {
    if (recorder != nullptr) {  // waits for a device, so that the times are those of the work
      (void)program.timed_run(bound.node, call, context);
    } else {
      program.run(bound.node, call, context);
    }
  }
  if (sums && debug) sums->wait_all();
}

void Executor::Impl::run(const graph::StepContext& context) {
  if (binding.instructions.empty()) return;
  const BoundInstruction* const begin = binding.instructions.data();
  const BoundInstruction* const end = begin + binding.instructions.size();
  running = end;
  try {
    // What is recorded is not timed.
    program.run_step(context, recorder == nullptr ? tape.get() : nullptr, instructions);
  } catch (...) {
    const bool of_a_node = running != end;  // else the device failed around them
    state_lost = !of_a_node || static_cast<std::size_t>(running - begin) >= first_update;
    const BoundInstruction& last = of_a_node ? *running : *begin;
    reached = std::max(reached, last.reach);
    give_up_sums(last.node, context);
    if (!of_a_node) throw;
    rethrow_naming(prepared().graph.nodes[last.node].name);
  }
  reached = std::max(reached, binding.instructions.back().reach);
  end_sums(context);
}

void Executor::Impl::end_sums(const graph::StepContext& context) {
  if (!sums) return;
  try {
    sums->end_step();
  } catch (...) {
    state_lost = true;
    sums->give_up("on the device", context.step);
    throw;
  }
}

void Executor::Impl::run_debug(const graph::StepContext& context) {
  debug->begin_step();
  for (std::size_t i = 0; i < binding.instructions.size(); ++i) {
    const BoundInstruction& bound = binding.instructions[i];
    reached = std::max(reached, bound.reach);
    try {
      call(bound, context);
    } catch (...) {
      state_lost = i >= first_update;
      give_up_sums(bound.node, context);
      rethrow_naming(prepared().graph.nodes[bound.node].name);
    }
    debug->end_instruction(i);
  }
  end_sums(context);
}

std::byte* Executor::Impl::touch(const Slot& slot) {
  reached = std::max(reached, slot.offset + slot.bytes);
  return address(slot.offset);
}

const Slot& Executor::Impl::require(const base::IdVector<ValueId, SlotId>& slots, ValueId value,
                                    std::string_view problem) const {
  if (!slots.contains(value)) {
    throw base::input_error("value {}: the graph has {} values", value.index(), slots.size());
  }
  if (!slots[value].valid()) {
    throw base::input_error("value '{}' {}", prepared().graph.values[value].name, problem);
  }
  return schedule.slots[slots[value]];
}

Executor::Executor(kernels::Program& program, Schedule schedule, Arena& arena,
                   const ExecutorOptions& options)
    : impl_(std::make_unique<Impl>(program, std::move(schedule), arena, options)) {}
Executor::~Executor() = default;

void Executor::run(const graph::StepContext& context, StepRecord* record) {
  impl_->state_lost = false;
  if (impl_->sums) impl_->sums->begin_step();
  std::optional<Recorder> recorder;
  if (record != nullptr) recorder.emplace(*record, impl_->sums ? &*impl_->sums : nullptr);
  const auto forget = [](Executor::Impl* impl) { impl->recorder = nullptr; };
  const std::unique_ptr<Impl, decltype(forget)> recording(impl_.get(), forget);
  impl_->recorder = recorder ? &*recorder : nullptr;
  if (impl_->debug) {
    impl_->run_debug(context);
  } else {
    impl_->run(context);
  }
  if (recorder) recorder->finish();
}

bool Executor::state_lost() const {
  return impl_->state_lost;
}

void Executor::capture_entry(std::vector<std::byte>& captured) const {
  captured.resize(static_cast<std::size_t>(impl_->entry_bytes));
  std::size_t at = 0;
  for (const SlotId id : impl_->schedule.entry) {
    const Slot& slot = impl_->schedule.slots[id];
    const auto part = std::span(captured).subspan(at, static_cast<std::size_t>(slot.bytes));
    impl_->held_in().read(impl_->address(slot.offset), part);
    at += part.size();
  }
}

void Executor::restore_entry(std::span<const std::byte> captured) {
  if (static_cast<Bytes>(captured.size()) != impl_->entry_bytes) {
    throw base::input_error("captured entry of {} bytes; this schedule's entry has {}",
                            captured.size(), impl_->entry_bytes);
  }
  std::size_t at = 0;
  for (const SlotId id : impl_->schedule.entry) {
    const Slot& slot = impl_->schedule.slots[id];
    const auto part = captured.subspan(at, static_cast<std::size_t>(slot.bytes));
    impl_->held_in().write(impl_->touch(slot), part);
    at += part.size();
  }
}

void Executor::write(ValueId value, std::span<const std::byte> plain) {
  const Slot& slot = impl_->require(impl_->entry_slots, value,
                                    "is made by the step: only inputs and persistent values can be "
                                    "written");
  impl_->program.import_value(slot.value, plain, impl_->touch(slot));
}

void Executor::write_ahead(ValueId input, std::span<const std::byte> plain) {
  const auto& ahead = impl_->ahead;
  if (!ahead.contains(input) || ahead[input] == 0) return write(input, plain);
  const Slot& slot = impl_->require(impl_->entry_slots, input, "is no input of the step");
  impl_->program.begin_import(slot.value, plain, impl_->touch(slot),
                              static_cast<std::size_t>(ahead[input] - 1));
}

void Executor::read(ValueId value, std::span<std::byte> plain) const {
  const Slot& slot = impl_->require(
      impl_->exit_slots, value,
      "is not kept to the end of the step: add it to the graph's outputs to read it");
  impl_->program.export_value(slot.value, impl_->touch(slot), plain);
}

Bytes Executor::peak_bytes_measured() const {
  return base::align_up(impl_->reached, graph::kArenaAlignment);
}

const Schedule& Executor::schedule() const {
  return impl_->schedule;
}

}  // namespace reprise::runtime
