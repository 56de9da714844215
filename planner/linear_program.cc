#include "planner/linear_program.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace reprise::planner {

int LinearProgram::add_column(double column_cost, double least, double most) {
  cost.push_back(column_cost);
  lower.push_back(least);
  upper.push_back(most);
  return columns() - 1;
}

void LinearProgram::add(int at, double coefficient) {
  column.push_back(at);
  value.push_back(coefficient);
}

void LinearProgram::end_row(double row_limit) {
  row_start.push_back(static_cast<int>(column.size()));
  limit.push_back(row_limit);
}

double dual_bound(const LinearProgram& program, const std::vector<double>& m) {
  REPRISE_CHECK(m.size() == program.limit.size(), "{} multipliers for {} rows", m.size(),
                program.limit.size());
  std::vector<long double> reduced(program.cost.begin(), program.cost.end());
  // Sums of absolute values, for the error of the sums.
  std::vector<long double> size(program.cost.size());
  for (std::size_t j = 0; j < size.size(); ++j) size[j] = std::abs(reduced[j]);
  long double bound = 0;
  long double magnitude = 0;
  for (std::size_t i = 0; i < m.size(); ++i) {
    if (!(m[i] > 0) || !std::isfinite(m[i])) continue;
    const long double multiplier = m[i];
    bound -= multiplier * program.limit[i];
    magnitude += std::abs(multiplier * program.limit[i]);
    for (int k = program.row_start[i]; k < program.row_start[i + 1]; ++k) {
      const auto at = static_cast<std::size_t>(k);
      const auto j = static_cast<std::size_t>(program.column[at]);
      const long double part = multiplier * program.value[at];
      reduced[j] += part;
      size[j] += std::abs(part);
    }
  }
  for (std::size_t j = 0; j < reduced.size(); ++j) {
    const long double low = program.lower[j];
    const long double high = program.upper[j];
    bound += std::min(reduced[j] * low, reduced[j] * high);
    magnitude += size[j] * std::max(std::abs(low), std::abs(high));
  }
  // Each of at most 2^22 additions errs by 2^-64 of a partial sum.
  return static_cast<double>(bound - std::ldexp(magnitude, -40));
}

}  // namespace reprise::planner
