// GRU (Cho et al. 2014) with the reset gate after the product ("linear before reset"): gates u r n,
//   n = tanh(W_n x + b_n + r q),  q = U_n h_{t-1} + b_nh,  h_t = (1 - u) n + u h_{t-1}.
// The product with x writes straight into `saved`, whose rows are u r n q; where that is bf16, into
// the workspace as f32.
//
// Gradients of the gates towards x and towards h differ in n only. They lie in one array with rows
// (n towards x, u, r, n towards h), so that the product of every step finds its three side by side;
// those towards x, which run once, are cut in two.

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
class GruForward final : public Kernel {
 public:
  GruForward(Booking& b, const RecurrentSizes& s)
      : s_(s),
        row_(kSavesFloats<T> ? 4 * s.hidden : s.gates),
        from_x_(gates_from_x(s, row_)),
        from_h_(gates_from_h(s, s.gates)),
        workspace_(b, {from_x_, from_h_}),
        from_h_at_(b.workspace(s.batch * s.gates * kFloat)) {
    if (!kSavesFloats<T>) from_x_at_ = b.workspace(s.rows() * row_ * kFloat);
  }

  // x h0 w_ih w_hh bias => y h_n saved
  void execute(const Run& run) override {
    T* y = run.output<T>(0);
    T* saved = run.output<T>(2);
    float* from_h = run.scratch(from_h_at_);
    float* from_x = kSavesFloats<T> ? run.output(2) : run.scratch(from_x_at_);
    gemm(run, workspace_, from_x_, run.input(0), run.input(2), from_x);
    for (std::int64_t t = 0; t < s_.steps; ++t) {
      const T* h = t == 0 ? run.input<T>(1) : y + (t - 1) * s_.state();
      gemm(run, workspace_, from_h_, h, run.input(3), from_h);
      launch_gru_gates(s_.step(), run.input(4), {from_x + t * s_.batch * row_, row_}, from_h, h,
                       saved + t * 4 * s_.state(), y + t * s_.state(),
                       t + 1 == s_.steps ? run.output<T>(1) : nullptr, run.stream());
    }
  }

 private:
  RecurrentSizes s_;
  std::int64_t row_;  // of from_x
  GemmSizes from_x_, from_h_;
  GemmWorkspace workspace_;
  std::size_t from_h_at_, from_x_at_ = 0;
};

template <class T>
class GruBackward final : public Kernel {
 public:
  GruBackward(Booking& b, const RecurrentSizes& s)
      : s_(s),
        accumulates_(b.accumulates()),
        to_h_(back_through(s, s.batch, s.gates, s.hidden, 4 * s.hidden, false)),
        ur_to_x_(back_through(s, s.rows(), 2 * s.hidden, s.input, 4 * s.hidden, true)),
        n_to_x_(back_through(s, s.rows(), s.hidden, s.input, 4 * s.hidden, true)),
        ur_w_ih_(weight_grad(s, s.rows(), 2 * s.hidden, s.input, 4 * s.hidden)),
        n_w_ih_(weight_grad(s, s.rows(), s.hidden, s.input, 4 * s.hidden)),
        w_hh_first_(weight_grad(s, s.batch, s.gates, s.hidden, 4 * s.hidden)),
        w_hh_rest_(weight_grad(s, s.rows() - s.batch, s.gates, s.hidden, 4 * s.hidden)),
        workspace_(b, {to_h_, ur_to_x_, n_to_x_, ur_w_ih_, n_w_ih_, w_hh_first_, w_hh_rest_}),
        bias_({.outer = s.rows(), .channels = 4 * s.hidden}),
        dgates_at_(b.workspace(s.rows() * 4 * s.hidden * static_cast<Bytes>(sizeof(T)))),
        parts_at_(b.workspace(static_cast<Bytes>(bias_.scratch_bytes()))),
        sums_at_(b.workspace(4 * s.hidden * kFloat)) {
    if (!kSavesFloats<T>) dh_at_ = b.workspace(s.state() * kFloat);
  }

  // x h0 w_ih w_hh bias y h_n saved dy dh_n acc_ih? acc_hh? acc_b? => dx dh0 dw_ih dw_hh dbias
  void execute(const Run& run) override {
    T* dgates = run.scratch<T>(dgates_at_);
    state_grads(run, dgates);
    if (accumulates_) {
      copy_to_output(run, 10, 2, s_.gates * s_.input * kFloat);
      copy_to_output(run, 11, 3, s_.gates * s_.hidden * kFloat);
    }
    input_grads(run, dgates);
    const T* to_h = dgates + s_.hidden;
    gemm(run, workspace_, w_hh_first_, to_h, run.input(1), run.output(3), accumulates_);
    if (s_.steps > 1) {
      gemm(run, workspace_, w_hh_rest_, to_h + 4 * s_.state(), run.input(5), run.output(3), true);
    }
    auto* sums = run.scratch<float>(sums_at_);
    launch_sums(bias_, 1.0F, dgates, nullptr, sums, run.scratch<double>(parts_at_), run.stream());
    launch_gru_bias_grad(s_.hidden, sums, accumulates_ ? run.input(12) : nullptr, run.output(4),
                         run.stream());
  }

 private:
  // dgates of all steps; the carried dh ends as that of h0.
  void state_grads(const Run& run, T* dgates) const {
    const CarriedGradient<T> carried(run, s_.state(), 9, 1, dh_at_);
    float* dh = carried.begin();
    for (std::int64_t t = s_.steps - 1; t >= 0; --t) {
      T* of_step = dgates + t * 4 * s_.state();
      const T* h = t == 0 ? run.input<T>(1) : run.input<T>(5) + (t - 1) * s_.state();
      launch_gru_gate_grads(s_.step(), run.input<T>(7) + t * 4 * s_.state(), h,
                            run.input<T>(8) + t * s_.state(), dh, of_step, run.stream());
      gemm(run, workspace_, to_h_, of_step + s_.hidden, run.input(3), dh, true);
    }
    carried.end();
  }

  void input_grads(const Run& run, const T* dgates) const {
    const T *x = run.input<T>(0), *w_ih = run.input<T>(2);
    const T* ur = dgates + s_.hidden;
    const std::int64_t n_rows = 2 * s_.hidden * s_.input;  // where those of n begin in w_ih
    gemm(run, workspace_, ur_to_x_, ur, w_ih, run.output(0));
    gemm(run, workspace_, n_to_x_, dgates, w_ih + n_rows, run.output(0), true);
    gemm(run, workspace_, ur_w_ih_, ur, x, run.output(2), accumulates_);
    gemm(run, workspace_, n_w_ih_, dgates, x, run.output(2) + n_rows, accumulates_);
  }

  RecurrentSizes s_;
  bool accumulates_;
  GemmSizes to_h_, ur_to_x_, n_to_x_, ur_w_ih_, n_w_ih_, w_hh_first_, w_hh_rest_;
  GemmWorkspace workspace_;
  SumPlan bias_;
  std::size_t dgates_at_, parts_at_, sums_at_, dh_at_ = 0;
};

}  // namespace

std::unique_ptr<Kernel> plan_gru(Booking& b) {
  const RecurrentSizes s = recurrent_sizes(b.input(0), b.input(2), b.input(3));
  b.flops(s.flops());
  b.launches(2 * s.steps + 1);
  return with_element(b, b.input(0),
                      [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Kernel> {
                        return std::make_unique<GruForward<T>>(b, s);
                      });
}

std::unique_ptr<Kernel> plan_gru_grad(Booking& b) {
  const RecurrentSizes s = recurrent_sizes(b.input(0), b.input(2), b.input(3));
  b.flops(2.0 * s.flops());
  b.launches(2 * s.steps + 9);
  return with_element(b, b.input(0),
                      [&]<class T>(std::type_identity<T>) -> std::unique_ptr<Kernel> {
                        return std::make_unique<GruBackward<T>>(b, s);
                      });
}

}  // namespace reprise::kernels::cuda
