// LSTM (Hochreiter and Schmidhuber 1997; with forget gates): gates i f g o,
//   c_t = f c_{t-1} + i g,  h_t = o tanh(c_t).
// The products write their gates straight into `saved`, whose rows are i f g o c.

#include "kernels/cuda/channel_sums.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/recurrent.h"

namespace reprise::kernels::cuda {
namespace {

constexpr auto kFloat = static_cast<Bytes>(sizeof(float));

// c_{t-1}: c0, or the last part of the rows of `saved`.
StateRows cell_before(const RecurrentSizes& s, const float* c0, const float* saved,
                      std::int64_t t) {
  if (t == 0) return {c0, s.hidden};
  return {saved + (t - 1) * 5 * s.state() + 4 * s.hidden, 5 * s.hidden};
}

class LstmForward final : public Kernel {
 public:
  LstmForward(Booking& b, const RecurrentSizes& s)
      : s_(s),
        from_x_(gates_from_x(s, 5 * s.hidden)),
        from_h_(gates_from_h(s, 5 * s.hidden)),
        workspace_(b, {from_x_, from_h_}) {}

  // x h0 c0 w_ih w_hh bias => y h_n c_n saved
  void execute(const Run& run) override {
    float* y = run.output(0);
    float* saved = run.output(3);
    gemm(run, workspace_, from_x_, run.input(0), run.input(3), saved);
    for (std::int64_t t = 0; t < s_.steps; ++t) {
      const bool last = t + 1 == s_.steps;
      const float* h = t == 0 ? run.input(1) : y + (t - 1) * s_.state();
      float* row = saved + t * 5 * s_.state();
      gemm(run, workspace_, from_h_, h, run.input(4), row, true);
      launch_lstm_gates(s_.step(), run.input(5), cell_before(s_, run.input(2), saved, t), row,
                        y + t * s_.state(), last ? run.output(1) : nullptr,
                        last ? run.output(2) : nullptr, run.stream());
    }
  }

 private:
  RecurrentSizes s_;
  GemmSizes from_x_, from_h_;
  GemmWorkspace workspace_;
};

class LstmBackward final : public Kernel {
 public:
  LstmBackward(Booking& b, const RecurrentSizes& s)
      : s_(s),
        accumulates_(b.accumulates()),
        to_h_(back_through(s.batch, s.gates, s.hidden, s.gates)),
        to_x_(back_through(s.rows(), s.gates, s.input, s.gates)),
        w_ih_(weight_grad(s.rows(), s.gates, s.input, s.gates)),
        w_hh_first_(weight_grad(s.batch, s.gates, s.hidden, s.gates)),
        w_hh_rest_(weight_grad(s.rows() - s.batch, s.gates, s.hidden, s.gates)),
        workspace_(b, {to_h_, to_x_, w_ih_, w_hh_first_, w_hh_rest_}),
        bias_({.outer = s.rows(), .channels = s.gates}),
        dgates_at_(b.workspace(s.rows() * s.gates * kFloat)),
        sums_at_(b.workspace(static_cast<Bytes>(bias_.scratch_bytes()))) {}

  // x h0 c0 w_ih w_hh bias y h_n c_n saved dy dh_n dc_n acc_ih? acc_hh? acc_b?
  // => dx dh0 dc0 dw_ih dw_hh dbias
  void execute(const Run& run) override {
    auto* dgates = run.scratch<float>(dgates_at_);
    state_grads(run, dgates);
    gemm(run, workspace_, to_x_, dgates, run.input(3), run.output(0));
    if (accumulates_) {
      copy_to_output(run, 13, 3, s_.gates * s_.input * kFloat);
      copy_to_output(run, 14, 4, s_.gates * s_.hidden * kFloat);
    }
    gemm(run, workspace_, w_ih_, dgates, run.input(0), run.output(3), accumulates_);
    gemm(run, workspace_, w_hh_first_, dgates, run.input(1), run.output(4), accumulates_);
    if (s_.steps > 1) {
      gemm(run, workspace_, w_hh_rest_, dgates + s_.batch * s_.gates, run.input(6), run.output(4),
           true);
    }
    launch_sums(bias_, 1.0F, dgates, accumulates_ ? run.input(15) : nullptr, run.output(5),
                run.scratch<double>(sums_at_), run.stream());
  }

 private:
  // dgates of all steps; the carried dh and dc end as those of h0 and c0.
  void state_grads(const Run& run, float* dgates) const {
    float* dh = run.output(1);
    float* dc = run.output(2);
    copy_to_output(run, 11, 1, s_.state() * kFloat);
    copy_to_output(run, 12, 2, s_.state() * kFloat);
    const float* saved = run.input(9);
    for (std::int64_t t = s_.steps - 1; t >= 0; --t) {
      float* of_step = dgates + t * s_.batch * s_.gates;
      launch_lstm_gate_grads(s_.step(), saved + t * 5 * s_.state(),
                             cell_before(s_, run.input(2), saved, t),
                             run.input(10) + t * s_.state(), dh, dc, of_step, run.stream());
      gemm(run, workspace_, to_h_, of_step, run.input(4), dh);
    }
  }

  RecurrentSizes s_;
  bool accumulates_;
  GemmSizes to_h_, to_x_, w_ih_, w_hh_first_, w_hh_rest_;
  GemmWorkspace workspace_;
  SumPlan bias_;
  std::size_t dgates_at_, sums_at_;
};

}  // namespace

std::unique_ptr<Kernel> plan_lstm(Booking& b) {
  const RecurrentSizes s = recurrent_sizes(b.input(0), b.input(3), b.input(4));
  b.flops(s.flops());
  b.launches(2 * s.steps + 1);
  return std::make_unique<LstmForward>(b, s);
}

std::unique_ptr<Kernel> plan_lstm_grad(Booking& b) {
  const RecurrentSizes s = recurrent_sizes(b.input(0), b.input(3), b.input(4));
  b.flops(2.0 * s.flops());
  b.launches(2 * s.steps + 6);
  return std::make_unique<LstmBackward>(b, s);
}

}  // namespace reprise::kernels::cuda
