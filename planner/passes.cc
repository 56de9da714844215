#include "planner/passes.h"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "fmt/format.h"

namespace reprise::planner {
namespace {

using schedule::OpId;
using schedule::TensorId;
using schedule::TensorKind;

constexpr std::size_t kMostPasses = 256;
constexpr std::size_t kMostLevels = 40;  // of memory, for which the whole is packed

bool are_micro_batches(const std::vector<std::size_t>& borders) {
  const std::size_t passes = borders.size() - 1;
  if (passes < 2 || passes > kMostPasses) return false;
  for (std::size_t p = 0; p < passes; ++p) {
    if ((borders[p + 1] - borders[p]) * passes * 4 < borders.back()) return false;
  }
  return true;
}

class Splitter {
 public:
  explicit Splitter(const Problem& problem)
      : problem_(problem),
        borders_(pass_borders(problem)),
        made_(problem.tensors.size(), kBefore),
        last_(problem.tensors.size(), kBefore),
        local_(problem.tensors.size()) {}

  std::vector<Pass> run() {
    if (!are_micro_batches(borders_)) return {};
    find_lifetimes();
    std::vector<Pass> passes;
    for (std::size_t p = 0; p + 1 < borders_.size(); ++p) passes.push_back(make_pass(p));
    return passes;
  }

 private:
  static constexpr std::int64_t kBefore = -1;

  // Of each tensor: the pass that makes it, and the last one in which it has to be there.
  void find_lifetimes() {
    for (std::size_t p = 0; p + 1 < borders_.size(); ++p) {
      for (std::size_t i = borders_[p]; i < borders_[p + 1]; ++i) {
        const schedule::Op& op = problem_.ops[OpId(i)];
        for (TensorId t : op.inputs) last_[t.index()] = static_cast<std::int64_t>(p);
        for (TensorId t : op.outputs)
          made_[t.index()] = last_[t.index()] = static_cast<std::int64_t>(p);
      }
    }
    for (std::size_t t = 0; t < problem_.tensors.size(); ++t) {
      const TensorKind kind = problem_.tensors[TensorId(t)].kind;
      if (kind == TensorKind::kResident || kind == TensorKind::kOutput)
        last_[t] = static_cast<std::int64_t>(borders_.size());
    }
  }

  Pass make_pass(std::size_t p) {
    const auto pass = static_cast<std::int64_t>(p);
    Pass result;
    std::fill(local_.begin(), local_.end(), TensorId{});
    const auto local = [&](TensorId t) {
      TensorId& known = local_[t.index()];
      if (!known.valid())
        known = result.problem.tensors.push_back({"", problem_.tensors[t].bytes, kind_in(t, pass)});
      return known;
    };
    for (std::size_t i = borders_[p]; i < borders_[p + 1]; ++i) {
      schedule::Op op = problem_.ops[OpId(i)];
      op.name.clear();
      for (TensorId& t : op.inputs) t = local(t);
      for (TensorId& t : op.outputs) t = local(t);
      result.problem.ops.push_back(std::move(op));
      result.ops.emplace_back(i);
    }
    add_later_readers(result, pass);
    for (std::size_t t = 0; t < problem_.tensors.size(); ++t) {
      if (!local_[t].valid() && made_[t] < pass && last_[t] > pass)
        result.elsewhere += problem_.tensors[TensorId(t)].bytes;
    }
    return result;
  }

  // What later passes read is read once more at the end. So it is there then; but it is no output
  // of the step, which would keep what else its op makes from being made again.
  void add_later_readers(Pass& result, std::int64_t pass) {
    schedule::Op later;
    for (std::size_t t = 0; t < problem_.tensors.size(); ++t) {
      if (made_[t] == pass && last_[t] > pass &&
          problem_.tensors[TensorId(t)].kind == TensorKind::kTemp)
        later.inputs.push_back(local_[t]);
    }
    if (later.inputs.empty()) return;
    later.outputs = {result.problem.tensors.push_back({"", 0, TensorKind::kOutput})};
    later.recomputable = false;
    later.backward = true;
    result.problem.ops.push_back(std::move(later));
    result.ops.emplace_back();
  }

  [[nodiscard]] TensorKind kind_in(TensorId t, std::int64_t pass) const {
    const bool stays = last_[t.index()] > pass;
    if (made_[t.index()] == pass) return problem_.tensors[t].kind;
    return stays ? TensorKind::kResident : TensorKind::kInput;
  }

  const Problem& problem_;
  std::vector<std::size_t> borders_;
  std::vector<std::int64_t> made_, last_;
  std::vector<TensorId> local_;
};

// What is known of one pass; equal passes share it.
struct Known {
  const Problem* problem;
  std::unique_ptr<Frontier> frontier;
};

class Combiner {
 public:
  Combiner(const Request& request, const std::vector<Pass>& passes,
           const std::function<void(const Request&, Frontier&)>& solve)
      : request_(request), passes_(passes) {
    for (const Pass& pass : passes) known_.push_back(plans_of(pass, solve));
  }

  void offer_to(Frontier& frontier) const {
    std::vector<Bytes> levels;
    for (std::size_t p = 0; p < passes_.size(); ++p) {
      for (const Plan& plan : frontiers_[known_[p]].frontier->plans())
        levels.push_back(plan.arena + passes_[p].elsewhere);
    }
    std::sort(levels.begin(), levels.end());
    levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
    std::erase_if(levels, [&](Bytes level) { return !fits(level); });
    const std::size_t count = std::min(levels.size(), kMostLevels);
    // Ascending, so that what is no better than a smaller one is not packed.
    for (std::size_t k = 0; k < count; ++k) {
      offer_level(count == 1 ? levels[0] : levels[k * (levels.size() - 1) / (count - 1)], frontier);
    }
    if (request_.stop && !levels.empty() && request_.budget > levels.front())
      offer_level(request_.budget, frontier);
  }

 private:
  std::size_t plans_of(const Pass& pass,
                       const std::function<void(const Request&, Frontier&)>& solve) {
    const auto found = std::find_if(frontiers_.begin(), frontiers_.end(), [&](const Known& known) {
      return *known.problem == pass.problem;
    });
    if (found != frontiers_.end()) return static_cast<std::size_t>(found - frontiers_.begin());
    Request question = request_;
    question.problem = &pass.problem;
    question.cache = nullptr;
    question.measure = Measure::kLivePeak;  // the whole is packed, not its parts
    question.budget = std::max<Bytes>(1, request_.budget - pass.elsewhere);
    auto frontier = std::make_unique<Frontier>(question);
    solve(question, *frontier);
    frontiers_.push_back({&pass.problem, std::move(frontier)});
    return frontiers_.size() - 1;
  }

  [[nodiscard]] const Plan* cheapest(std::size_t pass, Bytes level) const {
    return frontiers_[known_[pass]].frontier->cheapest_within(level - passes_[pass].elsewhere);
  }
  [[nodiscard]] bool fits(Bytes level) const {
    for (std::size_t p = 0; p < passes_.size(); ++p) {
      if (cheapest(p, level) == nullptr) return false;
    }
    return true;
  }

  void offer_level(Bytes level, Frontier& frontier) const {
    schedule::Order order;
    for (std::size_t p = 0; p < passes_.size(); ++p) {
      for (const OpId op : cheapest(p, level)->order) {
        const OpId of_whole = passes_[p].ops[op.index()];
        if (of_whole.valid()) order.push_back(of_whole);
      }
    }
    const Plan* last = cheapest(passes_.size() - 1, level);
    frontier.offer(std::move(order),
                   fmt::format("{} passes, the last: {}", passes_.size(), last->strategy));
  }

  const Request& request_;
  const std::vector<Pass>& passes_;
  std::vector<Known> frontiers_;
  std::vector<std::size_t> known_;  // per pass, into frontiers_
};

}  // namespace

std::vector<std::size_t> pass_borders(const Problem& problem) {
  std::vector<std::size_t> borders{0};
  bool backward = false;
  for (std::size_t i = 0; i < problem.ops.size(); ++i) {
    const bool now = problem.ops[OpId(i)].backward;
    if (backward && !now) borders.push_back(i);
    backward = now;
  }
  // What follows the last backward op belongs to its pass.
  if (borders.size() > 1 && !backward) borders.pop_back();
  borders.push_back(problem.ops.size());
  return borders;
}

std::vector<Pass> split_into_passes(const Problem& problem) {
  return Splitter(problem).run();
}

void offer_passes(const Request& request, const std::vector<Pass>& passes,
                  const std::function<void(const Request&, Frontier&)>& solve, Frontier& frontier) {
  Combiner(request, passes, solve).offer_to(frontier);
}

}  // namespace reprise::planner
