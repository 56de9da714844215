#include "planner/blocks_options.h"

#include <algorithm>
#include <unordered_map>

#include "planner/blocks_hash.h"
#include "planner/min_cut.h"

namespace reprise::planner {
namespace {

constexpr double kCapacitySum = 1e18;  // of all that may be cut; rounding is relative to it

std::size_t at(std::int32_t i) {
  return static_cast<std::size_t>(i);
}

std::uint64_t hash_of(const BlockModel& block) {
  SequenceHash hash;
  for (const BlockOp& op : block.ops) {
    hash.add(op.cost);
    hash.add(op.rerunnable ? 1 : 0);
    hash.add(static_cast<std::int64_t>(op.inputs.size()));
    for (std::int32_t t : op.inputs) hash.add(t);
  }
  for (const BlockTensor& t : block.tensors) {
    hash.add(t.bytes);
    hash.add(t.op);
    hash.add((t.needed ? 1 : 0) + (t.outside ? 2 : 0));
  }
  return hash.value();
}

BlockOption keep_all_needed(const BlockModel& block) {
  BlockOption option;
  for (const BlockTensor& t : block.tensors) {
    option.keep.push_back(t.needed || t.outside);
    if (option.keep.back()) option.kept += t.bytes;
  }
  return option;
}

// The choice that is best for a price per byte of byte_price / cost_price.
class PricedChoice {
 public:
  PricedChoice(const BlockModel& block, double byte_price, double cost_price)
      : block_(block),
        tensors_(static_cast<std::int32_t>(block.tensors.size())),
        cut_(2 + tensors_ + static_cast<std::int32_t>(block.ops.size())) {
    double sum = 1;
    for (const BlockTensor& t : block.tensors) sum += static_cast<double>(t.bytes) * byte_price;
    for (const BlockOp& op : block.ops) sum += static_cast<double>(op.cost) * cost_price;
    byte_price_ = byte_price * (kCapacitySum / sum);
    cost_price_ = cost_price * (kCapacitySum / sum);
  }

  BlockOption choose() {
    add_edges();
    const std::vector<bool> side = cut_.source_side(kSource, kSink);
    BlockOption option;
    for (std::int32_t t = 0; t < tensors_; ++t) {
      const BlockTensor& tensor = block_.tensors[at(t)];
      const bool again = side[at(op_node(tensor.op))];
      const bool wanted = side[at(tensor_node(t))];
      option.keep.push_back(tensor.outside || (wanted && !again));
      if (option.keep.back()) option.kept += tensor.bytes;
      if (wanted && again && !tensor.outside) option.made_again += tensor.bytes;
    }
    for (std::size_t i = 0; i < block_.ops.size(); ++i) {
      if (side[at(op_node(static_cast<std::int32_t>(i)))]) option.extra += block_.ops[i].cost;
    }
    return option;
  }

 private:
  static constexpr std::int32_t kSource = 0, kSink = 1;
  static std::int32_t tensor_node(std::int32_t t) { return 2 + t; }
  std::int32_t op_node(std::int32_t i) const { return 2 + tensors_ + i; }

  void add_edges() {
    for (std::int32_t t = 0; t < tensors_; ++t) {
      const BlockTensor& tensor = block_.tensors[at(t)];
      if (tensor.outside) continue;
      if (tensor.needed) cut_.add_edge(kSource, tensor_node(t), MinCut::kUncuttable);
      const bool rerunnable = block_.ops[at(tensor.op)].rerunnable;
      cut_.add_edge(tensor_node(t), rerunnable ? op_node(tensor.op) : kSink,
                    static_cast<std::int64_t>(static_cast<double>(tensor.bytes) * byte_price_));
    }
    for (std::int32_t i = 0; i < static_cast<std::int32_t>(block_.ops.size()); ++i) {
      const BlockOp& op = block_.ops[at(i)];
      if (!op.rerunnable) continue;
      cut_.add_edge(op_node(i), kSink,
                    static_cast<std::int64_t>(static_cast<double>(op.cost) * cost_price_));
      for (std::int32_t t : op.inputs) {
        if (block_.tensors[at(t)].outside) continue;
        cut_.add_edge(op_node(i), tensor_node(t), MinCut::kUncuttable);
      }
    }
  }

  const BlockModel& block_;
  const std::int32_t tensors_;
  MinCut cut_;
  double byte_price_ = 0, cost_price_ = 0;
};

// How far an option lies below the line through two others, in bytes times cost.
double depth_below(const BlockOption& a, const BlockOption& b, const BlockOption& option) {
  const auto bytes = [&](Bytes more, Bytes less) { return static_cast<double>(more - less); };
  const auto cost = [&](std::int64_t more, std::int64_t less) {
    return static_cast<double>(more - less);
  };
  const double area = bytes(a.kept, b.kept) * cost(b.extra, a.extra);
  return area - bytes(option.kept, b.kept) * cost(b.extra, a.extra) -
         bytes(a.kept, b.kept) * cost(option.extra, a.extra);
}

}  // namespace

BlockModel make_block_model(const Structure& structure, Index first, Index last) {
  BlockModel block;
  std::unordered_map<Index, std::int32_t> local;  // index of a tensor made in the block
  for (Index i = first; i < last; ++i) {
    BlockOp op;
    op.cost = structure.op(i).cost;
    op.rerunnable = structure.rerunnable(i) && structure.required(i);
    for (TensorId t : structure.op(i).inputs) {
      const auto found = local.find(static_cast<Index>(t.index()));
      if (found != local.end()) op.inputs.push_back(found->second);
    }
    for (TensorId id : structure.op(i).outputs) {
      const auto t = static_cast<Index>(id.index());
      local.emplace(t, static_cast<std::int32_t>(block.tensors.size()));
      const bool stays = structure.tensor(t).kind == schedule::TensorKind::kOutput;
      op.rerunnable = op.rerunnable && !stays;
      block.tensors.push_back({.bytes = structure.tensor(t).bytes,
                               .op = i - first,
                               .needed = structure.read_after_turn(t),
                               .outside = stays || structure.last_forward_use(t) >= last});
    }
    block.ops.push_back(std::move(op));
  }
  block.hash = hash_of(block);
  return block;
}

std::vector<BlockOption> hull_of_options(const BlockModel& block, std::size_t most) {
  double costs = 1, bytes = 1;
  for (const BlockOp& op : block.ops) costs += static_cast<double>(op.cost);
  for (const BlockTensor& t : block.tensors) bytes += static_cast<double>(t.bytes);
  // What costs nothing to make again first, then the fewest bytes of all.
  std::vector<BlockOption> hull = {keep_all_needed(block)};
  for (BlockOption option :
       {PricedChoice(block, 1, bytes).choose(), PricedChoice(block, costs, 1).choose()}) {
    if (option.kept < hull.back().kept) hull.push_back(std::move(option));
  }
  std::vector<bool> open(hull.size() - 1, true);  // may the gap after an option hide others?
  while (hull.size() < most) {
    std::size_t widest = open.size();
    for (std::size_t k = 0; k < open.size(); ++k) {
      if (!open[k]) continue;
      const auto gap = [&](std::size_t i) { return hull[i].kept - hull[i + 1].kept; };
      if (widest == open.size() || gap(k) > gap(widest)) widest = k;
    }
    if (widest == open.size()) break;
    const BlockOption &a = hull[widest], &b = hull[widest + 1];
    const auto extra = static_cast<double>(b.extra - a.extra);
    const auto saved = static_cast<double>(a.kept - b.kept);
    BlockOption option = PricedChoice(block, extra, saved).choose();
    if (depth_below(a, b, option) > 1e-9 * extra * saved && option.kept < a.kept &&
        option.kept > b.kept) {
      hull.insert(hull.begin() + static_cast<std::ptrdiff_t>(widest) + 1, std::move(option));
      open.insert(open.begin() + static_cast<std::ptrdiff_t>(widest), true);
    } else {
      open[widest] = false;
    }
  }
  return hull;
}

}  // namespace reprise::planner
