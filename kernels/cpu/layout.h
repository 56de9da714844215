#pragma once

// Memory layouts: how the bytes of a value lie in the arena.
//
// A layout pairs two oneDNN descriptors over the same logical axes: `desc` says how the bytes lie,
// `plain` how the row-major bytes of the value would lie. The axes are those of the kernels and may
// differ from the value's shape (grouped weights have five). Two layouts with the same bytes are
// one, however their descriptors spell strides of axes of size 1.

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/types.h"
#include "oneapi/dnnl/dnnl.hpp"

namespace reprise::kernels::cpu {

using base::Bytes;
using Desc = dnnl::memory::desc;
using Dims = dnnl::memory::dims;
using LayoutId = base::Id<struct LayoutTag>;

[[nodiscard]] dnnl::memory::data_type data_type(graph::DType dtype);
// Row-major descriptor; a scalar gets one axis of size 1.
[[nodiscard]] Desc row_major(const Dims& dims, graph::DType dtype = graph::DType::kF32);
// "Whatever the primitive likes best."
[[nodiscard]] Desc any_layout(const Dims& dims, graph::DType dtype = graph::DType::kF32);
// The same places for elements of another dtype.
[[nodiscard]] Desc with_dtype(const Desc& desc, graph::DType dtype);
// True when both describe the same bytes.
[[nodiscard]] bool same_bytes(const Desc& a, const Desc& b);
// Bytes written for elements that do not exist (channels rounded up to a block).
[[nodiscard]] bool has_padding(const Desc& desc);

struct Layout {
  Desc desc;
  Desc plain;
  std::string name;  // "plain", or axes from the outermost, blocks with their size: "aBcd16b"
  Bytes bytes = 0;
  bool is_plain = false;
  // Forward primitive descriptor behind an opaque workspace, which its gradient needs again.
  std::shared_ptr<const void> forward{};
};

// [N, C, spatial...] seen as N x blocks x spatial x lanes: element (n, c, s) lies at
// ((n * blocks + c / lanes) * spatial + s) * lanes + c % lanes. Row-major has one lane, channels
// last one block, blocked layouts sit between.
struct ChannelView {
  std::int64_t batch = 1;
  std::int64_t channels = 1;
  std::int64_t blocks = 1;
  std::int64_t spatial = 1;
  std::int64_t lanes = 1;

  [[nodiscard]] std::int64_t elements() const { return batch * blocks * spatial * lanes; }
};

// Whether `layout` has that form; fills `view`.
[[nodiscard]] bool channel_view(const Layout& layout, ChannelView& view);
// Descriptor of [N, C, H, W] with channels blocked by `lanes` (1: row-major; C: channels last).
[[nodiscard]] Desc channel_desc(const Dims& dims, std::int64_t lanes,
                                graph::DType dtype = graph::DType::kF32);

// The layouts of one program; each is stored once.
class LayoutTable {
 public:
  LayoutId plain(const graph::Shape& shape, graph::DType dtype);
  // Layout of a value of this shape; `plain_form` has the axes of `desc`.
  LayoutId of(const graph::Shape& shape, graph::DType dtype, const Desc& desc,
              const Desc& plain_form);
  // Bytes that only the gradient of their producer understands.
  LayoutId workspace(Bytes bytes, const Desc& desc, std::shared_ptr<const void> forward);

  [[nodiscard]] const Layout& operator[](LayoutId id) const { return layouts_[id.index()]; }

 private:
  LayoutId add(const std::string& key, Layout layout);

  std::deque<Layout> layouts_;  // references stay valid
  std::unordered_map<std::string, LayoutId> known_;
};

}  // namespace reprise::kernels::cpu
