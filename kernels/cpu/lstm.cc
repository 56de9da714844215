// LSTM (Hochreiter and Schmidhuber 1997; with forget gates): gates i f g o,
//   c_t = f c_{t-1} + i g,  h_t = o tanh(c_t).
// saved holds i f g o after activation for all steps [T,B,4R], then c_t for all steps [T,B,R].

#include <cstring>

#include "kernels/cpu/channel_sum.h"
#include "kernels/cpu/ops.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/recurrent.h"
#include "kernels/cpu/vector_math.h"

namespace reprise::kernels::cpu {
namespace {

// One row: gates before activation become gates after it, c and h are made.
REPRISE_VECTOR void activate(float* gates, const float* c_before, float* c, float* h,
                             std::int64_t r) {
  for (std::int64_t k = 0; k < r; ++k) {
    const float i = sigmoid_f32(gates[k]);
    const float f = sigmoid_f32(gates[r + k]);
    const float g = tanh_f32(gates[2 * r + k]);
    const float o = sigmoid_f32(gates[3 * r + k]);
    const float cell = f * c_before[k] + i * g;
    gates[k] = i;
    gates[r + k] = f;
    gates[2 * r + k] = g;
    gates[3 * r + k] = o;
    c[k] = cell;
    h[k] = o * tanh_f32(cell);
  }
}

// One row: dh holds the gradient of h_t from step t + 1, dc that of c_t; dc becomes that of
// c_{t-1}.
REPRISE_VECTOR void gate_grads(const float* gates, const float* c, const float* c_before,
                               const float* dy, const float* dh, float* dc, float* dgates,
                               std::int64_t r) {
  for (std::int64_t k = 0; k < r; ++k) {
    const float i = gates[k];
    const float f = gates[r + k];
    const float g = gates[2 * r + k];
    const float o = gates[3 * r + k];
    const float tanh_c = tanh_f32(c[k]);
    const float of_h = dy[k] + dh[k];
    const float of_c = dc[k] + of_h * o * (1.0f - tanh_c * tanh_c);
    dgates[k] = of_c * g * i * (1.0f - i);
    dgates[r + k] = of_c * c_before[k] * f * (1.0f - f);
    dgates[2 * r + k] = of_c * i * (1.0f - g * g);
    dgates[3 * r + k] = of_h * tanh_c * o * (1.0f - o);
    dc[k] = of_c * f;
  }
}

class LstmForward final : public Kernel {
 public:
  explicit LstmForward(const RecurrentSizes& sizes) : sizes_(sizes), products_(sizes, true) {}

  [[nodiscard]] const RecurrentForward& products() const { return products_; }

  // x h0 c0 w_ih w_hh bias => y h_n c_n saved
  void execute(const Run& run) override {
    const auto& [steps, batch, input, hidden, gates] = sizes_;
    float* y = run.output<float>(0);
    float* saved = run.output<float>(3);  // gates first
    products_.inputs(run, run.input<float>(0), run.input<float>(3), run.input<float>(5), saved,
                     run.workspace);
    const std::int64_t step_elements = batch * hidden;
    for (std::int64_t t = 0; t < steps; ++t) {
      const float* h = t == 0 ? run.input<float>(1) : y + (t - 1) * step_elements;
      products_.step(run, h, run.input<float>(4), saved + t * batch * gates, run.workspace);
      activate_step(run, t);
    }
    copy_last_state(run);
  }

 private:
  void activate_step(const Run& run, std::int64_t t) const {
    const std::int64_t r = sizes_.hidden;
    const std::int64_t batch = sizes_.batch;
    float* gates = run.output<float>(3);
    float* cells = gates + sizes_.rows() * 4 * r;
    const float* before = t == 0 ? run.input<float>(2) : cells + (t - 1) * batch * r;
    parallel_ranges(batch, 20 * batch * r, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t row = t * batch + b;
        activate(gates + row * 4 * r, before + b * r, cells + row * r,
                 run.output<float>(0) + row * r, r);
      }
    });
  }

  void copy_last_state(const Run& run) const {
    const std::int64_t state = sizes_.batch * sizes_.hidden;
    const std::int64_t last = (sizes_.steps - 1) * state;
    const float* cells = run.output<float>(3) + sizes_.rows() * sizes_.gates;
    const auto bytes = static_cast<std::size_t>(state) * sizeof(float);
    std::memcpy(run.outputs[1], run.output<float>(0) + last, bytes);
    std::memcpy(run.outputs[2], cells + last, bytes);
  }

  RecurrentSizes sizes_;
  RecurrentForward products_;
};

class LstmBackward final : public Kernel {
 public:
  LstmBackward(const RecurrentSizes& sizes, bool accumulate)
      : sizes_(sizes), accumulate_(accumulate), products_(sizes, false, accumulate) {}

  [[nodiscard]] const RecurrentBackward& products() const { return products_; }
  void place(std::size_t dgates_at, std::size_t scratch_at) {
    dgates_at_ = dgates_at;
    scratch_at_ = scratch_at;
  }

  // x h0 c0 w_ih w_hh bias y h_n c_n saved dy dh_n dc_n acc_ih? acc_hh? acc_b?
  // => dx dh0 dc0 dw_ih dw_hh dbias
  void execute(const Run& run) override {
    const auto& [steps, batch, input, hidden, gates] = sizes_;
    float* dgates = run.scratch<float>(dgates_at_);
    void* scratch = run.workspace + scratch_at_;
    float* dh = run.output<float>(1);  // carried from step to step; at the end that of h0
    const auto state_bytes = static_cast<std::size_t>(batch * hidden) * sizeof(float);
    std::memcpy(dh, run.inputs[11], state_bytes);
    std::memcpy(run.outputs[2], run.inputs[12], state_bytes);
    for (std::int64_t t = steps - 1; t >= 0; --t) {
      step_grads(run, t, dgates);
      products_.step(run, dgates + t * batch * gates, run.input<float>(4), dh, scratch);
    }
    if (accumulate_) {
      start_sum(run.inputs[13], run.outputs[3], gates * input);
      start_sum(run.inputs[14], run.outputs[4], gates * hidden);
    }
    products_.inputs(run, run.input<float>(0), run.input<float>(3), dgates, run.output<float>(0),
                     run.output<float>(3), scratch);
    products_.hidden(run, run.input<float>(1), run.input<float>(6), dgates, run.output<float>(4),
                     scratch);
    channel_sums({.batch = sizes_.rows(), .channels = gates, .lanes = gates}, dgates,
                 accumulate_ ? run.input<float>(15) : nullptr, run.output<float>(5));
  }

 private:
  void step_grads(const Run& run, std::int64_t t, float* dgates) const {
    const std::int64_t r = sizes_.hidden;
    const std::int64_t batch = sizes_.batch;
    const float* gates = run.input<float>(9);
    const float* cells = gates + sizes_.rows() * 4 * r;
    const float* before = t == 0 ? run.input<float>(2) : cells + (t - 1) * batch * r;
    const float* dy = run.input<float>(10);
    parallel_ranges(batch, 20 * batch * r, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t b = begin; b < end; ++b) {
        const std::int64_t row = t * batch + b;
        gate_grads(gates + row * 4 * r, cells + row * r, before + b * r, dy + row * r,
                   run.output<float>(1) + b * r, run.output<float>(2) + b * r, dgates + row * 4 * r,
                   r);
      }
    });
  }

  RecurrentSizes sizes_;
  bool accumulate_;
  RecurrentBackward products_;
  std::size_t dgates_at_ = 0;
  std::size_t scratch_at_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> plan_lstm(Booking& b) {
  const RecurrentSizes sizes = recurrent_sizes(b.input(0), b.input(3), b.input(4));
  auto kernel = std::make_unique<LstmForward>(sizes);
  for (const std::size_t i : {0u, 1u, 2u, 5u}) b.require_plain(i);
  kernel->products().require(b, 3);
  for (std::size_t o = 0; o < 3; ++o) b.produce_plain(o);
  produce_saved(b, 3);
  b.workspace(kernel->products().scratch_bytes());
  b.flops(sizes.flops());
  return kernel;
}

std::unique_ptr<Kernel> plan_lstm_grad(Booking& b) {
  const RecurrentSizes sizes = recurrent_sizes(b.input(0), b.input(3), b.input(4));
  auto kernel = std::make_unique<LstmBackward>(sizes, b.node().accumulate);
  for (std::size_t i = 0; i < b.inputs(); ++i) {
    if (i != 9) b.require_plain(i);
  }
  require_saved(b, 9);
  for (const std::size_t o : {0u, 1u, 2u, 5u}) b.produce_plain(o);
  kernel->products().require(b, 3);
  if (b.node().accumulate) kernel->products().require_sums(b, 13);
  kernel->products().produce(b, 3);
  const std::size_t dgates =
      b.workspace(sizes.rows() * sizes.gates * static_cast<Bytes>(sizeof(float)));
  kernel->place(dgates, b.workspace(kernel->products().scratch_bytes()));
  b.flops(2.0 * sizes.flops());
  return kernel;
}

}  // namespace reprise::kernels::cpu
