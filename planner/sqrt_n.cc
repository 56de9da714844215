#include "planner/candidates.h"
#include "planner/strategies.h"

namespace reprise::planner {
namespace {

// Chen et al., "Training deep nets with sublinear memory cost" (2016): sqrt(n) segments of a
// forward part of n ops.
class SqrtN final : public FrontierStrategy {
 public:
  std::string_view name() const override { return "sqrt_n"; }
  std::string_view summary() const override {
    return "as segments, with the square root of the number of forward ops for k";
  }

 private:
  void solve(const Request& request, Frontier& frontier) const override {
    offer_sqrt_n(Structure(*request.problem, request.order), frontier);
  }
};

}  // namespace

const Strategy& sqrt_n_strategy() {
  static const SqrtN strategy;
  return strategy;
}

}  // namespace reprise::planner
