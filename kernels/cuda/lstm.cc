// LSTM (Hochreiter and Schmidhuber 1997; with forget gates): gates i f g o,
//   c_t = f c_{t-1} + i g,  h_t = o tanh(c_t).
// The products of f32 write their gates straight into `saved`, whose rows are i f g o c. Those of
// bf16 write them as f32 into the workspace, and c goes from step to step as f32 too: rounded are
// what is saved, h, and the gates' gradients, never what is added up.

#include "kernels/cuda/channel_sums.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/element_type.h"
#include "kernels/cuda/ops.h"
#include "kernels/cuda/recurrent.h"

namespace reprise::kernels::cuda {
namespace {

constexpr auto kFloat = static_cast<Bytes>(sizeof(float));

template <class T>
constexpr bool kSavesFloats = std::is_same_v<T, float>;

template <class T>
class LstmForward final : public Kernel {
 public:
  LstmForward(Booking& b, const RecurrentSizes& s)
      : s_(s),
        row_((kSavesFloats<T> ? 5 : 4) * s.hidden),
        from_x_(gates_from_x(s, row_)),
        from_h_(gates_from_h(s, row_)),
        workspace_(b, {from_x_, from_h_}) {
    if (kSavesFloats<T>) return;
    gates_at_ = b.workspace(s.rows() * row_ * kFloat);
    cell_at_ = b.workspace(s.state() * kFloat);
  }

  // x h0 c0 w_ih w_hh bias => y h_n c_n saved
  void execute(const Run& run) override {
    T* y = run.output<T>(0);
    T* saved = run.output<T>(3);
    float* gates = kSavesFloats<T> ? run.output(3) : run.scratch(gates_at_);
    gemm(run, workspace_, from_x_, run.input(0), run.input(3), gates);
    for (std::int64_t t = 0; t < s_.steps; ++t) {
      const bool last = t + 1 == s_.steps;
      const T* h = t == 0 ? run.input<T>(1) : y + (t - 1) * s_.state();
      float* of_step = gates + t * s_.batch * row_;
      gemm(run, workspace_, from_h_, h, run.input(4), of_step, true);
      float* c = kSavesFloats<T> ? nullptr : run.scratch(cell_at_);
      launch_lstm_gates(s_.step(), run.input(5), {of_step, row_}, cell_before(run, t),
                        saved + t * 5 * s_.state(), y + t * s_.state(),
                        last ? run.output<T>(1) : nullptr, last ? run.output(2) : c, run.stream());
    }
  }

 private:
  // c_{t-1}: c0, the last part of the rows of `saved`, or what the step before kept.
  Rows<const float> cell_before(const Run& run, std::int64_t t) const {
    if (t == 0) return {run.input(2), s_.hidden};
    if (!kSavesFloats<T>) return {run.scratch(cell_at_), s_.hidden};
    return {run.output(3) + (t - 1) * 5 * s_.state() + 4 * s_.hidden, 5 * s_.hidden};
  }

  RecurrentSizes s_;
  std::int64_t row_;  // of gates
  GemmSizes from_x_, from_h_;
  GemmWorkspace workspace_;
  std::size_t gates_at_ = 0, cell_at_ = 0;
};

template <class T>
class LstmBackward final : public Kernel {
 public:
  LstmBackward(Booking& b, const RecurrentSizes& s)
      : s_(s),
        accumulates_(b.accumulates()),
        to_h_(back_through(s, s.batch, s.gates, s.hidden, s.gates, false)),
        to_x_(back_through(s, s.rows(), s.gates, s.input, s.gates, true)),
        w_ih_(weight_grad(s, s.rows(), s.gates, s.input, s.gates)),
        w_hh_first_(weight_grad(s, s.batch, s.gates, s.hidden, s.gates)),
        w_hh_rest_(weight_grad(s, s.rows() - s.batch, s.gates, s.hidden, s.gates)),
        workspace_(b, {to_h_, to_x_, w_ih_, w_hh_first_, w_hh_rest_}),
        bias_({.outer = s.rows(), .channels = s.gates}),
        dgates_at_(b.workspace(s.rows() * s.gates * static_cast<Bytes>(sizeof(T)))),
        sums_at_(b.workspace(static_cast<Bytes>(bias_.scratch_bytes()))) {
    if (!kSavesFloats<T>) dh_at_ = b.workspace(s.state() * kFloat);
  }

  // x h0 c0 w_ih w_hh bias y h_n c_n saved dy dh_n dc_n acc_ih? acc_hh? acc_b?
  // => dx dh0 dc0 dw_ih dw_hh dbias
  void execute(const Run& run) override {
    T* dgates = run.scratch<T>(dgates_at_);
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
  void state_grads(const Run& run, T* dgates) const {
    const CarriedGradient<T> carried(run, s_.state(), 11, 1, dh_at_);
    float* dh = carried.begin();
    float* dc = run.output(2);
    copy_to_output(run, 12, 2, s_.state() * kFloat);
    const T* saved = run.input<T>(9);
    for (std::int64_t t = s_.steps - 1; t >= 0; --t) {
      T* of_step = dgates + t * s_.batch * s_.gates;
      const T* of_saved = saved + t * 5 * s_.state();
      const T* dy = run.input<T>(10) + t * s_.state();
      if (t == 0) {
        const Rows<const float> c{run.input(2), s_.hidden};
        launch_lstm_gate_grads(s_.step(), of_saved, c, dy, dh, dc, of_step, run.stream());
      } else {
        const Rows<const T> c{of_saved - 5 * s_.state() + 4 * s_.hidden, 5 * s_.hidden};
        launch_lstm_gate_grads(s_.step(), of_saved, c, dy, dh, dc, of_step, run.stream());
      }
      gemm(run, workspace_, to_h_, of_step, run.input(4), dh);
    }
    carried.end();
  }

  RecurrentSizes s_;
  bool accumulates_;
  GemmSizes to_h_, to_x_, w_ih_, w_hh_first_, w_hh_rest_;
  GemmWorkspace workspace_;
  SumPlan bias_;
  std::size_t dgates_at_, sums_at_, dh_at_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> plan_lstm(Booking& b) {
  const RecurrentSizes s = recurrent_sizes(b.input(0), b.input(3), b.input(4));
  b.flops(s.flops());
  b.launches(2 * s.steps + 1);
  return with_element(b, b.input(0),
                      [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Kernel> {
                        return std::make_unique<LstmForward<T>>(b, s);
                      });
}

std::unique_ptr<Kernel> plan_lstm_grad(Booking& b) {
  const RecurrentSizes s = recurrent_sizes(b.input(0), b.input(3), b.input(4));
  b.flops(2.0 * s.flops());
  b.launches(2 * s.steps + 6);
  return with_element(b, b.input(0),
                      [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Kernel> {
                        return std::make_unique<LstmBackward<T>>(b, s);
                      });
}

}  // namespace reprise::kernels::cuda
