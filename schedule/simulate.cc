#include "schedule/simulate.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "base/error.h"

// Three passes over the order. The first binds each read to the newest copy and so finds the last
// reader of every copy; only then is it known which in-place pairs are legal, and the second gives
// each copy a buffer, its own or the one of the copy it replaces. The third (in profile_memory)
// sums.

namespace reprise::schedule {
namespace {

class Tracer {
 public:
  Tracer(const Problem& problem, const Order& order, const Choices& choices)
      : problem_(problem),
        order_(order),
        choices_(choices),
        steps_(static_cast<std::int64_t>(order.size())),
        newest_(problem.tensors.size()),
        ran_(problem.ops.size(), false) {}

  TraceResult run() {
    check_choices();
    add_initial_copies();
    TraceResult result;
    if (!bind_all() || !keep_outputs() || !check_once_ops() || !assign_buffers()) {
      result.fault = std::move(fault_);
    }
    result.trace = std::move(trace_);
    return result;
  }

 private:
  template <class... Args>
  bool fail(std::int64_t step, fmt::format_string<Args...> format, Args&&... args) {
    fault_ = OrderFault{step, fmt::format(format, std::forward<Args>(args)...)};
    return false;
  }

  void check_choices() const {
    if (choices_.empty()) return;
    REPRISE_CHECK(choices_.size() == problem_.ops.size(), "choices of {} ops, the problem has {}",
                  choices_.size(), problem_.ops.size());
    for (std::size_t i = 0; i < choices_.size(); ++i) {
      const Op& op = problem_.ops[OpId(i)];
      REPRISE_CHECK(choices_[i] >= 0 && static_cast<std::size_t>(choices_[i]) < op.choices(),
                    "choice {} of op '{}', which has {} algorithms", choices_[i], op.name,
                    op.choices());
    }
  }

  const std::string& name(TensorId tensor) const { return problem_.tensors[tensor].name; }

  void add_initial_copies() {
    for (std::size_t i = 0; i < problem_.tensors.size(); ++i) {
      const TensorKind kind = problem_.tensors[TensorId(i)].kind;
      if (kind != TensorKind::kResident && kind != TensorKind::kInput) continue;
      Copy copy{.tensor = TensorId(i), .buffer = {}};
      if (kind == TensorKind::kResident) copy.last_read = steps_;
      newest_[i] = trace_.copies.push_back(copy);
    }
  }

  bool bind_all() {
    trace_.steps.reserve(order_.size());
    for (std::int64_t step = 0; step < steps_; ++step) {
      const OpId op = order_[static_cast<std::size_t>(step)];
      if (!problem_.ops.contains(op)) {
        return fail(step, "step {}: op {} does not exist; the problem has {} ops", step, op.index(),
                    problem_.ops.size());
      }
      if (!bind(step, op, problem_.ops[op])) return false;
    }
    return true;
  }

  bool bind(std::int64_t step, OpId id, const Op& op) {
    if (ran_[id.index()] && !op.recomputable) {
      return fail(step, "step {}: op '{}' runs a second time; it may run only once", step, op.name);
    }
    ran_[id.index()] = true;
    trace_.cost = base::checked_add(trace_.cost, chosen_algorithm(problem_, choices_, id).cost,
                                    "cost of the order");
    trace_.steps.push_back({.op = id,
                            .workspace = {},
                            .first_read = trace_.read_copies.size(),
                            .first_write = trace_.written_copies.size()});
    for (TensorId tensor : op.inputs) {
      const CopyId copy = newest_[tensor.index()];
      if (!copy.valid()) {
        return fail(step, "step {}: op '{}' reads '{}', which no step before it makes", step,
                    op.name, name(tensor));
      }
      std::int64_t& last_read = trace_.copies[copy].last_read;
      last_read = std::max(last_read, step);
      trace_.read_copies.push_back(copy);
    }
    for (TensorId tensor : op.outputs) {
      const CopyId copy =
          trace_.copies.push_back({.tensor = tensor, .buffer = {}, .made = step, .last_read = -1});
      newest_[tensor.index()] = copy;
      trace_.written_copies.push_back(copy);
    }
    return true;
  }

  // Of an output that is made again, the last copy is the one that stays.
  bool keep_outputs() {
    for (std::size_t i = 0; i < problem_.tensors.size(); ++i) {
      const Tensor& tensor = problem_.tensors[TensorId(i)];
      if (tensor.kind != TensorKind::kOutput) continue;
      if (!newest_[i].valid()) {
        return fail(steps_, "after the last step: output '{}' was never made", tensor.name);
      }
      trace_.copies[newest_[i]].last_read = steps_;
    }
    return true;
  }

  bool check_once_ops() {
    for (std::size_t i = 0; i < ran_.size(); ++i) {
      const Op& op = problem_.ops[OpId(i)];
      if (!ran_[i] && !op.recomputable) {
        return fail(steps_, "after the last step: op '{}' never ran; it must run once", op.name);
      }
    }
    return true;
  }

  bool assign_buffers() {
    for (Copy& copy : trace_.copies) {
      if (copy.made >= 0) break;
      open_buffer(copy);
    }
    for (std::int64_t step = 0; step < steps_; ++step) {
      Step& at = trace_.steps[static_cast<std::size_t>(step)];
      const Op& op = problem_.ops[at.op];
      if (!op.inplace.empty() && !pass_buffers_on(step, at, op)) return false;
      for (CopyId id : trace_.writes(static_cast<std::size_t>(step))) {
        Copy& copy = trace_.copies[id];
        if (!copy.buffer.valid()) open_buffer(copy);
      }
      const Bytes workspace = chosen_algorithm(problem_, choices_, at.op).workspace;
      if (workspace > 0) {
        at.workspace =
            trace_.buffers.push_back({.start = step, .end = step + 1, .bytes = workspace});
      }
    }
    return true;
  }

  // Forced pairs first: an optional one gets what is left.
  bool pass_buffers_on(std::int64_t step, const Step& at, const Op& op) {
    for (bool forced : {true, false}) {
      for (const graph::InplacePair& pair : op.inplace) {
        if (pair.forced != forced) continue;
        const Copy& input =
            trace_.copies[trace_.read_copies[at.first_read + static_cast<std::size_t>(pair.input)]];
        Copy& output = trace_.copies[trace_.written_copies[at.first_write +
                                                           static_cast<std::size_t>(pair.output)]];
        if (forced && !check_forced(step, op, input)) return false;
        if (!forced && !optional_is_legal(step, at, pair)) continue;
        output.buffer = input.buffer;
        Buffer& buffer = trace_.buffers[output.buffer];
        buffer.end = std::max(buffer.end, end_of(output));
      }
    }
    return true;
  }

  bool check_forced(std::int64_t step, const Op& op, const Copy& input) {
    if (input.last_read <= step) return true;
    if (input.last_read == steps_) {
      return fail(step, "step {}: op '{}' works in place on '{}', which must stay to the end", step,
                  op.name, name(input.tensor));
    }
    const OpId reader = trace_.steps[static_cast<std::size_t>(input.last_read)].op;
    return fail(step, "step {}: op '{}' works in place on '{}', which op '{}' reads at step {}",
                step, op.name, name(input.tensor), problem_.ops[reader].name, input.last_read);
  }

  bool optional_is_legal(std::int64_t step, const Step& at, const graph::InplacePair& pair) const {
    const Op& op = problem_.ops[at.op];
    const CopyId read = trace_.read_copies[at.first_read + static_cast<std::size_t>(pair.input)];
    const CopyId* writes = trace_.written_copies.data() + at.first_write;
    const Copy& input = trace_.copies[read];
    const Copy& output = trace_.copies[writes[pair.output]];
    const Tensor& from = problem_.tensors[input.tensor];
    if (input.last_read != step || output.buffer.valid()) return false;
    if (from.kind == TensorKind::kResident || from.kind == TensorKind::kOutput) return false;
    if (from.bytes != problem_.tensors[output.tensor].bytes) return false;
    for (std::size_t i = 0; i < op.outputs.size(); ++i) {
      // Handed to another output of this op already?
      if (trace_.copies[writes[i]].buffer == input.buffer) return false;
    }
    for (std::size_t i = 0; i < op.inputs.size(); ++i) {
      // An op that reads the tensor twice must allow the pair for both.
      if (op.inputs[i] == input.tensor && !has_pair(op, i, pair.output)) return false;
    }
    return true;
  }

  static bool has_pair(const Op& op, std::size_t input, std::int32_t output) {
    return std::any_of(op.inplace.begin(), op.inplace.end(), [&](const graph::InplacePair& pair) {
      return pair.input == static_cast<std::int32_t>(input) && pair.output == output;
    });
  }

  // One past the last reader, or past the writer when there is none; never empty.
  std::int64_t end_of(const Copy& copy) const {
    const std::int64_t last = std::max({copy.last_read, copy.made, std::int64_t{0}});
    return std::min(last + 1, std::max<std::int64_t>(steps_, 1));
  }

  void open_buffer(Copy& copy) {
    copy.buffer = trace_.buffers.push_back({.start = std::max<std::int64_t>(copy.made, 0),
                                            .end = end_of(copy),
                                            .bytes = problem_.tensors[copy.tensor].bytes});
  }

  const Problem& problem_;
  const Order& order_;
  const Choices& choices_;
  const std::int64_t steps_;
  std::vector<CopyId> newest_;  // per tensor
  std::vector<bool> ran_;       // per op
  Trace trace_;
  std::optional<OrderFault> fault_;
};

std::span<const CopyId> part(const std::vector<CopyId>& all, std::size_t begin, std::size_t end) {
  return std::span<const CopyId>(all).subspan(begin, end - begin);
}

}  // namespace

std::span<const CopyId> Trace::reads(std::size_t step) const {
  const bool last = step + 1 == steps.size();
  return part(read_copies, steps[step].first_read,
              last ? read_copies.size() : steps[step + 1].first_read);
}

std::span<const CopyId> Trace::writes(std::size_t step) const {
  const bool last = step + 1 == steps.size();
  return part(written_copies, steps[step].first_write,
              last ? written_copies.size() : steps[step + 1].first_write);
}

TraceResult trace_order(const Problem& problem, const Order& order, const Choices& choices) {
  return Tracer(problem, order, choices).run();
}

MemoryProfile profile_memory(const Trace& trace) {
  MemoryProfile profile;
  std::vector<Bytes> change(trace.steps.size() + 2, 0);  // room for [0, 1) of an empty order
  for (const Buffer& buffer : trace.buffers) {
    change[static_cast<std::size_t>(buffer.start)] += buffer.bytes;
    change[static_cast<std::size_t>(buffer.end)] -= buffer.bytes;
  }
  if (trace.steps.empty()) {
    profile.peak = change[0];
    return profile;
  }
  profile.live_bytes.reserve(trace.steps.size());
  Bytes live = 0;
  for (std::size_t step = 0; step < trace.steps.size(); ++step) {
    live += change[step];
    profile.live_bytes.push_back(live);
    if (live > profile.peak) {
      profile.peak = live;
      profile.peak_step = static_cast<std::int64_t>(step);
    }
  }
  return profile;
}

}  // namespace reprise::schedule
