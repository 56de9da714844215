#include "runtime/rank_sums.h"

#include <exception>
#include <new>
#include <string>

#include "base/error.h"

namespace reprise::runtime {

using graph::NodeId;
using graph::OpKind;

namespace {

// Inside a catch block.
std::string reason_in_flight() {
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return "out of memory";
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "an exception";
  }
}

}  // namespace

// The reference backend stores f32 values as f64; whatever else an f32 value is stored as, it is
// made of floats, with zeros between them where a layout has padding.
RankSums::RankSums(const graph::PreparedGraph& prepared, comm::Communicator& communicator)
    : prepared_(prepared),
      communicator_(communicator),
      type_(prepared.backend == "reference" ? comm::ElementType::kF64 : comm::ElementType::kF32),
      tickets_(prepared.graph.nodes.size()) {}

bool RankSums::run(NodeId id, const kernels::Call& call) {
  const graph::Node& node = prepared_.graph.nodes[id];
  if (node.op == OpKind::kAllReduce) {
    const auto bytes = static_cast<std::size_t>(prepared_.value_bytes[node.outputs[0]]);
    newest_ =
        communicator_.start_all_reduce({call.outputs[0], bytes}, type_, comm::Reduction::kSum);
    tickets_[id] = newest_;
    return true;
  }
  if (node.op != OpKind::kAwait) return false;
  communicator_.wait(tickets_[prepared_.graph.values[node.inputs[0]].producer]);
  return true;
}

void RankSums::wait_all() {
  if (newest_.sequence != 0) communicator_.wait(newest_);
}

void RankSums::give_up(NodeId node, std::uint64_t step) noexcept {
  try {
    communicator_.abort(fmt::format("step {}, node '{}': {}", step + 1,
                                    prepared_.graph.nodes[node].name, reason_in_flight()));
  } catch (...) {  // no memory for a long reason
    communicator_.abort("out of memory");
  }
  try {
    wait_all();
  } catch (...) {  // it says once more what is known
  }
}

}  // namespace reprise::runtime
