// Recurrent layers.

#include "kernels/cpu/ops.h"

namespace reprise::kernels::cpu {

std::unique_ptr<Kernel> plan_lstm(Booking& b) {
  throw b.unsupported("recurrent layers run on the reference backend only so far");
}
std::unique_ptr<Kernel> plan_lstm_grad(Booking& b) {
  return plan_lstm(b);
}
std::unique_ptr<Kernel> plan_gru(Booking& b) {
  return plan_lstm(b);
}
std::unique_ptr<Kernel> plan_gru_grad(Booking& b) {
  return plan_lstm(b);
}

}  // namespace reprise::kernels::cpu
