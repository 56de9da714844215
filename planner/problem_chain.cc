// The chain forms: Model C, with a list per quantity or with one number for all stages.

#include <limits>

#include "base/error.h"
#include "planner/chain/uniform.h"
#include "planner/problem_forms.h"

namespace reprise::planner {
namespace {

using base::input_error;

constexpr std::int64_t kMostStages = std::numeric_limits<std::int32_t>::max();

// One of the lists of a chain, of the length that L asks for.
std::vector<std::int64_t> read_list(const JsonObject& chain, std::string_view field,
                                    std::int64_t count) {
  const auto expect = [&](std::size_t size) {
    if (static_cast<std::int64_t>(size) == count) return;
    throw input_error("{}: {} has {} entries; with L = {} it has {}", chain.place(), field, size,
                      chain.whole("L", 1), count);
  };
  if (!chain.has(field) && (field == "of" || field == "ob")) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(count), 0);
  }
  expect(chain.array(field).size());
  return chain.wholes(field, 0);
}

std::int64_t optional_whole(const JsonObject& object, std::string_view field) {
  return object.has(field) ? object.whole(field, 0) : 0;
}

void check_record(std::string_view where, Bytes record, Bytes output) {
  if (record >= output) return;
  throw input_error("{}: b = {} and a = {}; b counts all that Fall leaves, x among it, so b >= a",
                    where, record, output);
}

void check_chain_sums(const ChainFile& file) {
  std::int64_t bytes = 0;
  std::int64_t cost = file.chain.loss_cost;
  const auto add_bytes = [&](Bytes more) {
    bytes = base::checked_add(bytes, more, "bytes of the chain");
  };
  const auto add_cost = [&](std::int64_t more) {
    cost = base::checked_add(cost, more, "cost of the chain");
  };
  add_bytes(file.chain.input);
  add_bytes(file.chain.input_gradient);
  add_bytes(file.chain.loss_workspace);
  for (const Stage& stage : file.chain.stages) {
    const StageOption& option = stage.options.front();
    for (const Bytes more : {stage.output, stage.output_gradient, option.record,
                             stage.forward_workspace, option.backward_workspace}) {
      add_bytes(more);
    }
    add_cost(stage.forward_cost);
    add_cost(option.backward_cost);
  }
}

}  // namespace

ChainFile read_chain(const JsonObject& chain, Ignored& ignored) {
  static const FieldSet known = {"L", "a", "b", "g", "uf", "ub", "of", "ob", "ul", "ol"};
  chain.collect_unknown(known, ignored);
  const std::int64_t length = chain.whole("L", 1);
  if (length > kMostStages) {
    throw input_error("{}: L = {}; at most {} stages", chain.place(), length, kMostStages);
  }
  const auto a = read_list(chain, "a", length + 1);
  const auto b = read_list(chain, "b", length + 1);
  const auto g = read_list(chain, "g", length + 1);
  const auto uf = read_list(chain, "uf", length);
  const auto ub = read_list(chain, "ub", length);
  const auto of = read_list(chain, "of", length);
  const auto ob = read_list(chain, "ob", length);
  ChainFile result;
  result.chain.input = a[0];
  result.chain.input_gradient = g[0];
  result.chain.loss_cost = optional_whole(chain, "ul");
  result.chain.loss_workspace = optional_whole(chain, "ol");
  for (std::size_t i = 0; i < uf.size(); ++i) {
    check_record(fmt::format("{}: stage {}", chain.place(), i + 1), b[i + 1], a[i + 1]);
    result.chain.stages.push_back({.output = a[i + 1],
                                   .output_gradient = g[i + 1],
                                   .forward_cost = uf[i],
                                   .forward_workspace = of[i],
                                   .options = {{.forward_cost = uf[i],
                                                .backward_cost = ub[i],
                                                .record = b[i + 1],
                                                .forward_workspace = of[i],
                                                .backward_workspace = ob[i]}}});
  }
  check_chain_sums(result);
  return result;
}

UniformChainFile read_uniform_chain(const JsonObject& file) {
  UniformChain chain;
  chain.steps = file.whole("steps", 1);
  chain.a = file.whole("a", 0);
  chain.b = file.whole("b", 0);
  chain.g = file.whole("g", 0);
  chain.uf = file.whole("uf", 0);
  chain.ub = file.whole("ub", 0);
  chain.of = optional_whole(file, "of");
  chain.ob = optional_whole(file, "ob");
  chain.ul = optional_whole(file, "ul");
  chain.ol = optional_whole(file, "ol");
  check_record("the uniform chain", chain.b, chain.a);
  validate(chain);
  return {chain};
}

}  // namespace reprise::planner
