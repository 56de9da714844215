// Sums over ranks beside the step: two ranks as threads of one process, one thread of computation
// each, over an artificial link. Prints a table and, with --json FILE, all figures.
//
//     free      the step with a link that takes no time: what is computed
//     sums      what all sums take on the link
//     overlap   the step, with sums under way while it goes on
//     at once   the step when each sum is waited for where it starts
//     bound     max(free, sums): no overlap can be better
//     predict   schedule/cluster.h's step, from the costs of each instruction in the free steps
//     profile   the same from what `reprise profile` measures of one rank alone
//
// Steps of all kinds run in turn, so what the machine does meanwhile hits all of them; figures are
// medians, or with --take fastest those of the fastest step of each kind. Each model is planned
// with everything kept and with half of its activations.

#include <algorithm>
#include <atomic>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "CLI/CLI.hpp"
#include "fmt/format.h"
#include "nlohmann/json.hpp"

#include "api/profile.h"
#include "api/session.h"
#include "bench/batch.h"
#include "models/model.h"
#include "runtime/comm/thread_communicator.h"
#include "runtime/comm/thread_priority.h"
#include "schedule/cluster.h"
#include "schedule/usage.h"
#include "tests/support/throttled_communicator.h"

namespace {

using namespace reprise;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::ordered_json;
using runtime::comm::Communicator;

constexpr int kRanks = 2;

// What the communicators of all ranks do; changed between steps only.
struct Mode {
  std::atomic<double> bytes_per_second{0};  // 0: sums take no time
  std::atomic<bool> at_once{false};
};

schedule::Link link_of(double bytes_per_second) {
  return {.bytes_per_second = bytes_per_second, .latency_ns = 50'000, .message_ns = 0};
}
std::int64_t sum_ns(double bytes_per_second, base::Bytes bytes) {
  if (bytes_per_second == 0) return 0;
  return exchange_ns(schedule::Exchange::kTwoHop, kRanks, bytes, link_of(bytes_per_second));
}

// Waits for each sum where it starts, when the mode says so.
class SwitchedCommunicator final : public Communicator {
 public:
  SwitchedCommunicator(std::unique_ptr<Communicator> inner,
                       std::shared_ptr<runtime::comm::Arrivals> arrivals, const Mode& mode)
      : inner_(std::make_unique<runtime::comm::ThrottledCommunicator>(
            std::move(inner), std::move(arrivals),
            [&mode](std::size_t bytes) {
              return std::chrono::nanoseconds(
                  sum_ns(mode.bytes_per_second, static_cast<base::Bytes>(bytes)));
            })),
        mode_(mode) {}

  using Pieces = std::span<const std::span<std::byte>>;
  [[nodiscard]] const runtime::comm::CommOptions& options() const override {
    return inner_->options();
  }
  [[nodiscard]] std::string description() const override { return inner_->description(); }
  runtime::comm::Ticket start_all_reduce(std::span<std::byte> data, runtime::comm::ElementType type,
                                         runtime::comm::Reduction reduction) override {
    return started(inner_->start_all_reduce(data, type, reduction));
  }
  runtime::comm::Ticket start_all_reduce_pieces(Pieces pieces, runtime::comm::ElementType type,
                                                runtime::comm::Reduction reduction) override {
    return started(inner_->start_all_reduce_pieces(pieces, type, reduction));
  }
  void wait(runtime::comm::Ticket ticket) override { inner_->wait(ticket); }
  [[nodiscard]] bool done(runtime::comm::Ticket ticket) override { return inner_->done(ticket); }
  void check(std::string_view doing) override { inner_->check(doing); }
  void broadcast(std::span<std::byte> data, int root) override { inner_->broadcast(data, root); }
  void barrier() override { inner_->barrier(); }
  [[nodiscard]] std::vector<std::string> all_gather(std::string_view mine) override {
    return inner_->all_gather(mine);
  }
  void set_watch(runtime::comm::OperationWatch watch) override {
    inner_->set_watch(std::move(watch));
  }
  void abort(std::string_view reason) noexcept override { inner_->abort(reason); }

 private:
  runtime::comm::Ticket started(runtime::comm::Ticket ticket) {
    if (mode_.at_once) inner_->wait(ticket);
    return ticket;
  }

  const std::unique_ptr<Communicator> inner_;
  const Mode& mode_;
};

struct Work {
  const char* name;
  models::ModelOptions options;
};

std::vector<Work> all_work() {
  return {{"resnet20", {.batch = 32, .channels = 1, .height = 28, .width = 28, .classes = 10}},
          {"lstm", {.batch = 16, .hidden = 256, .vocabulary = 96, .seq_len = 64}},
          {"resnet50", {.batch = 4, .channels = 3, .height = 96, .width = 96, .classes = 1000}}};
}

void fill_inputs(api::Session& session, const graph::Graph& graph) {
  for (const auto& [name, plain] : bench::make_batch(graph)) session.set_input(name, plain);
  session.set_gradient_weight(1.0F / kRanks);
}

// On a machine that is not idle the fastest of many rounds says more than the median (--take
// fastest).
bool take_fastest = false;

template <class T>
T typical(std::vector<T> values) {
  if (take_fastest) return *std::min_element(values.begin(), values.end());
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A kind of step: link speed and whether sums are waited for at once.
using Kind = std::pair<double, bool>;

struct Measured {
  schedule::PlannedStep planned;
  std::int64_t recomputed = 0;
  std::map<Kind, double> step_ns;  // typical ones
  std::vector<std::int64_t> instruction_ns;
};

// All ranks run `rounds` steps of every kind in turn; rank 0 measures.
class Group {
 public:
  Group(const Work& work, const api::SessionOptions& options, int rounds)
      : model_(models::make_model(work.name, models::complete_options(work.name, work.options))),
        options_(options),
        rounds_(rounds) {}

  // Free steps alone say how quick the link has to be for the kinds that `choose` then lists.
  Measured run(const std::function<std::vector<double>(const Measured&)>& choose) {
    auto ends = runtime::comm::make_thread_group({.world_size = kRanks});
    const auto arrivals = std::make_shared<runtime::comm::Arrivals>(kRanks);
    std::vector<std::thread> ranks;
    ranks.reserve(kRanks);
    for (int rank = 0; rank < kRanks; ++rank) {
      ranks.emplace_back([&, rank] {
        work(std::make_shared<SwitchedCommunicator>(std::move(ends[static_cast<std::size_t>(rank)]),
                                                    arrivals, mode_),
             choose);
      });
    }
    for (std::thread& rank : ranks) rank.join();
    return measured_;
  }

 private:
  void work(const std::shared_ptr<Communicator>& end,
            const std::function<std::vector<double>(const Measured&)>& choose) {
    api::SessionOptions options = options_;
    options.ranks = end;
    auto made = api::Session::create(model_, {}, {}, options);
    api::Session& session = *std::get<std::unique_ptr<api::Session>>(made);
    const bool first = end->rank() == 0;
    if (first) {
      measured_.planned = session.planned();
      measured_.recomputed = session.report().recomputed_nodes;
    }
    for (int i = 0; i < 2; ++i) (void)step(session, *end, {0, false});  // warms caches and pages
    if (first) instruction_times_.clear();
    steps(session, *end, {{0, false}});
    if (first) {
      instruction_medians();
      kinds_ = {{0, false}};
      for (const double rate : choose(measured_)) {
        kinds_.emplace_back(rate, false);
        kinds_.emplace_back(rate, true);
      }
    }
    end->barrier();
    steps(session, *end, kinds_);
    if (first) instruction_medians();
  }

  void steps(api::Session& session, Communicator& end, const std::vector<Kind>& kinds) {
    std::map<Kind, std::vector<double>> times;
    for (int round = 0; round < rounds_; ++round)
      for (const Kind& kind : kinds) times[kind].push_back(step(session, end, kind));
    if (end.rank() != 0) return;
    for (const auto& [kind, ns] : times) measured_.step_ns[kind] = typical(ns);
  }

  double step(api::Session& session, Communicator& end, const Kind& kind) {
    fill_inputs(session, model_.graph);
    end.barrier();
    if (end.rank() == 0) {
      mode_.bytes_per_second = kind.first;
      mode_.at_once = kind.second;
    }
    end.barrier();
    runtime::StepRecord record;
    const bool recorded = end.rank() == 0 && kind.first == 0;
    const auto begin = Clock::now();
    (void)session.step(recorded ? &record : nullptr);
    const double ns = static_cast<double>((Clock::now() - begin).count());
    if (recorded) {
      instruction_times_.resize(record.instructions.size());
      for (std::size_t i = 0; i < record.instructions.size(); ++i) {
        const auto& at = record.instructions[i];
        instruction_times_[i].push_back(at.end_ns - at.begin_ns);
      }
    }
    return ns;
  }

  void instruction_medians() {
    measured_.instruction_ns.clear();
    for (const auto& times : instruction_times_) measured_.instruction_ns.push_back(typical(times));
  }

  const models::Model model_;
  const api::SessionOptions options_;
  const int rounds_;
  Mode mode_;
  std::vector<Kind> kinds_;
  std::vector<std::vector<std::int64_t>> instruction_times_;
  Measured measured_;
};

base::Bytes half_of_activations(const schedule::PlannedStep& whole) {
  const base::Bytes activations = schedule::measure_usage(whole.prepared, whole.schedule)
                                      .at_peak(schedule::Category::kActivation);
  return whole.schedule.arena_bytes - activations / 2;
}

// The plan with the measured time of each node's runs as its cost; a wait costs nothing by itself.
graph::PreparedGraph with_costs(const Measured& measured) {
  graph::PreparedGraph prepared = measured.planned.prepared;
  base::IdVector<graph::NodeId, std::vector<std::int64_t>> times(prepared.nodes.size());
  const auto& instructions = measured.planned.schedule.instructions;
  for (std::size_t i = 0; i < instructions.size(); ++i)
    times[instructions[i].node].push_back(measured.instruction_ns[i]);
  for (std::size_t i = 0; i < times.size(); ++i) {
    const graph::NodeId id(i);
    if (times[id].empty()) continue;
    const bool waits = prepared.graph.nodes[id].op == graph::OpKind::kAwait;
    prepared.nodes[id].cost_ns = waits ? 0 : typical(times[id]);
  }
  return prepared;
}

double predict(const graph::PreparedGraph& prepared, const Measured& measured, double rate) {
  const auto buckets =
      schedule::cut_buckets(prepared, measured.planned.schedule, graph::kDefaultBucketBytes);
  return static_cast<double>(
      schedule::estimate_step(prepared, measured.planned.schedule, buckets, [&](base::Bytes bytes) {
        return sum_ns(rate, bytes);
      }).step_ns);
}

struct Summed {
  double ns = 0;
  std::size_t operations = 0;
};
Summed all_sums(const Measured& measured, double rate) {
  Summed all;
  for (const auto& bucket : schedule::cut_buckets(
           measured.planned.prepared, measured.planned.schedule, graph::kDefaultBucketBytes)) {
    all.ns += static_cast<double>(sum_ns(rate, bucket.bytes));
    ++all.operations;
  }
  return all;
}

Json report(const std::string& name, const Measured& measured, const runtime::CostTable& alone) {
  Json list = Json::array();
  const double free_ns = measured.step_ns.at({0, false});
  const graph::PreparedGraph beside = with_costs(measured);
  graph::PreparedGraph profiled = measured.planned.prepared;
  (void)runtime::apply_costs(alone, profiled);
  for (const auto& [kind, overlap_ns] : measured.step_ns) {
    const auto [rate, at_once] = kind;
    if (rate == 0 || at_once) continue;
    const Summed sums = all_sums(measured, rate);
    const double bound_ns = std::max(free_ns, sums.ns);
    const double at_once_ns = measured.step_ns.at({rate, true});
    const double predicted_ns = predict(beside, measured, rate);
    const double profiled_ns = predict(profiled, measured, rate);
    list.push_back({{"work", name},
                    {"recomputed", measured.recomputed},
                    {"bytes_per_second", rate},
                    {"operations", sums.operations},
                    {"free_ms", free_ns * 1e-6},
                    {"sums_ms", sums.ns * 1e-6},
                    {"overlap_ms", overlap_ns * 1e-6},
                    {"at_once_ms", at_once_ns * 1e-6},
                    {"overlap_to_at_once", overlap_ns / at_once_ns},
                    {"overlap_to_bound", overlap_ns / bound_ns},
                    {"efficiency", free_ns / overlap_ns},
                    {"predicted_ms", predicted_ns * 1e-6},
                    {"prediction_off", predicted_ns / overlap_ns - 1},
                    {"profiled_ms", profiled_ns * 1e-6},
                    {"profiled_off", profiled_ns / overlap_ns - 1}});
    const Json& at = list.back();
    const auto number = [&](const char* key) { return at[key].get<double>(); };
    std::cout << fmt::format(
                     "{:<24} {:>5} {:>8.1f} {:>3} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.1f} {:>8.2f} "
                     "{:>8.2f} {:>7.1f}% {:>8.1f} {:>+6.1f}% {:>8.1f} {:>+6.1f}%",
                     name, measured.recomputed, rate * 1e-6, sums.operations, number("free_ms"),
                     number("sums_ms"), number("overlap_ms"), number("at_once_ms"),
                     number("overlap_to_at_once"), number("overlap_to_bound"),
                     100 * number("efficiency"), number("predicted_ms"),
                     100 * number("prediction_off"), number("profiled_ms"),
                     100 * number("profiled_off"))
              << std::endl;
  }
  return list;
}

runtime::CostTable profile_alone(const Work& work) {
  api::TrainOptions options;
  options.model = work.name;
  options.model_options = work.options;
  options.session.threads = 1;
  options.evaluate = false;
  return api::profile(options, {.repeats = 8, .seconds = 6}).table;
}

void run_work(const Work& work, int rounds, Json& all) {
  const runtime::CostTable alone = profile_alone(work);
  api::SessionOptions options;
  options.threads = 1;
  options.plan.planner = "keep_all";
  options.plan.find_floor = false;
  std::vector<double> rates;
  // Links on which all sums take half as long as the free step, and just as long.
  const auto choose = [&](const Measured& free) {
    if (!rates.empty()) return rates;
    base::Bytes bytes = 0;
    for (const auto& bucket : schedule::cut_buckets(free.planned.prepared, free.planned.schedule,
                                                    graph::kDefaultBucketBytes))
      bytes += bucket.bytes;
    const double free_s = free.step_ns.at({0, false}) * 1e-9;
    for (const double part : {0.5, 1.0})
      rates.push_back(static_cast<double>(bytes) / free_s / part);
    return rates;
  };
  const Measured kept = Group(work, options, rounds).run(choose);
  for (const Json& item : report(std::string(work.name) + ", all kept", kept, alone))
    all.push_back(item);
  options.plan.planner = "auto";
  options.plan.budget = {.kind = api::Budget::Kind::kBytes,
                         .bytes = half_of_activations(kept.planned)};
  const Measured half = Group(work, options, rounds).run(choose);
  for (const Json& item : report(std::string(work.name) + ", half kept", half, alone))
    all.push_back(item);
}

std::vector<std::string> names_of_work() {
  std::vector<std::string> names;
  for (const Work& work : all_work()) names.emplace_back(work.name);
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  std::string json_file, only, take = "median";
  int rounds = 11;
  CLI::App app("Sums over two ranks beside the step, over an artificial link.");
  app.add_option("--json", json_file, "all figures, into this file");
  app.add_option("--only", only, "one model alone")->check(CLI::IsMember(names_of_work()));
  app.add_option("--take", take, "of the rounds: median or fastest")
      ->check(CLI::IsMember({"median", "fastest"}));
  app.add_option("--rounds", rounds, "steps of each kind; default 11")
      ->check(CLI::Range(1, 10'000));
  CLI11_PARSE(app, argc, argv);
  take_fastest = take == "fastest";
  runtime::comm::ThreadPriority priority{};
  std::thread([&] { priority = runtime::comm::raise_thread_priority(); }).join();
  std::cout << fmt::format("communication threads: {} priority\n",
                           runtime::comm::thread_priority_name(priority));
  std::cout << fmt::format(
      "{:<24} {:>5} {:>8} {:>3} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>8} {:>7} {:>8} "
      "{:>7}\n",
      "times in ms", "again", "MB/s", "ops", "free", "sums", "overlap", "at once", "/at once",
      "/bound", "effic.", "predict", "off", "profile", "off");
  Json all = Json::array();
  for (const Work& work : all_work())
    if (only.empty() || only == work.name) run_work(work, rounds, all);
  if (!json_file.empty()) std::ofstream(json_file) << all.dump(2) << "\n";
  return 0;
}
