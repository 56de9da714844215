#pragma once

// Linear programs as data, and bounds on their optima that need no trust in whoever solved them.

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace reprise::planner {

// Minimize cost * x with lower <= x <= upper and each row * x <= its limit. All coefficients are
// exact doubles.
struct LinearProgram {
  std::vector<double> cost, lower, upper;  // per column, all finite
  std::vector<int> row_start{0};           // into `column` and `value`, one more than rows
  std::vector<int> column;
  std::vector<double> value;
  std::vector<double> limit;  // per row

  int add_column(double column_cost, double least, double most);
  // Adds to the row under construction; end_row() closes it.
  void add(int at, double coefficient);
  void end_row(double row_limit);
  [[nodiscard]] int columns() const { return static_cast<int>(cost.size()); }
  [[nodiscard]] int rows() const { return static_cast<int>(limit.size()); }
};

struct LpOptions {
  std::int64_t iterations = 0;   // effort; never a clock
  std::function<bool()> stop{};  // true ends it; what is known then still gives a bound
};

// Multipliers of the rows, as good as the effort allows; nothing without a solver
// (planner/lp_missing) or when it failed.
[[nodiscard]] std::optional<std::vector<double>> row_multipliers(const LinearProgram& program,
                                                                 const LpOptions& options);

// With multipliers m >= 0 (negative ones count as 0), every x that keeps the rows costs at least
//
//   sum over columns of min over [lower, upper] of (cost + sum of m * coefficient) x  -  m * limit
//
// whatever m is, since m * (row * x - limit) <= 0. Optimal multipliers reach the optimum. Rounding
// is on the safe side.
[[nodiscard]] double dual_bound(const LinearProgram& program, const std::vector<double>& m);

}  // namespace reprise::planner
