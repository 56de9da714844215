#include "kernels/cpu/layout.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.h"

namespace reprise::kernels::cpu {
namespace {

// One loop over memory: `extent` steps of `stride` elements along logical axis `dim`.
struct Axis {
  std::int64_t dim = 0;
  std::int64_t extent = 1;
  std::int64_t stride = 1;
  friend bool operator==(const Axis&, const Axis&) = default;
};

std::int64_t padded(const Desc& desc, int dim) {
  return desc.data.padded_dims[dim];
}

// The loops over the bytes of a blocked-kind descriptor from the outermost, without loops of one
// step and with neighbours of one axis joined.
std::vector<Axis> memory_axes(const Desc& desc) {
  const dnnl_memory_desc_t& md = desc.data;
  const dnnl_blocking_desc_t& blocking = md.format_desc.blocking;
  std::vector<Axis> axes;
  std::vector<std::int64_t> block(static_cast<std::size_t>(md.ndims), 1);
  std::int64_t stride = 1;
  for (int i = blocking.inner_nblks - 1; i >= 0; --i) {
    const int dim = static_cast<int>(blocking.inner_idxs[i]);
    axes.push_back({dim, blocking.inner_blks[i], stride});
    stride *= blocking.inner_blks[i];
    block[static_cast<std::size_t>(dim)] *= blocking.inner_blks[i];
  }
  for (int d = md.ndims - 1; d >= 0; --d) {
    axes.push_back({d, padded(desc, d) / block[static_cast<std::size_t>(d)], blocking.strides[d]});
  }
  std::erase_if(axes, [](const Axis& axis) { return axis.extent == 1; });
  std::stable_sort(axes.begin(), axes.end(),
                   [](const Axis& a, const Axis& b) { return a.stride > b.stride; });
  std::vector<Axis> joined;
  for (const Axis& axis : axes) {
    if (!joined.empty() && joined.back().dim == axis.dim &&
        joined.back().stride == axis.stride * axis.extent) {
      joined.back().extent *= axis.extent;
      joined.back().stride = axis.stride;
    } else {
      joined.push_back(axis);
    }
  }
  return joined;
}

bool is_blocked_kind(const Desc& desc) {
  return desc.data.format_kind == dnnl_blocked;
}

std::string layout_name(const Desc& desc) {
  std::vector<Axis> axes = memory_axes(desc);
  std::array<int, DNNL_MAX_NDIMS> splits{};
  for (const Axis& axis : axes) ++splits[static_cast<std::size_t>(axis.dim)];
  std::array<bool, DNNL_MAX_NDIMS> seen{};
  std::string name;
  std::int64_t dense = 1;
  bool is_dense = true;
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    is_dense = is_dense && axis->stride == dense;
    dense = axis->stride * axis->extent;
  }
  for (const Axis& axis : axes) {
    const auto dim = static_cast<std::size_t>(axis.dim);
    const bool inner = seen[dim];
    if (inner) name += std::to_string(axis.extent);
    name += static_cast<char>((splits[dim] > 1 && !inner ? 'A' : 'a') + static_cast<int>(axis.dim));
    seen[dim] = true;
    if (!is_dense) name += fmt::format(".{}.", axis.stride);
  }
  return name;
}

template <class T>
void append(std::string& key, const T& value) {
  key.append(reinterpret_cast<const char*>(&value), sizeof(value));
}

void append_desc(std::string& key, const Desc& desc) {
  append(key, desc.data.ndims);
  for (int d = 0; d < desc.data.ndims; ++d) {
    append(key, desc.data.dims[d]);
    append(key, desc.data.padded_dims[d]);
  }
  for (const Axis& axis : memory_axes(desc)) append(key, axis);
}

}  // namespace

dnnl::memory::data_type data_type(graph::DType dtype) {
  switch (dtype) {
    case graph::DType::kF32:
      return dnnl::memory::data_type::f32;
    case graph::DType::kI32:
      return dnnl::memory::data_type::s32;
    case graph::DType::kU8:
      return dnnl::memory::data_type::u8;
    case graph::DType::kBF16:
      return dnnl::memory::data_type::bf16;
  }
  return dnnl::memory::data_type::undef;
}

Desc row_major(const Dims& dims, graph::DType dtype) {
  Dims axes = dims.empty() ? Dims{1} : dims;
  Dims strides(axes.size(), 1);
  for (std::size_t d = axes.size() - 1; d > 0; --d) {
    strides[d - 1] = strides[d] * std::max<std::int64_t>(axes[d], 1);
  }
  return {axes, data_type(dtype), strides};
}

Desc any_layout(const Dims& dims, graph::DType dtype) {
  return {dims, data_type(dtype), dnnl::memory::format_tag::any};
}

Desc with_dtype(const Desc& desc, graph::DType dtype) {
  Desc changed = desc;
  changed.data.data_type = dnnl::memory::convert_to_c(data_type(dtype));
  return changed;
}

bool same_bytes(const Desc& a, const Desc& b) {
  if (a == b) return true;
  if (!is_blocked_kind(a) || !is_blocked_kind(b)) return false;
  if (a.data.ndims != b.data.ndims || a.data.data_type != b.data.data_type) return false;
  if (a.data.offset0 != b.data.offset0) return false;
  if (a.data.extra.flags != 0 || b.data.extra.flags != 0) return false;
  for (int d = 0; d < a.data.ndims; ++d) {
    if (a.data.dims[d] != b.data.dims[d] || padded(a, d) != padded(b, d)) return false;
  }
  return memory_axes(a) == memory_axes(b);
}

bool has_padding(const Desc& desc) {
  for (int d = 0; d < desc.data.ndims; ++d) {
    if (desc.data.dims[d] != padded(desc, d)) return true;
  }
  return false;
}

bool channel_view(const Layout& layout, ChannelView& view) {
  const dnnl_memory_desc_t& md = layout.desc.data;
  if (!is_blocked_kind(layout.desc) || md.ndims < 2) return false;
  view = {};
  view.batch = md.dims[0];
  view.channels = md.dims[1];
  for (int d = 2; d < md.ndims; ++d) view.spatial *= md.dims[d];
  if (layout.is_plain) {
    // Without spatial axes, one lane a channel is the same bytes and the better loop.
    view.lanes = md.ndims == 2 ? view.channels : 1;
    view.blocks = md.ndims == 2 ? 1 : view.channels;
    return true;
  }
  Dims dims(md.dims, md.dims + md.ndims);
  for (const std::int64_t lanes : {std::int64_t{16}, std::int64_t{8}, view.channels}) {
    Desc blocked = channel_desc(dims, lanes);
    blocked.data.data_type = md.data_type;
    if (same_bytes(layout.desc, blocked)) {
      view.lanes = lanes;
      view.blocks = (view.channels + lanes - 1) / lanes;
      return true;
    }
  }
  return false;
}

Desc channel_desc(const Dims& dims, std::int64_t lanes, graph::DType dtype) {
  using Tag = dnnl::memory::format_tag;
  if (lanes == 1) return row_major(dims, dtype);
  Tag tag = Tag::undef;
  if (lanes == 8 || lanes == 16) {
    switch (dims.size()) {
      case 3:
        tag = lanes == 8 ? Tag::nCw8c : Tag::nCw16c;
        break;
      case 4:
        tag = lanes == 8 ? Tag::nChw8c : Tag::nChw16c;
        break;
      case 5:
        tag = lanes == 8 ? Tag::nCdhw8c : Tag::nCdhw16c;
        break;
      default:
        return row_major(dims, dtype);
    }
    return {dims, data_type(dtype), tag};
  }
  Dims strides(dims.size(), 1);  // channels last
  std::int64_t stride = dims[1];
  for (std::size_t d = dims.size() - 1; d >= 2; --d) {
    strides[d] = stride;
    stride *= dims[d];
  }
  strides[0] = stride;
  return {dims, data_type(dtype), strides};
}

LayoutId LayoutTable::plain(const graph::Shape& shape, graph::DType dtype) {
  std::string key = "p";
  append(key, dtype);
  for (const graph::Dim dim : shape) append(key, dim);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  if (shape.size() > 6) {
    throw base::input_error("shape {} has {} axes; the CPU backend takes at most 6",
                            graph::shape_text(shape), shape.size());
  }
  const Desc desc = row_major(shape, dtype);
  return add(key, {.desc = desc,
                   .plain = desc,
                   .name = "plain",
                   .bytes = graph::element_count(shape) * graph::dtype_bytes(dtype),
                   .is_plain = true});
}

LayoutId LayoutTable::of(const graph::Shape& shape, graph::DType dtype, const Desc& desc,
                         const Desc& plain_form) {
  if (same_bytes(desc, plain_form)) return plain(shape, dtype);
  REPRISE_CHECK(is_blocked_kind(desc), "a value of shape {} got an opaque layout",
                graph::shape_text(shape));
  std::string key = "b";
  append(key, dtype);
  append(key, shape.size());
  for (const graph::Dim dim : shape) append(key, dim);
  append_desc(key, desc);
  append_desc(key, plain_form);
  if (const auto known = known_.find(key); known != known_.end()) return known->second;
  return add(key, {.desc = desc,
                   .plain = plain_form,
                   .name = layout_name(desc),
                   .bytes = static_cast<Bytes>(desc.get_size())});
}

LayoutId LayoutTable::workspace(Bytes bytes, const Desc& desc,
                                std::shared_ptr<const void> forward) {
  const std::string key = fmt::format("w{}", layouts_.size());
  return add(key, {.desc = desc,
                   .plain = desc,
                   .name = "workspace",
                   .bytes = bytes,
                   .forward = std::move(forward)});
}

LayoutId LayoutTable::add(const std::string& key, Layout layout) {
  const LayoutId id(layouts_.size());
  layouts_.push_back(std::move(layout));
  known_.emplace(key, id);
  return id;
}

}  // namespace reprise::kernels::cpu
