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
RankSums::RankSums(const graph::PreparedGraph& prepared, const schedule::Schedule& schedule,
                   comm::Communicator& communicator, base::Bytes bucket_bytes)
    : prepared_(prepared),
      communicator_(communicator),
      type_(prepared.backend == "reference" ? comm::ElementType::kF64 : comm::ElementType::kF32),
      buckets_(schedule::cut_buckets(prepared, schedule, bucket_bytes)),
      members_(prepared.graph.nodes.size()),
      tickets_(buckets_.size()) {
  for (std::size_t b = 0; b < buckets_.size(); ++b) {
    const auto& members = buckets_[b].members;
    for (std::size_t i = 0; i < members.size(); ++i) members_[members[i]] = {b, i};
    pieces_.emplace_back(members.size());
  }
}

bool RankSums::run(NodeId id, const kernels::Call& call) {
  const graph::Node& node = prepared_.graph.nodes[id];
  if (node.op == OpKind::kAllReduce) {
    const auto [bucket, place] = members_[id];
    auto& pieces = pieces_[bucket];
    const auto bytes = static_cast<std::size_t>(prepared_.value_bytes[node.outputs[0]]);
    pieces[place] = {call.outputs[0], bytes};
    if (place + 1 < pieces.size()) return true;  // its last member starts it
    newest_ = communicator_.start_all_reduce_pieces(pieces, type_, comm::Reduction::kSum);
    tickets_[bucket] = newest_;
    return true;
  }
  if (node.op != OpKind::kAwait) return false;
  const NodeId sum = prepared_.graph.values[node.inputs[0]].producer;
  communicator_.wait(tickets_[members_[sum].bucket]);
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
