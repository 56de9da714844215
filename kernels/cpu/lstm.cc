// LSTM (Hochreiter and Schmidhuber 1997; with forget gates): gates i f g o,
//   c_t = f c_{t-1} + i g,  h_t = o tanh(c_t).
// saved holds i f g o after activation for all steps [T,B,4R], then c_t for all steps [T,B,R].

#include <type_traits>

#include "kernels/cpu/channel_sum.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/recurrent.h"
#include "kernels/cpu/vector_math.h"

namespace reprise::kernels::cpu {
namespace {

// One row: gates before activation become gates after it in `kept`, c_before becomes c, which is
// kept too, and h is made.
template <class T>
[[gnu::always_inline]] inline void activate_of(const float* gates, T* kept, const float* c_before,
                                               float* c, T* kept_c, T* h, std::int64_t r) {
  for (std::int64_t k = 0; k < r; ++k) {
    const float i = sigmoid_f32(gates[k]);
    const float f = sigmoid_f32(gates[r + k]);
    const float g = tanh_f32(gates[2 * r + k]);
    const float o = sigmoid_f32(gates[3 * r + k]);
    const float cell = f * c_before[k] + i * g;
    kept[k] = stored<T>(i);
    kept[r + k] = stored<T>(f);
    kept[2 * r + k] = stored<T>(g);
    kept[3 * r + k] = stored<T>(o);
    c[k] = cell;
    kept_c[k] = stored<T>(cell);
    h[k] = stored<T>(o * tanh_f32(cell));
  }
}
REPRISE_VECTOR void activate(float* gates, const float* c_before, float* c, float* h,
                             std::int64_t r) {
  activate_of(gates, gates, c_before, c, c, h, r);
}
REPRISE_VECTOR void activate(const float* gates, Bf16* kept, float* c, Bf16* kept_c, Bf16* h,
                             std::int64_t r) {
  activate_of(gates, kept, c, c, kept_c, h, r);
}

// One row: dh holds the gradient of h_t from step t + 1, dc that of c_t; dc becomes that of
// c_{t-1}.
template <class T, class C>
[[gnu::always_inline]] inline void gate_grads_of(const T* gates, const T* c, const C* c_before,
                                                 const T* dy, const float* dh, float* dc, T* dgates,
                                                 std::int64_t r) {
  for (std::int64_t k = 0; k < r; ++k) {
    const float i = load(gates[k]);
    const float f = load(gates[r + k]);
    const float g = load(gates[2 * r + k]);
    const float o = load(gates[3 * r + k]);
    const float tanh_c = tanh_f32(load(c[k]));
    const float of_h = load(dy[k]) + dh[k];
    const float of_c = dc[k] + of_h * o * (1.0f - tanh_c * tanh_c);
    dgates[k] = stored<T>(of_c * g * i * (1.0f - i));
    dgates[r + k] = stored<T>(of_c * load(c_before[k]) * f * (1.0f - f));
    dgates[2 * r + k] = stored<T>(of_c * i * (1.0f - g * g));
    dgates[3 * r + k] = stored<T>(of_h * tanh_c * o * (1.0f - o));
    dc[k] = of_c * f;
  }
}
REPRISE_VECTOR void gate_grads(const float* gates, const float* c, const float* c_before,
                               const float* dy, const float* dh, float* dc, float* dgates,
                               std::int64_t r) {
  gate_grads_of(gates, c, c_before, dy, dh, dc, dgates, r);
}
REPRISE_VECTOR void gate_grads(const Bf16* gates, const Bf16* c, const Bf16* c_before,
                               const Bf16* dy, const float* dh, float* dc, Bf16* dgates,
                               std::int64_t r) {
  gate_grads_of(gates, c, c_before, dy, dh, dc, dgates, r);
}
REPRISE_VECTOR void gate_grads(const Bf16* gates, const Bf16* c, const float* c_before,
                               const Bf16* dy, const float* dh, float* dc, Bf16* dgates,
                               std::int64_t r) {
  gate_grads_of(gates, c, c_before, dy, dh, dc, dgates, r);
}

// T: float or Bf16. In f32 the gates are made where they are kept, and c is read where it was kept.
template <class T>
class LstmForward final : public Kernel {
  static constexpr bool kWide = std::is_same_v<T, float>;

 public:
  explicit LstmForward(const RecurrentSizes& sizes) : sizes_(sizes), products_(sizes, true) {}

  [[nodiscard]] const RecurrentForward& products() const { return products_; }
  // Of the gates before activation, where they are not made in `saved`.
  [[nodiscard]] Bytes gates_bytes() const {
    return kWide ? 0 : sizes_.rows() * sizes_.gates * static_cast<Bytes>(sizeof(float));
  }
  void place(std::size_t gates_at, std::size_t scratch_at) {
    gates_at_ = gates_at;
    scratch_at_ = scratch_at;
  }

  // x h0 c0 w_ih w_hh bias => y h_n c_n saved
  void execute(const Run& run) override {
    const std::int64_t state = sizes_.batch * sizes_.hidden;
    const T* y = run.output<T>(0);
    float* gates = gates_of(run);
    void* scratch = run.workspace + scratch_at_;
    products_.inputs(run, run.inputs[0], run.inputs[3], run.input<float>(5), gates, scratch);
    if constexpr (!kWide) copy_numbers(run.input<float>(2), run.output<float>(2), state);
    for (std::int64_t t = 0; t < sizes_.steps; ++t) {
      const T* h = t == 0 ? run.input<T>(1) : y + (t - 1) * state;
      products_.step(run, h, run.inputs[4], gates + t * sizes_.batch * sizes_.gates, scratch);
      activate_step(run, t);
    }
    const std::int64_t last = (sizes_.steps - 1) * state;
    copy_numbers(y + last, run.output<T>(1), state);
    if constexpr (kWide) copy_numbers(cells(run) + last, run.output<float>(2), state);
  }

 private:
  [[nodiscard]] float* gates_of(const Run& run) const {
    if constexpr (kWide) {
      return run.output<float>(3);
    } else {
      return run.scratch<float>(gates_at_);
    }
  }
  [[nodiscard]] T* cells(const Run& run) const {
    return run.output<T>(3) + sizes_.rows() * sizes_.gates;
  }

  void activate_step(const Run& run, std::int64_t t) const {
    const std::int64_t r = sizes_.hidden;
    const std::int64_t batch = sizes_.batch;
    float* gates = gates_of(run);
    T* kept = cells(run);
    parallel_ranges(batch, 20 * batch * r, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t row = t * batch + b;
        T* h = run.output<T>(0) + row * r;
        if constexpr (kWide) {
          const float* before = t == 0 ? run.input<float>(2) + b * r : kept + (row - batch) * r;
          activate(gates + row * 4 * r, before, kept + row * r, h, r);
        } else {
          activate(gates + row * 4 * r, run.output<T>(3) + row * 4 * r,
                   run.output<float>(2) + b * r, kept + row * r, h, r);
        }
      }
    });
  }

  RecurrentSizes sizes_;
  RecurrentForward products_;
  std::size_t gates_at_ = 0;
  std::size_t scratch_at_ = 0;
};

template <class T>
class LstmBackward final : public Kernel {
  static constexpr bool kWide = std::is_same_v<T, float>;

 public:
  struct Offsets {
    std::size_t dgates, dh, scratch;
  };

  LstmBackward(const RecurrentSizes& sizes, bool accumulate)
      : sizes_(sizes), accumulate_(accumulate), products_(sizes, false, accumulate) {}

  [[nodiscard]] const RecurrentBackward& products() const { return products_; }
  // Of dh as it is carried, where that is not the output of its own dtype.
  [[nodiscard]] Bytes dh_bytes() const {
    return kWide ? 0 : sizes_.batch * sizes_.hidden * static_cast<Bytes>(sizeof(float));
  }
  void place(const Offsets& offsets) { at_ = offsets; }

  // x h0 c0 w_ih w_hh bias y h_n c_n saved dy dh_n dc_n acc_ih? acc_hh? acc_b?
  // => dx dh0 dc0 dw_ih dw_hh dbias
  void execute(const Run& run) override {
    const auto& [steps, batch, input, hidden, gates, type] = sizes_;
    T* dgates = run.scratch<T>(at_.dgates);
    void* scratch = run.workspace + at_.scratch;
    float* dh = carried_dh(run);  // from step to step; at the end that of h0
    copy_numbers(run.input<T>(11), dh, batch * hidden);
    copy_numbers(run.input<float>(12), run.output<float>(2), batch * hidden);
    for (std::int64_t t = steps - 1; t >= 0; --t) {
      step_grads(run, t, dgates, dh);
      products_.step(run, dgates + t * batch * gates, run.inputs[4], dh, scratch);
    }
    if constexpr (!kWide) copy_numbers(dh, run.output<T>(1), batch * hidden);
    if (accumulate_) {
      start_sum(run.inputs[13], run.outputs[3], gates * input);
      start_sum(run.inputs[14], run.outputs[4], gates * hidden);
    }
    products_.inputs(run, run.inputs[0], run.inputs[3], dgates, run.outputs[0],
                     run.output<float>(3), scratch);
    products_.hidden(run, run.inputs[1], run.inputs[6], dgates, run.output<float>(4), scratch);
    channel_sums({.batch = sizes_.rows(), .channels = gates, .lanes = gates}, dgates,
                 accumulate_ ? run.input<float>(15) : nullptr, run.output<float>(5));
  }

 private:
  [[nodiscard]] float* carried_dh(const Run& run) const {
    if constexpr (kWide) {
      return run.output<float>(1);
    } else {
      return run.scratch<float>(at_.dh);
    }
  }

  void step_grads(const Run& run, std::int64_t t, T* dgates, const float* dh) const {
    const std::int64_t r = sizes_.hidden;
    const std::int64_t batch = sizes_.batch;
    const T* gates = run.input<T>(9);
    const T* cells = gates + sizes_.rows() * 4 * r;
    const T* dy = run.input<T>(10);
    parallel_ranges(batch, 20 * batch * r, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t row = t * batch + b;
        const auto with = [&](const auto* before) {
          gate_grads(gates + row * 4 * r, cells + row * r, before, dy + row * r, dh + b * r,
                     run.output<float>(2) + b * r, dgates + row * 4 * r, r);
        };
        if (t == 0) {
          with(run.input<float>(2) + b * r);
        } else {
          with(cells + (row - batch) * r);
        }
      }
    });
  }

  RecurrentSizes sizes_;
  bool accumulate_;
  RecurrentBackward products_;
  Offsets at_{};
};

}  // namespace

std::unique_ptr<Kernel> plan_lstm(Booking& b) {
  const RecurrentSizes sizes = recurrent_sizes(b.input(0), b.input(3), b.input(4));
  for (const std::size_t i : {0u, 1u, 2u, 5u}) b.require_plain(i);
  for (std::size_t o = 0; o < 3; ++o) b.produce_plain(o);
  produce_saved(b, 3);
  b.flops(sizes.flops());
  return with_storage(sizes.type, [&](auto number) -> std::unique_ptr<Kernel> {
    auto kernel = std::make_unique<LstmForward<decltype(number)>>(sizes);
    kernel->products().require(b, 3);
    const std::size_t gates = b.workspace(kernel->gates_bytes());
    kernel->place(gates, b.workspace(kernel->products().scratch_bytes()));
    return kernel;
  });
}

std::unique_ptr<Kernel> plan_lstm_grad(Booking& b) {
  const RecurrentSizes sizes = recurrent_sizes(b.input(0), b.input(3), b.input(4));
  for (std::size_t i = 0; i < b.inputs(); ++i) {
    if (i != 9) b.require_plain(i);
  }
  require_saved(b, 9);
  for (const std::size_t o : {0u, 1u, 2u, 5u}) b.produce_plain(o);
  b.flops(2.0 * sizes.flops());
  return with_storage(sizes.type, [&](auto number) -> std::unique_ptr<Kernel> {
    using T = decltype(number);
    auto kernel = std::make_unique<LstmBackward<T>>(sizes, b.node().accumulate);
    kernel->products().require(b, 3);
    if (b.node().accumulate) kernel->products().require_sums(b, 13);
    kernel->products().produce(b, 3);
    typename LstmBackward<T>::Offsets at{};
    at.dgates = b.workspace(sizes.rows() * sizes.gates * static_cast<Bytes>(sizeof(T)));
    at.dh = b.workspace(kernel->dh_bytes());
    at.scratch = b.workspace(kernel->products().scratch_bytes());
    kernel->place(at);
    return kernel;
  });
}

}  // namespace reprise::kernels::cpu
