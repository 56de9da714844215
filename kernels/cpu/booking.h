#pragma once

// What the kernel of one node asks for at plan time: the layouts that it reads and writes, its
// workspace, and what it costs.

#include <memory>
#include <vector>

#include "base/error.h"
#include "graph/prepared.h"
#include "kernels/cpu/kernel.h"
#include "kernels/cpu/layout.h"

namespace reprise::kernels::cpu {

// The answer for one node; shared by all nodes with the same op, attributes and input layouts.
struct Booked {
  std::vector<LayoutId> reads;
  std::vector<LayoutId> writes;
  graph::PreparedNode node;
  std::shared_ptr<Kernel> kernel;
};

class Booking {
 public:
  // `layouts`: the layout of each input as it is now. `free`: inputs whose layout nobody has chosen
  // yet (a parameter before its first reader); they count as plain until then.
  Booking(const graph::Graph& graph, const graph::Node& node, LayoutTable& table,
          std::vector<LayoutId> layouts, std::vector<bool> free);

  [[nodiscard]] const graph::Node& node() const { return node_; }
  template <class A>
  [[nodiscard]] const A& attributes() const {
    return std::get<A>(node_.attributes);
  }
  [[nodiscard]] std::size_t inputs() const { return node_.inputs.size(); }
  // Inputs without the running sums of an accumulating node, which come last.
  [[nodiscard]] std::size_t plain_inputs() const;
  [[nodiscard]] const graph::Value& input(std::size_t i) const;
  [[nodiscard]] const graph::Value& output(std::size_t o) const;
  [[nodiscard]] const Layout& layout(std::size_t i) const { return table_[booked_.reads[i]]; }
  [[nodiscard]] bool free(std::size_t i) const { return free_[i]; }

  // The kernel reads input `i` in this layout; a reorder node is inserted where it lies otherwise.
  void require(std::size_t i, const Desc& desc, const Desc& plain_form);
  void require(std::size_t i, const Desc& desc);  // the axes are the value's
  void require_plain(std::size_t i);
  void require_like(std::size_t i, std::size_t other_input);
  // Input `i` as it lies, channel by channel; made plain where its layout has no such view.
  [[nodiscard]] ChannelView require_channels(std::size_t i);
  // The kernel writes output `o` in this layout.
  void produce(std::size_t o, const Desc& desc, const Desc& plain_form);
  void produce(std::size_t o, const Desc& desc);
  void produce_plain(std::size_t o);
  void produce_like(std::size_t o, std::size_t input);
  void produce_workspace(std::size_t o, const Desc& desc, std::shared_ptr<const void> forward);
  [[nodiscard]] const Layout& output_layout(std::size_t o) const {
    return table_[booked_.writes[o]];
  }

  // One layout for inputs [begin, end): that of the first one that is neither plain nor free, else
  // plain.
  void require_common(std::size_t begin, std::size_t end);

  // Reserves workspace; returns the offset of the piece, a multiple of the arena's alignment.
  std::size_t workspace(Bytes bytes);
  void flops(double count) { booked_.node.flops = count; }
  // Bytes read and written, where that is not all of every input and output.
  void moves(double bytes) { booked_.node.bytes_moved = bytes; }

  // Checks that the layouts are complete, prices the node, settles in-place pairs.
  [[nodiscard]] Booked finish(std::unique_ptr<Kernel> kernel);

  // Error(kInput) naming the node, its op and its shapes.
  [[nodiscard]] base::Error unsupported(const std::string& why) const;

 private:
  const graph::Graph& graph_;
  const graph::Node& node_;
  LayoutTable& table_;
  std::vector<bool> free_;
  Booked booked_;
};

template <class F>
std::unique_ptr<Kernel> make_kernel(F function) {
  return std::make_unique<FunctionKernel<F>>(std::move(function));
}

}  // namespace reprise::kernels::cpu
