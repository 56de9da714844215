#include "runtime/rank_sums.h"

#include <exception>

namespace reprise::runtime {

using graph::NodeId;
using graph::OpKind;

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

void RankSums::give_up() noexcept {
  try {
    throw;
  } catch (const std::exception& error) {
    communicator_.abort(error.what());
  } catch (...) {
    communicator_.abort("an exception");
  }
  try {
    wait_all();
  } catch (...) {  // it says once more what is known
  }
}

}  // namespace reprise::runtime
