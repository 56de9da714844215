#include "kernels/cpu/parted_grad_weight.h"

#include <algorithm>
#include <exception>
#include <optional>

#include "kernels/cpu/parallel.h"
#include "kernels/cpu/pointwise.h"
#include "kernels/cpu/primitive.h"

namespace reprise::kernels::cpu {
namespace {

// While it lives, primitives are made for one thread.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  int before_;
};

std::int64_t image_stride(const Desc& desc) {
  return desc.data.format_desc.blocking.strides[0];
}

// The layout for another number of images, where these come one behind the other.
std::optional<Desc> with_images(const Desc& desc, std::int64_t images) {
  const dnnl_memory_desc_t& md = desc.data;
  if (md.format_kind != dnnl_blocked) return std::nullopt;
  std::int64_t of_one = 1;
  for (int d = 1; d < md.ndims; ++d) of_one *= md.padded_dims[d];
  if (md.padded_dims[0] != md.dims[0] || image_stride(desc) != of_one) return std::nullopt;
  Desc changed = desc;
  changed.data.dims[0] = changed.data.padded_dims[0] = images;
  return changed;
}

struct Plan {
  std::int64_t images, parts;
  std::int64_t x_stride, dy_stride;  // bytes of an image
  std::int64_t elements;             // of dw as it lies
  std::size_t sums_at, sum_bytes;    // of the parts that are not made in the output
  std::size_t scratch_at, scratch_bytes;
};

class PartedGradWeight final : public Kernel {
 public:
  PartedGradWeight(const Plan& plan, bool accumulate) : plan_(plan), accumulate_(accumulate) {}

  void add(const GradWeightDesc& pd) {
    std::vector<Primitive::Argument> arguments{{DNNL_ARG_SRC, pd.src_desc()},
                                               {DNNL_ARG_DIFF_DST, pd.diff_dst_desc()},
                                               {DNNL_ARG_DIFF_WEIGHTS, pd.diff_weights_desc()}};
    if (pd.scratchpad_desc().get_size() > 0)
      arguments.push_back({DNNL_ARG_SCRATCHPAD, pd.scratchpad_desc()});
    primitives_.emplace_back(dnnl::convolution_backward_weights(pd), arguments);
    has_scratch_.push_back(arguments.size() > 3);
    faults_.emplace_back();
  }

  void execute(const Run& run) override {
    parallel_parts(plan_.parts, plan_.images,
                   [&](std::int64_t part, std::int64_t begin, std::int64_t /*end*/) {
                     try {
                       run_part(run, static_cast<std::size_t>(part), begin);
                     } catch (...) {  // must not leave the parallel region
                       faults_[static_cast<std::size_t>(part)] = std::current_exception();
                     }
                   });
    for (std::exception_ptr& fault : faults_)
      if (fault) std::rethrow_exception(std::exchange(fault, nullptr));
    float* sum = sum_of(run, 0);
    for (std::size_t part = 1; part < primitives_.size(); ++part)
      add_arrays(sum, sum_of(run, part), sum, plan_.elements);
    if (accumulate_) add_arrays(run.input<float>(2), sum, run.output<float>(0), plan_.elements);
  }

 private:
  // Where a part is made: the first in the output, unless the running sum lies there.
  [[nodiscard]] float* sum_of(const Run& run, std::size_t part) const {
    if (part == 0 && !accumulate_) return run.output<float>(0);
    return run.scratch<float>(plan_.sums_at + (part - (accumulate_ ? 0 : 1)) * plan_.sum_bytes);
  }

  void run_part(const Run& run, std::size_t part, std::int64_t first_image) {
    Primitive& primitive = primitives_[part];
    primitive.bind(0, run.inputs[0] + first_image * plan_.x_stride);
    primitive.bind(1, run.inputs[1] + first_image * plan_.dy_stride);
    primitive.bind(2, sum_of(run, part));
    if (has_scratch_[part])
      primitive.bind(3, run.workspace + plan_.scratch_at + part * plan_.scratch_bytes);
    primitive.execute(run);
  }

  Plan plan_;
  bool accumulate_;
  std::vector<Primitive> primitives_;  // one a part
  std::vector<bool> has_scratch_;
  std::vector<std::exception_ptr> faults_;
};

}  // namespace

std::unique_ptr<Kernel> plan_parted_grad_weight(
    Booking& b, const Dims& weight_axes,
    const std::function<GradWeightDesc(std::int64_t images)>& describe) {
  const std::int64_t images = b.input(0).shape[0];
  const std::int64_t parts = std::min<std::int64_t>(images, omp_get_max_threads());
  if (parts < 2) return nullptr;
  const OneThread one_thread;
  std::vector<GradWeightDesc> descs;
  for (std::int64_t part = 0; part < parts; ++part)
    descs.push_back(describe(images * (part + 1) / parts - images * part / parts));
  const auto x = with_images(descs[0].src_desc(), images);
  const auto dy = with_images(descs[0].diff_dst_desc(), images);
  const Desc dw = descs[0].diff_weights_desc();
  if (!x || !dy) return nullptr;
  std::size_t scratch_bytes = 0;
  for (const GradWeightDesc& pd : descs) {
    if (with_images(pd.src_desc(), images) != x || with_images(pd.diff_dst_desc(), images) != dy ||
        pd.diff_weights_desc() != dw) {
      return nullptr;
    }
    scratch_bytes = std::max(scratch_bytes, pd.scratchpad_desc().get_size());
  }
  const bool accumulate = b.node().accumulate;
  b.require(0, *x);
  b.require(1, *dy);
  if (accumulate) b.require(2, dw, row_major(weight_axes));
  b.produce(0, dw, row_major(weight_axes));
  const Bytes element = graph::dtype_bytes(b.input(0).dtype);
  const auto rounded = [](std::size_t bytes) {
    return base::align_up(static_cast<Bytes>(bytes), graph::kArenaAlignment);
  };
  Plan plan{.images = images,
            .parts = parts,
            .x_stride = image_stride(*x) * element,
            .dy_stride = image_stride(*dy) * element,
            .elements = static_cast<std::int64_t>(dw.get_size() / sizeof(float)),
            .sums_at = 0,
            .sum_bytes = static_cast<std::size_t>(rounded(dw.get_size())),
            .scratch_at = 0,
            .scratch_bytes = static_cast<std::size_t>(rounded(scratch_bytes))};
  const std::int64_t sums = parts - (accumulate ? 0 : 1);
  plan.sums_at = b.workspace(sums * static_cast<Bytes>(plan.sum_bytes));
  plan.scratch_at = b.workspace(parts * static_cast<Bytes>(plan.scratch_bytes));
  auto kernel = std::make_unique<PartedGradWeight>(plan, accumulate);
  for (const GradWeightDesc& pd : descs) kernel->add(pd);
  return kernel;
}

}  // namespace reprise::kernels::cpu
