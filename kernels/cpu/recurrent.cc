#include "kernels/cpu/recurrent.h"

#include <algorithm>
#include <cstring>

namespace reprise::kernels::cpu {
namespace {

// Weights [GR, columns] stored column by column.
Desc column_major(std::int64_t rows, std::int64_t columns,
                  graph::DType dtype = graph::DType::kF32) {
  return {{rows, columns}, data_type(dtype), Dims{1, rows}};
}

}  // namespace

RecurrentSizes recurrent_sizes(const graph::Value& x, const graph::Value& w_ih,
                               const graph::Value& w_hh) {
  return {.steps = x.shape[0],
          .batch = x.shape[1],
          .input = x.shape[2],
          .hidden = w_hh.shape[1],
          .gates = w_ih.shape[0],
          .type = x.dtype};
}

RecurrentForward::RecurrentForward(const RecurrentSizes& s, bool add)
    : sizes_(s),
      from_x_({.a = matrix(s.rows(), s.input, s.type),
               .b = matrix(s.input, s.gates, s.type),
               .y = matrix(s.rows(), s.gates),
               .bias = true}),
      from_h_({.a = matrix(s.batch, s.hidden, s.type),
               .b = any_layout({s.hidden, s.gates}, s.type),
               .y = matrix(s.batch, s.gates),
               .accumulate = add}) {}

void RecurrentForward::require(Booking& b, std::size_t w) const {
  b.require(w, column_major(sizes_.gates, sizes_.input, sizes_.type));
  b.require(w + 1, from_h_.b_desc().permute_axes({1, 0}));
}

Bytes RecurrentForward::scratch_bytes() const {
  return std::max(from_x_.scratch_bytes(), from_h_.scratch_bytes());
}

void RecurrentForward::inputs(const Run& run, const void* x, const void* w_ih, const float* bias,
                              float* gates, void* scratch) {
  from_x_.execute(run, x, w_ih, bias, gates, scratch);
}

void RecurrentForward::step(const Run& run, const void* h, const void* w_hh, float* gates,
                            void* scratch) {
  from_h_.execute(run, h, w_hh, nullptr, gates, scratch);
}

RecurrentBackward::RecurrentBackward(const RecurrentSizes& s, bool add, bool accumulate)
    : sizes_(s),
      to_h_({.a = matrix(s.batch, s.gates, s.type),
             .b = any_layout({s.gates, s.hidden}, s.type),
             .y = matrix(s.batch, s.hidden),
             .accumulate = add}),
      to_x_({.a = matrix(s.rows(), s.gates, s.type),
             .b = column_major(s.gates, s.input, s.type),
             .y = matrix(s.rows(), s.input, s.type)}),
      to_w_ih_({.a = transposed_matrix(s.rows(), s.input, s.type),
                .b = matrix(s.rows(), s.gates, s.type),
                .y = matrix(s.input, s.gates),
                .accumulate = accumulate}),
      to_w_hh_first_({.a = transposed_matrix(s.batch, s.hidden, s.type),
                      .b = matrix(s.batch, s.gates, s.type),
                      .y = matrix(s.hidden, s.gates),
                      .accumulate = accumulate}) {
  if (s.steps == 1) return;
  const std::int64_t rest = (s.steps - 1) * s.batch;
  to_w_hh_rest_ =
      std::make_unique<MatmulPrimitive>(MatmulSizes{.a = transposed_matrix(rest, s.hidden, s.type),
                                                    .b = matrix(rest, s.gates, s.type),
                                                    .y = matrix(s.hidden, s.gates),
                                                    .accumulate = true});
}

void RecurrentBackward::require(Booking& b, std::size_t w) const {
  b.require(w, column_major(sizes_.gates, sizes_.input, sizes_.type));
  b.require(w + 1, to_h_.b_desc());
}

void RecurrentBackward::require_sums(Booking& b, std::size_t sum) const {
  b.require(sum, column_major(sizes_.gates, sizes_.input));
  b.require(sum + 1, column_major(sizes_.gates, sizes_.hidden));
}

void RecurrentBackward::produce(Booking& b, std::size_t dw) const {
  b.produce(dw, column_major(sizes_.gates, sizes_.input));
  b.produce(dw + 1, column_major(sizes_.gates, sizes_.hidden));
}

Bytes RecurrentBackward::scratch_bytes() const {
  return std::max({to_h_.scratch_bytes(), to_x_.scratch_bytes(), to_w_ih_.scratch_bytes(),
                   to_w_hh_first_.scratch_bytes(),
                   to_w_hh_rest_ == nullptr ? Bytes{0} : to_w_hh_rest_->scratch_bytes()});
}

void RecurrentBackward::step(const Run& run, const void* dgates, const void* w_hh, float* dh,
                             void* scratch) {
  to_h_.execute(run, dgates, w_hh, nullptr, dh, scratch);
}

void RecurrentBackward::inputs(const Run& run, const void* x, const void* w_ih, const void* dgates,
                               void* dx, float* dw_ih, void* scratch) {
  to_x_.execute(run, dgates, w_ih, nullptr, dx, scratch);
  to_w_ih_.execute(run, x, dgates, nullptr, dw_ih, scratch);
}

void RecurrentBackward::hidden(const Run& run, const void* h0, const void* y, const void* dgates,
                               float* dw_hh, void* scratch) {
  to_w_hh_first_.execute(run, h0, dgates, nullptr, dw_hh, scratch);
  if (to_w_hh_rest_ == nullptr) return;
  const auto first =
      static_cast<std::size_t>(sizes_.batch * sizes_.gates * graph::dtype_bytes(sizes_.type));
  to_w_hh_rest_->execute(run, y, static_cast<const std::byte*>(dgates) + first, nullptr, dw_hh,
                         scratch);
}

void produce_saved(Booking& b, std::size_t o) {
  static const std::shared_ptr<const void> own_form = std::make_shared<const int>(0);
  b.produce_workspace(o, row_major(b.output(o).shape, b.output(o).dtype), own_form);
}

void require_saved(Booking& b, std::size_t i) {
  if (b.layout(i).forward == nullptr) {
    throw b.unsupported("`saved` does not come from a layer of the same program");
  }
}

void start_sum(const std::byte* sum, std::byte* out, std::int64_t elements) {
  if (sum != out) std::memcpy(out, sum, static_cast<std::size_t>(elements) * sizeof(float));
}

}  // namespace reprise::kernels::cpu
