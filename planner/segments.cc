#include "base/error.h"
#include "planner/candidates.h"
#include "planner/strategies.h"

namespace reprise::planner {
namespace {

class Segments final : public FrontierStrategy {
 public:
  std::string_view name() const override { return "segments"; }
  std::string_view summary() const override {
    return "k segments of equal activation bytes; keeps what crosses their borders, makes the rest "
           "again a segment at a time";
  }

 private:
  void solve(const Request& request, Frontier& frontier) const override {
    if (request.segments < 0) {
      throw base::input_error("{} segments; the number must be positive", request.segments);
    }
    const Structure structure(*request.problem, request.order);
    if (request.segments > 0) {
      offer_segments(structure, request.segments, frontier);
      return;
    }
    offer_segments_of_any_number(structure, frontier);
  }
};

}  // namespace

const Strategy& segments_strategy() {
  static const Segments strategy;
  return strategy;
}

}  // namespace reprise::planner
