#include <algorithm>

#include "base/error.h"
#include "planner/chain/simulate.h"
#include "planner/chain/uniform.h"

namespace reprise::planner {
namespace {

constexpr std::int64_t kMostSteps = 10'000'000;

std::size_t at(std::int32_t n) {
  return static_cast<std::size_t>(n);
}

}  // namespace

void validate(const UniformChain& c) {
  const auto check = [](std::int64_t value, const char* name) {
    if (value < 0) {
      throw base::input_error("uniform chain: {} is {}; it must not be negative", name, value);
    }
  };
  check(c.steps, "steps");
  check(c.a, "a");
  check(c.b, "b");
  check(c.g, "g");
  check(c.uf, "uf");
  check(c.ub, "ub");
  check(c.of, "of");
  check(c.ob, "ob");
  check(c.ul, "ul");
  check(c.ol, "ol");
  if (c.b < c.a) {
    throw base::input_error("uniform chain: b is {}, less than a, {}, which is part of it", c.b,
                            c.a);
  }
  if (c.steps > kMostSteps) {
    throw base::input_error("uniform chain: {} steps; there may be {}", c.steps, kMostSteps);
  }
  const auto sum = [](std::initializer_list<std::int64_t> values, const char* what) {
    std::int64_t total = 0;
    for (std::int64_t v : values) total = base::checked_add(total, v, what);
    return total;
  };
  const Bytes bytes = sum({c.a, c.b, c.g, c.g, c.of, c.ob, c.ol}, "uniform chain: sizes");
  (void)base::checked_mul(bytes, 4 * (c.steps + 1), "uniform chain: sizes times steps");
  const std::int64_t costs = sum({c.uf, c.uf, c.ub, c.ul}, "uniform chain: costs");
  (void)base::checked_mul(
      base::checked_mul(costs, c.steps + 1, "uniform chain: costs times steps"), c.steps + 1,
      "uniform chain: costs times steps squared, what the smallest budgets come to");
}

ChainProblem expand(const UniformChain& c) {
  ChainProblem problem;
  problem.input = c.a;
  problem.input_gradient = c.g;
  problem.loss_cost = c.ul;
  problem.loss_workspace = c.ol;
  problem.stages.assign(static_cast<std::size_t>(c.steps),
                        Stage{c.a, c.g, c.uf, c.of, {{c.uf, c.ub, c.b, c.of, c.ob}}});
  return problem;
}

// Cells of memory: a few steps in each.
constexpr std::int64_t kCells = 1024;

UniformTable::UniformTable(const UniformChain& chain, std::int32_t inner, std::int32_t outer,
                           Bytes cap, const std::function<bool()>& stop)
    : cells_(cap, kCells), p_(1), q_(1) {
  Envelope best(cap, cells_);
  best.add(chain.g + chain.ol, chain.ul, {});
  q_[0] = CellStaircase(best.stairs(), cells_);
  for (std::int32_t n = 1; n <= std::max(inner, outer); ++n) {
    if (stop && stop()) return;
    if (n <= inner) solve(chain, n, false, best);
    if (n <= outer) solve(chain, n, true, best);
  }
  complete_ = true;
}

void UniformTable::solve(const UniformChain& c, std::int32_t n, bool outer, Envelope& best) {
  best.clear();
  std::vector<CellStaircase>& rows = outer ? q_ : p_;
  const Bytes gradient = outer ? 0 : c.g;
  const Bytes record = c.b + std::max(gradient + c.of, 2 * c.g + c.ob);
  if (n == 1 && !outer) {
    best.add(record, c.uf + c.ub, {ChainMove::kLeaf, 0, 0});
  } else {
    best.add(rows[at(n - 1)].steps, c.b, record, c.uf + c.ub, {ChainMove::kRecord, 0, 0});
  }
  for (std::int32_t j = 1; j <= (outer ? n : n - 1) && j < static_cast<std::int32_t>(p_.size());
       ++j) {
    const Bytes transient = (j == 1 ? c.a : 2 * c.a) + c.of;
    best.add({rows[at(n - j)], c.a}, {p_[at(j)], 0}, gradient + transient, j * c.uf,
             {ChainMove::kCheckpoint, 0, j});
  }
  rows.emplace_back(best.stairs(), cells_);
}

}  // namespace reprise::planner
