// GRU (Cho et al. 2014) with the reset gate after the product ("linear before reset"): gates u r n,
//   n = tanh(W_n x + b_n + r (U_n h + b_nh)),  h_t = (1 - u) n + u h_{t-1}.
// saved holds u r n after activation for all steps [T,B,3R], then U_n h + b_nh for all [T,B,R].

#include <type_traits>

#include "kernels/cpu/channel_sum.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/recurrent.h"
#include "kernels/cpu/vector_math.h"

namespace reprise::kernels::cpu {
namespace {

// One row: `gates` holds those from x, `from_h` those from h without bias; what is kept are the
// gates after activation and `recurrent`.
template <class T>
[[gnu::always_inline]] inline void activate_of(const float* gates, T* kept, T* recurrent,
                                               const float* from_h, const float* bias_nh,
                                               const T* h_before, T* h, std::int64_t r) {
  for (std::int64_t k = 0; k < r; ++k) {
    const float u = sigmoid_f32(gates[k] + from_h[k]);
    const float reset = sigmoid_f32(gates[r + k] + from_h[r + k]);
    const float of_h = from_h[2 * r + k] + bias_nh[k];
    const float n = tanh_f32(gates[2 * r + k] + reset * of_h);
    kept[k] = stored<T>(u);
    kept[r + k] = stored<T>(reset);
    kept[2 * r + k] = stored<T>(n);
    recurrent[k] = stored<T>(of_h);
    h[k] = stored<T>((1.0f - u) * n + u * load(h_before[k]));
  }
}
REPRISE_VECTOR void activate(float* gates, float* recurrent, const float* from_h,
                             const float* bias_nh, const float* h_before, float* h,
                             std::int64_t r) {
  activate_of(gates, gates, recurrent, from_h, bias_nh, h_before, h, r);
}
REPRISE_VECTOR void activate(const float* gates, Bf16* kept, Bf16* recurrent, const float* from_h,
                             const float* bias_nh, const Bf16* h_before, Bf16* h, std::int64_t r) {
  activate_of(gates, kept, recurrent, from_h, bias_nh, h_before, h, r);
}

// One row: the gradients of the gates towards x and towards h, which differ in n only. dh, the
// gradient of h_t from step t + 1, becomes the direct part of that of h_{t-1}.
template <class T>
[[gnu::always_inline]] inline void gate_grads_of(const T* gates, const T* kept, const T* h_before,
                                                 const T* dy, float* dh, T* to_x, T* to_h,
                                                 std::int64_t r) {
  for (std::int64_t k = 0; k < r; ++k) {
    const float u = load(gates[k]);
    const float reset = load(gates[r + k]);
    const float n = load(gates[2 * r + k]);
    const float of_h = load(dy[k]) + dh[k];
    const float of_n = of_h * (1.0f - u) * (1.0f - n * n);
    const float of_u = of_h * (load(h_before[k]) - n) * u * (1.0f - u);
    const float of_r = of_n * load(kept[k]) * reset * (1.0f - reset);
    to_x[k] = stored<T>(of_u);
    to_x[r + k] = stored<T>(of_r);
    to_x[2 * r + k] = stored<T>(of_n);
    to_h[k] = stored<T>(of_u);
    to_h[r + k] = stored<T>(of_r);
    to_h[2 * r + k] = stored<T>(of_n * reset);
    dh[k] = of_h * u;
  }
}
REPRISE_VECTOR void gate_grads(const float* gates, const float* kept, const float* h_before,
                               const float* dy, float* dh, float* to_x, float* to_h,
                               std::int64_t r) {
  gate_grads_of(gates, kept, h_before, dy, dh, to_x, to_h, r);
}
REPRISE_VECTOR void gate_grads(const Bf16* gates, const Bf16* kept, const Bf16* h_before,
                               const Bf16* dy, float* dh, Bf16* to_x, Bf16* to_h, std::int64_t r) {
  gate_grads_of(gates, kept, h_before, dy, dh, to_x, to_h, r);
}

// T: float or Bf16. In f32 the gates are made where they are kept.
template <class T>
class GruForward final : public Kernel {
  static constexpr bool kWide = std::is_same_v<T, float>;

 public:
  struct Offsets {
    std::size_t gates, from_h, scratch;
  };

  explicit GruForward(const RecurrentSizes& sizes) : sizes_(sizes), products_(sizes, false) {}

  [[nodiscard]] const RecurrentForward& products() const { return products_; }
  // Of the gates before activation, where they are not made in `saved`.
  [[nodiscard]] Bytes gates_bytes() const {
    return kWide ? 0 : sizes_.rows() * sizes_.gates * static_cast<Bytes>(sizeof(float));
  }
  void place(const Offsets& offsets) { at_ = offsets; }

  // x h0 w_ih w_hh bias => y h_n saved
  void execute(const Run& run) override {
    T* y = run.output<T>(0);
    float* gates = gates_of(run);
    float* from_h = run.scratch<float>(at_.from_h);
    void* scratch = run.workspace + at_.scratch;
    products_.inputs(run, run.inputs[0], run.inputs[2], run.input<float>(4), gates, scratch);
    const std::int64_t state = sizes_.batch * sizes_.hidden;
    for (std::int64_t t = 0; t < sizes_.steps; ++t) {
      const T* h = t == 0 ? run.input<T>(1) : y + (t - 1) * state;
      products_.step(run, h, run.inputs[3], from_h, scratch);
      activate_step(run, t, h, from_h);
    }
    copy_numbers(y + (sizes_.steps - 1) * state, run.output<T>(1), state);
  }

 private:
  [[nodiscard]] float* gates_of(const Run& run) const {
    if constexpr (kWide) {
      return run.output<float>(2);
    } else {
      return run.scratch<float>(at_.gates);
    }
  }

  void activate_step(const Run& run, std::int64_t t, const T* h, const float* from_h) const {
    const std::int64_t r = sizes_.hidden;
    const std::int64_t batch = sizes_.batch;
    const float* bias_nh = run.input<float>(4) + 3 * r;
    float* gates = gates_of(run);
    T* kept = run.output<T>(2);
    T* recurrent = kept + sizes_.rows() * 3 * r;
    parallel_ranges(batch, 20 * batch * r, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t row = t * batch + b;
        T* y = run.output<T>(0) + row * r;
        if constexpr (kWide) {
          activate(gates + row * 3 * r, recurrent + row * r, from_h + b * 3 * r, bias_nh, h + b * r,
                   y, r);
        } else {
          activate(gates + row * 3 * r, kept + row * 3 * r, recurrent + row * r, from_h + b * 3 * r,
                   bias_nh, h + b * r, y, r);
        }
      }
    });
  }

  RecurrentSizes sizes_;
  RecurrentForward products_;
  Offsets at_{};
};

template <class T>
class GruBackward final : public Kernel {
  static constexpr bool kWide = std::is_same_v<T, float>;

 public:
  struct Offsets {
    std::size_t to_x, to_h, sums, dh, scratch;
  };

  GruBackward(const RecurrentSizes& sizes, bool accumulate)
      : sizes_(sizes), accumulate_(accumulate), products_(sizes, true, accumulate) {}

  [[nodiscard]] const RecurrentBackward& products() const { return products_; }
  // Of dh as it is carried, where that is not the output of its own dtype.
  [[nodiscard]] Bytes dh_bytes() const {
    return kWide ? 0 : sizes_.batch * sizes_.hidden * static_cast<Bytes>(sizeof(float));
  }
  void place(const Offsets& offsets) { at_ = offsets; }

  // x h0 w_ih w_hh bias y h_n saved dy dh_n acc_ih? acc_hh? acc_b? => dx dh0 dw_ih dw_hh dbias
  void execute(const Run& run) override {
    const auto& [steps, batch, input, hidden, gates, type] = sizes_;
    T* to_x = run.scratch<T>(at_.to_x);
    T* to_h = run.scratch<T>(at_.to_h);
    void* scratch = run.workspace + at_.scratch;
    float* dh = carried_dh(run);  // from step to step; at the end that of h0
    copy_numbers(run.input<T>(9), dh, batch * hidden);
    for (std::int64_t t = steps - 1; t >= 0; --t) {
      step_grads(run, t, to_x, to_h, dh);
      products_.step(run, to_h + t * batch * gates, run.inputs[3], dh, scratch);
    }
    if constexpr (!kWide) copy_numbers(dh, run.output<T>(1), batch * hidden);
    if (accumulate_) {
      start_sum(run.inputs[10], run.outputs[2], gates * input);
      start_sum(run.inputs[11], run.outputs[3], gates * hidden);
    }
    products_.inputs(run, run.inputs[0], run.inputs[2], to_x, run.outputs[0], run.output<float>(2),
                     scratch);
    products_.hidden(run, run.inputs[1], run.inputs[5], to_h, run.output<float>(3), scratch);
    bias_grad(run, to_x, to_h);
  }

 private:
  [[nodiscard]] float* carried_dh(const Run& run) const {
    if constexpr (kWide) {
      return run.output<float>(1);
    } else {
      return run.scratch<float>(at_.dh);
    }
  }

  void step_grads(const Run& run, std::int64_t t, T* to_x, T* to_h, float* dh) const {
    const std::int64_t r = sizes_.hidden;
    const std::int64_t batch = sizes_.batch;
    const T* gates = run.input<T>(7);
    const T* kept = gates + sizes_.rows() * 3 * r;
    const T* before = t == 0 ? run.input<T>(1) : run.input<T>(5) + (t - 1) * batch * r;
    parallel_ranges(batch, 20 * batch * r, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t row = t * batch + b;
        gate_grads(gates + row * 3 * r, kept + row * r, before + b * r, run.input<T>(8) + row * r,
                   dh + b * r, to_x + row * 3 * r, to_h + row * 3 * r, r);
      }
    });
  }

  // bias[4R]: u r n of x, then n of h.
  void bias_grad(const Run& run, const T* to_x, const T* to_h) const {
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
  for (const std::size_t i : {0u, 1u, 4u}) b.require_plain(i);
  for (std::size_t o = 0; o < 2; ++o) b.produce_plain(o);
  produce_saved(b, 2);
  b.flops(sizes.flops());
  return with_storage(sizes.type, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    auto kernel = std::make_unique<GruForward<T>>(sizes);
    kernel->products().require(b, 2);
    typename GruForward<T>::Offsets at{};
    at.gates = b.workspace(kernel->gates_bytes());
    at.from_h = b.workspace(sizes.batch * sizes.gates * static_cast<Bytes>(sizeof(float)));
    at.scratch = b.workspace(kernel->products().scratch_bytes());
    kernel->place(at);
    return kernel;
  });
}

std::unique_ptr<Kernel> plan_gru_grad(Booking& b) {
  const RecurrentSizes sizes = recurrent_sizes(b.input(0), b.input(2), b.input(3));
  for (std::size_t i = 0; i < b.inputs(); ++i) {
    if (i != 7) b.require_plain(i);
  }
  require_saved(b, 7);
  for (const std::size_t o : {0u, 1u, 4u}) b.produce_plain(o);
  b.flops(2.0 * sizes.flops());
  return with_storage(sizes.type, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    auto kernel = std::make_unique<GruBackward<T>>(sizes, b.node().accumulate);
    kernel->products().require(b, 2);
    if (b.node().accumulate) kernel->products().require_sums(b, 10);
    kernel->products().produce(b, 2);
    const Bytes gates = sizes.rows() * sizes.gates * static_cast<Bytes>(sizeof(T));
    typename GruBackward<T>::Offsets at{};
    at.to_x = b.workspace(gates);
    at.to_h = b.workspace(gates);
    at.sums = b.workspace(sizes.gates * static_cast<Bytes>(sizeof(float)));
    at.dh = b.workspace(kernel->dh_bytes());
    at.scratch = b.workspace(kernel->products().scratch_bytes());
    kernel->place(at);
    return kernel;
  });
}

}  // namespace reprise::kernels::cpu
