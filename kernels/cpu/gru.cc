// GRU (Cho et al. 2014) with the reset gate after the product ("linear before reset"): gates u r n,
//   n = tanh(W_n x + b_n + r (U_n h + b_nh)),  h_t = (1 - u) n + u h_{t-1}.
// saved holds u r n after activation for all steps [T,B,3R], then U_n h + b_nh for all [T,B,R].

#include <cstring>

#include "kernels/cpu/channel_sum.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/recurrent.h"
#include "kernels/cpu/vector_math.h"

namespace reprise::kernels::cpu {
namespace {

// One row: `gates` holds those from x, `from_h` those from h without bias.
REPRISE_VECTOR void activate(float* gates, float* kept, const float* from_h, const float* bias_nh,
                             const float* h_before, float* h, std::int64_t r) {
  for (std::int64_t k = 0; k < r; ++k) {
    const float u = sigmoid_f32(gates[k] + from_h[k]);
    const float reset = sigmoid_f32(gates[r + k] + from_h[r + k]);
    const float recurrent = from_h[2 * r + k] + bias_nh[k];
    const float n = tanh_f32(gates[2 * r + k] + reset * recurrent);
    gates[k] = u;
    gates[r + k] = reset;
    gates[2 * r + k] = n;
    kept[k] = recurrent;
    h[k] = (1.0f - u) * n + u * h_before[k];
  }
}

// One row: the gradients of the gates towards x and towards h, which differ in n only. dh, the
// gradient of h_t from step t + 1, becomes the direct part of that of h_{t-1}.
REPRISE_VECTOR void gate_grads(const float* gates, const float* kept, const float* h_before,
                               const float* dy, float* dh, float* to_x, float* to_h,
                               std::int64_t r) {
  for (std::int64_t k = 0; k < r; ++k) {
    const float u = gates[k];
    const float reset = gates[r + k];
    const float n = gates[2 * r + k];
    const float of_h = dy[k] + dh[k];
    const float of_n = of_h * (1.0f - u) * (1.0f - n * n);
    const float of_u = of_h * (h_before[k] - n) * u * (1.0f - u);
    const float of_r = of_n * kept[k] * reset * (1.0f - reset);
    to_x[k] = of_u;
    to_x[r + k] = of_r;
    to_x[2 * r + k] = of_n;
    to_h[k] = of_u;
    to_h[r + k] = of_r;
    to_h[2 * r + k] = of_n * reset;
    dh[k] = of_h * u;
  }
}

class GruForward final : public Kernel {
 public:
  explicit GruForward(const RecurrentSizes& sizes) : sizes_(sizes), products_(sizes, false) {}

  [[nodiscard]] const RecurrentForward& products() const { return products_; }
  void place(std::size_t from_h_at, std::size_t scratch_at) {
    from_h_at_ = from_h_at;
    scratch_at_ = scratch_at;
  }

  // x h0 w_ih w_hh bias => y h_n saved
  void execute(const Run& run) override {
    float* y = run.output<float>(0);
    float* saved = run.output<float>(2);
    float* from_h = run.scratch<float>(from_h_at_);
    void* scratch = run.workspace + scratch_at_;
    products_.inputs(run, run.input<float>(0), run.input<float>(2), run.input<float>(4), saved,
                     scratch);
    const std::int64_t step_elements = sizes_.batch * sizes_.hidden;
    for (std::int64_t t = 0; t < sizes_.steps; ++t) {
      const float* h = t == 0 ? run.input<float>(1) : y + (t - 1) * step_elements;
      products_.step(run, h, run.input<float>(3), from_h, scratch);
      activate_step(run, t, h, from_h);
    }
    std::memcpy(run.outputs[1], y + (sizes_.steps - 1) * step_elements,
                static_cast<std::size_t>(step_elements) * sizeof(float));
  }

 private:
  void activate_step(const Run& run, std::int64_t t, const float* h, const float* from_h) const {
    const std::int64_t r = sizes_.hidden;
    const std::int64_t batch = sizes_.batch;
    const float* bias_nh = run.input<float>(4) + 3 * r;
    float* gates = run.output<float>(2);
    float* kept = gates + sizes_.rows() * 3 * r;
    parallel_ranges(batch, 20 * batch * r, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t row = t * batch + b;
        activate(gates + row * 3 * r, kept + row * r, from_h + b * 3 * r, bias_nh, h + b * r,
                 run.output<float>(0) + row * r, r);
      }
    });
  }

  RecurrentSizes sizes_;
  RecurrentForward products_;
  std::size_t from_h_at_ = 0;
  std::size_t scratch_at_ = 0;
};

class GruBackward final : public Kernel {
 public:
  struct Offsets {
    std::size_t to_x, to_h, sums, scratch;
  };

  GruBackward(const RecurrentSizes& sizes, bool accumulate)
      : sizes_(sizes), accumulate_(accumulate), products_(sizes, true, accumulate) {}

  [[nodiscard]] const RecurrentBackward& products() const { return products_; }
  void place(const Offsets& offsets) { at_ = offsets; }

  // x h0 w_ih w_hh bias y h_n saved dy dh_n acc_ih? acc_hh? acc_b? => dx dh0 dw_ih dw_hh dbias
  void execute(const Run& run) override {
    const auto& [steps, batch, input, hidden, gates] = sizes_;
    float* to_x = run.scratch<float>(at_.to_x);
    float* to_h = run.scratch<float>(at_.to_h);
    void* scratch = run.workspace + at_.scratch;
    float* dh = run.output<float>(1);  // carried from step to step; at the end that of h0
    std::memcpy(dh, run.inputs[9], static_cast<std::size_t>(batch * hidden) * sizeof(float));
    for (std::int64_t t = steps - 1; t >= 0; --t) {
      step_grads(run, t, to_x, to_h);
      products_.step(run, to_h + t * batch * gates, run.input<float>(3), dh, scratch);
    }
    if (accumulate_) {
      start_sum(run.inputs[10], run.outputs[2], gates * input);
      start_sum(run.inputs[11], run.outputs[3], gates * hidden);
    }
    products_.inputs(run, run.input<float>(0), run.input<float>(2), to_x, run.output<float>(0),
                     run.output<float>(2), scratch);
    products_.hidden(run, run.input<float>(1), run.input<float>(5), to_h, run.output<float>(3),
                     scratch);
    bias_grad(run, to_x, to_h);
  }

 private:
  void step_grads(const Run& run, std::int64_t t, float* to_x, float* to_h) const {
    const std::int64_t r = sizes_.hidden;
    const std::int64_t batch = sizes_.batch;
    const float* gates = run.input<float>(7);
    const float* kept = gates + sizes_.rows() * 3 * r;
    const float* before = t == 0 ? run.input<float>(1) : run.input<float>(5) + (t - 1) * batch * r;
    parallel_ranges(batch, 20 * batch * r, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t row = t * batch + b;
        gate_grads(gates + row * 3 * r, kept + row * r, before + b * r,
                   run.input<float>(8) + row * r, run.output<float>(1) + b * r, to_x + row * 3 * r,
                   to_h + row * 3 * r, r);
      }
    });
  }

  // bias[4R]: u r n of x, then n of h.
  void bias_grad(const Run& run, const float* to_x, const float* to_h) const {
    const std::int64_t r = sizes_.hidden;
    const float* sum = accumulate_ ? run.input<float>(12) : nullptr;
    float* out = run.output<float>(4);
    float* of_h = run.scratch<float>(at_.sums);
    const ChannelView view{.batch = sizes_.rows(), .channels = sizes_.gates, .lanes = sizes_.gates};
    channel_sums(view, to_h, nullptr, of_h);
    channel_sums(view, to_x, sum, out);
    for (std::int64_t k = 0; k < r; ++k) {
      out[3 * r + k] = (sum == nullptr ? 0.0f : sum[3 * r + k]) + of_h[2 * r + k];
    }
  }

  RecurrentSizes sizes_;
  bool accumulate_;
  RecurrentBackward products_;
  Offsets at_{};
};

}  // namespace

std::unique_ptr<Kernel> plan_gru(Booking& b) {
  const RecurrentSizes sizes = recurrent_sizes(b.input(0), b.input(2), b.input(3));
  auto kernel = std::make_unique<GruForward>(sizes);
  for (const std::size_t i : {0u, 1u, 4u}) b.require_plain(i);
  kernel->products().require(b, 2);
  for (std::size_t o = 0; o < 2; ++o) b.produce_plain(o);
  produce_saved(b, 2);
  const std::size_t from_h =
      b.workspace(sizes.batch * sizes.gates * static_cast<Bytes>(sizeof(float)));
  kernel->place(from_h, b.workspace(kernel->products().scratch_bytes()));
  b.flops(sizes.flops());
  return kernel;
}

std::unique_ptr<Kernel> plan_gru_grad(Booking& b) {
  const RecurrentSizes sizes = recurrent_sizes(b.input(0), b.input(2), b.input(3));
  auto kernel = std::make_unique<GruBackward>(sizes, b.node().accumulate);
  for (std::size_t i = 0; i < b.inputs(); ++i) {
    if (i != 7) b.require_plain(i);
  }
  require_saved(b, 7);
  for (const std::size_t o : {0u, 1u, 4u}) b.produce_plain(o);
  kernel->products().require(b, 2);
  if (b.node().accumulate) kernel->products().require_sums(b, 10);
  kernel->products().produce(b, 2);
  const Bytes gates = sizes.rows() * sizes.gates * static_cast<Bytes>(sizeof(float));
  GruBackward::Offsets at{};
  at.to_x = b.workspace(gates);
  at.to_h = b.workspace(gates);
  at.sums = b.workspace(sizes.gates * static_cast<Bytes>(sizeof(float)));
  at.scratch = b.workspace(kernel->products().scratch_bytes());
  kernel->place(at);
  b.flops(2.0 * sizes.flops());
  return kernel;
}

}  // namespace reprise::kernels::cpu
