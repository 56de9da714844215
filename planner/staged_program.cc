#include "planner/staged_program.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "planner/longest_path.h"

namespace reprise::planner {
namespace {

using schedule::TensorKind;

std::size_t at(Index i) {
  return static_cast<std::size_t>(i);
}

std::vector<Index> distinct(const std::vector<TensorId>& ids) {
  std::vector<Index> result;
  for (const TensorId id : ids) {
    const auto t = static_cast<Index>(id.index());
    if (std::find(result.begin(), result.end(), t) == result.end()) result.push_back(t);
  }
  return result;
}

class Builder {
 public:
  Builder(const Problem& problem, OrderFreedom freedom, Bytes budget,
          const std::vector<Index>& anchors)
      : structure_(problem, freedom),
        budget_(budget),
        anchors_(anchors),
        stages_(static_cast<Index>(anchors.size())),
        anchor_stage_(problem.ops.size(), -1),
        first_run_(problem.ops.size(), -1),
        first_(problem.ops.size(), 0),
        last_(problem.ops.size(), 0),
        due_(problem.ops.size(), static_cast<Index>(anchors.size())),
        tensor_first_(problem.tensors.size(), 0),
        tensor_last_(problem.tensors.size(), -1),
        run_column_(problem.ops.size(), 0),
        there_column_(problem.tensors.size(), 0) {
    for (Index t = 0; t < stages_; ++t) anchor_stage_[at(anchors[at(t)])] = t;
    if (freedom == OrderFreedom::kFixed) find_first_runs();
    for (const schedule::Tensor& tensor : problem.tensors) {
      if (tensor.kind == TensorKind::kResident) resident_ += tensor.bytes;
    }
    find_first_stages();
    find_last_stages();
  }

  // Columns there would be.
  [[nodiscard]] std::size_t size() const {
    std::size_t columns = 0;
    for (Index k = 0; k < structure_.ops(); ++k) {
      columns += at(std::max(last_[at(k)] - first_[at(k)] + 1, 0));
    }
    for (Index u = 0; u < structure_.tensors(); ++u) {
      columns += at(std::max(tensor_last_[at(u)] - tensor_first_[at(u)] + 1, 0));
    }
    return columns;
  }

  StagedProgram build() {
    StagedProgram result;
    result.cost_unit = power_of_two_near(largest_cost());
    cost_unit_ = result.cost_unit;
    bytes_unit_ = power_of_two_near(budget_);
    add_run_columns();
    add_there_columns();
    for (Index k = 0; k < structure_.ops(); ++k) add_run_rows(k);
    for (Index u = 0; u < structure_.tensors(); ++u) add_there_rows(u);
    for (Index t = 0; t < stages_; ++t) add_memory_row(t);
    result.program = std::move(lp_);
    return result;
  }

  // Do doubles hold every number?
  [[nodiscard]] bool is_exact() const {
    constexpr std::int64_t kMost = std::int64_t{1} << 53;
    for (Index k = 0; k < structure_.ops(); ++k) {
      if (structure_.op(k).cost > kMost) return false;
    }
    Bytes bytes = 0;
    for (Index u = 0; u < structure_.tensors(); ++u) {
      bytes = std::max(bytes, structure_.tensor(u).bytes);
    }
    return bytes <= kMost && budget_ <= kMost;
  }

 private:
  static double power_of_two_near(std::int64_t number) {
    return number <= 1 ? 1.0 : std::exp2(std::floor(std::log2(static_cast<double>(number))));
  }
  [[nodiscard]] std::int64_t largest_cost() const {
    std::int64_t cost = 0;
    for (Index k = 0; k < structure_.ops(); ++k) cost = std::max(cost, structure_.op(k).cost);
    return cost;
  }
  [[nodiscard]] bool resident(Index u) const {
    return structure_.tensor(u).kind == TensorKind::kResident;
  }
  [[nodiscard]] bool once(Index k) const { return !structure_.op(k).recomputable; }
  // An output of an op that runs once: there from then on.
  [[nodiscard]] bool stays(Index u) const {
    return structure_.tensor(u).kind == TensorKind::kOutput && structure_.producer(u) >= 0 &&
           once(structure_.producer(u));
  }

  // A fixed order says in which stage each op runs for the first time.
  void find_first_runs() {
    Index stage = 0;
    for (Index k = 0; k < structure_.ops(); ++k) {
      first_run_[at(k)] = stage;
      if (anchor_stage_[at(k)] >= 0) ++stage;
    }
  }

  // The first stage in which the inputs of k can be there.
  void find_first_stages() {
    for (Index k = 0; k < structure_.ops(); ++k) {
      Index first = 0;
      for (const TensorId id : structure_.op(k).inputs) {
        const Index producer = structure_.producer(static_cast<Index>(id.index()));
        if (producer >= 0) first = std::max(first, after(producer));
      }
      if (anchor_stage_[at(k)] >= 0) first = anchor_stage_[at(k)];
      first_[at(k)] = std::max(first, first_run_[at(k)]);
      for (const TensorId id : structure_.op(k).outputs) tensor_first_[id.index()] = after(k);
    }
  }
  // The first stage in which another op can use what k makes.
  [[nodiscard]] Index after(Index k) const {
    return anchor_stage_[at(k)] >= 0 ? anchor_stage_[at(k)] + 1 : first_[at(k)];
  }

  // The last stage in which a run of k can be of use. `due_`: an op that an anchor needs has run in
  // the anchor's stage.
  void find_last_stages() {
    for (Index k = structure_.ops(); k-- > 0;) {
      Index due = stages_;
      Index useful = structure_.required(k) ? first_[at(k)] : -1;
      for (const TensorId id : structure_.op(k).outputs) {
        const auto u = static_cast<Index>(id.index());
        for (const Index reader : structure_.readers(u)) {
          due = std::min(due, due_[at(reader)]);
          useful = std::max(useful, last_[at(reader)]);
        }
        if (structure_.tensor(u).kind == TensorKind::kOutput) useful = stages_;
      }
      if (anchor_stage_[at(k)] >= 0) due = anchor_stage_[at(k)];
      if (first_run_[at(k)] >= 0) due = first_run_[at(k)];
      due_[at(k)] = due;
      if (structure_.required(k)) useful = std::max(useful, due);  // its first run
      last_[at(k)] = once(k) ? due : useful;
    }
    for (Index u = 0; u < structure_.tensors(); ++u) {
      if (resident(u)) continue;
      for (const Index reader : structure_.readers(u)) {
        tensor_last_[at(u)] = std::max(tensor_last_[at(u)], last_[at(reader)]);
      }
      if (stays(u)) tensor_last_[at(u)] = stages_;
    }
  }

  [[nodiscard]] bool has_run(Index t, Index k) const {
    return k >= 0 && t >= first_[at(k)] && t <= last_[at(k)];
  }
  [[nodiscard]] bool has_there(Index t, Index u) const {
    return t >= tensor_first_[at(u)] && t <= tensor_last_[at(u)];
  }
  void add_run(Index t, Index k, double coefficient) {
    if (has_run(t, k)) lp_.add(run_column_[at(k)] + t - first_[at(k)], coefficient);
  }
  void add_there(Index t, Index u, double coefficient) {
    if (has_there(t, u)) lp_.add(there_column_[at(u)] + t - tensor_first_[at(u)], coefficient);
  }

  void add_run_columns() {
    for (Index k = 0; k < structure_.ops(); ++k) {
      run_column_[at(k)] = lp_.columns();
      const double cost = static_cast<double>(structure_.op(k).cost) / cost_unit_;
      for (Index t = first_[at(k)]; t <= last_[at(k)]; ++t) {
        lp_.add_column(cost, t == anchor_stage_[at(k)] || t == first_run_[at(k)] ? 1 : 0, 1);
      }
    }
  }

  void add_there_columns() {
    for (Index u = 0; u < structure_.tensors(); ++u) {
      there_column_[at(u)] = lp_.columns();
      if (resident(u)) continue;
      const Index producer = structure_.producer(u);
      const bool anchored = producer >= 0 && anchor_stage_[at(producer)] >= 0;
      for (Index t = tensor_first_[at(u)]; t <= tensor_last_[at(u)]; ++t) {
        const bool gone = t > 0 && t <= stages_ && destroys(anchors_[at(t - 1)], u);
        lp_.add_column(0, stays(u) && anchored ? 1 : 0, gone ? 0 : 1);
      }
    }
  }
  [[nodiscard]] bool destroys(Index k, Index u) const { return structure_.destroyer(u) == k; }

  void add_run_rows(Index k) {
    const Index first = first_[at(k)];
    const Index last = last_[at(k)];
    for (Index t = first; t <= last; ++t) {
      for (const Index u : distinct(structure_.op(k).inputs)) {
        if (resident(u)) continue;
        const Index producer = structure_.producer(u);
        add_run(t, k, 1);
        add_there(t, u, -1);
        if (producer >= 0 && anchor_stage_[at(producer)] != t) add_run(t, producer, -1);
        lp_.end_row(0);
      }
    }
    if (anchor_stage_[at(k)] < 0 && first_run_[at(k)] < 0 && structure_.required(k)) {
      for (Index t = first; t <= last; ++t) add_run(t, k, -1);
      lp_.end_row(-1);
    }
    if (once(k) && last > first) {
      for (Index t = first; t <= last; ++t) add_run(t, k, 1);
      lp_.end_row(1);
    }
  }

  void add_there_rows(Index u) {
    if (resident(u)) return;
    const Index producer = structure_.producer(u);
    for (Index t = tensor_first_[at(u)]; t < tensor_last_[at(u)] + 1; ++t) {
      // S[t,u] against the stage before it.
      if (t > 0) {
        add_there(t, u, 1);
        add_there(t - 1, u, -1);
        add_run(t - 1, producer, -1);
        lp_.end_row(0);
      } else if (producer >= 0) {
        add_there(t, u, 1);
        lp_.end_row(0);
      }
      if (!stays(u) || t == 0) continue;
      add_there(t - 1, u, 1);
      add_there(t, u, -1);
      lp_.end_row(0);
      add_run(t - 1, producer, 1);
      add_there(t, u, -1);
      lp_.end_row(0);
    }
  }

  void add_memory_row(Index t) {
    const schedule::Op& op = structure_.op(anchors_[at(t)]);
    std::vector<TensorId> used = op.inputs;
    used.insert(used.end(), op.outputs.begin(), op.outputs.end());
    std::vector<bool> counted(at(structure_.tensors()), false);
    Bytes least = resident_ + op.least_workspace();
    for (const Index u : distinct(used)) {
      counted[at(u)] = true;
      if (!resident(u)) least += structure_.tensor(u).bytes;
    }
    least -= saved_in_place(op);
    if (least > budget_) return;  // no plan at all; not for this bound to say
    for (Index u = 0; u < structure_.tensors(); ++u) {
      if (counted[at(u)] || resident(u)) continue;
      add_there(t + 1, u, static_cast<double>(structure_.tensor(u).bytes) / bytes_unit_);
    }
    lp_.end_row(static_cast<double>(budget_ - least) / bytes_unit_);
  }

  // At most: each output takes the place of one input.
  [[nodiscard]] Bytes saved_in_place(const schedule::Op& op) const {
    std::vector<bool> taken(op.outputs.size(), false);
    Bytes saved = 0;
    for (const graph::InplacePair& pair : op.inplace) {
      if (taken[at(pair.output)]) continue;
      taken[at(pair.output)] = true;
      saved += structure_.tensor(static_cast<Index>(op.outputs[at(pair.output)].index())).bytes;
    }
    return saved;
  }

  const Structure structure_;
  const Bytes budget_;
  const std::vector<Index>& anchors_;
  const Index stages_;
  std::vector<Index> anchor_stage_;        // per op; -1 for none
  std::vector<Index> first_run_;           // per op: stage of its first run; -1 when free
  std::vector<Index> first_, last_, due_;  // per op: stages with a column
  std::vector<Index> tensor_first_, tensor_last_;
  std::vector<Index> run_column_, there_column_;  // of the first stage
  Bytes resident_ = 0;
  double cost_unit_ = 1, bytes_unit_ = 1;
  LinearProgram lp_;
};

}  // namespace

std::vector<Index> choose_anchors(const Problem& problem, OrderFreedom freedom, std::size_t most) {
  const Structure structure(problem, freedom);
  const std::vector<Index> path = longest_path(structure, 0, structure.ops());
  if (path.size() <= most || most == 0) return path;
  std::vector<Index> chosen;
  for (std::size_t i = 0; i < most; ++i)
    chosen.push_back(path[(2 * i + 1) * path.size() / (2 * most)]);
  return chosen;
}

std::optional<StagedProgram> make_staged_program(const Problem& problem, OrderFreedom freedom,
                                                 Bytes budget, const std::vector<Index>& anchors,
                                                 std::size_t most_columns) {
  if (anchors.empty()) return std::nullopt;
  Builder builder(problem, freedom, budget, anchors);
  if (builder.size() > most_columns || !builder.is_exact()) return std::nullopt;
  return builder.build();
}

}  // namespace reprise::planner
