// Linear programs through Clp's dual simplex.

#include <ClpEventHandler.hpp>
#include <ClpSimplex.hpp>
#include <CoinPackedMatrix.hpp>
#include <limits>

#include "planner/linear_program.h"

namespace reprise::planner {
namespace {

class StopHandler : public ClpEventHandler {
 public:
  explicit StopHandler(const std::function<bool()>& stop) : stop_(&stop) {}
  int event(Event which) override {
    if (which != endOfIteration && which != endOfFactorization) return -1;
    return ++events_ % 64 == 0 && *stop_ && (*stop_)() ? 5 : -1;
  }
  ClpEventHandler* clone() const override { return new StopHandler(*this); }

 private:
  const std::function<bool()>* stop_;
  int events_ = 0;
};

}  // namespace

std::optional<std::vector<double>> row_multipliers(const LinearProgram& program,
                                                   const LpOptions& options) {
  const auto& p = program;
  std::vector<int> starts(p.row_start.begin(), p.row_start.end());
  std::vector<int> lengths;
  for (int i = 0; i < p.rows(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    lengths.push_back(p.row_start[at + 1] - p.row_start[at]);
  }
  const CoinPackedMatrix rows(false, p.columns(), p.rows(),
                              static_cast<CoinBigIndex>(p.column.size()), p.value.data(),
                              p.column.data(), starts.data(), lengths.data());
  const std::vector<double> below(p.limit.size(), -std::numeric_limits<double>::max());
  ClpSimplex model;
  model.setLogLevel(0);
  model.loadProblem(rows, p.lower.data(), p.upper.data(), p.cost.data(), below.data(),
                    p.limit.data());
  const StopHandler handler(options.stop);
  model.passInEventHandler(&handler);
  model.setMaximumIterations(static_cast<int>(
      std::min<std::int64_t>(options.iterations, std::numeric_limits<int>::max())));
  model.dual();
  if (model.numberRows() != p.rows() || model.dualRowSolution() == nullptr) return std::nullopt;
  // Clp's price of a row that says "at most" is negative when it binds.
  std::vector<double> result;
  for (int i = 0; i < p.rows(); ++i) result.push_back(-model.dualRowSolution()[i]);
  return result;
}

}  // namespace reprise::planner
