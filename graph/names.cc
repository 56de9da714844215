#include "graph/names.h"

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace reprise::graph {
namespace {

// What the outputs of an op after its first are called.
const std::vector<std::string_view>& further_outputs(OpKind op) {
  using enum OpKind;
  static const std::vector<std::string_view> none, statistics{"mean", "var"},
      norm_grad{"gamma", "beta"}, running{"var"}, pool{"indices"}, lstm{"h_n", "c_n", "saved"},
      lstm_grad{"h0", "c0", "w_ih", "w_hh", "bias"}, gru{"h_n", "saved"},
      gru_grad{"h0", "w_ih", "w_hh", "bias"}, sgd{"momentum"}, adam{"m", "v"};
  switch (op) {
    case kBatchNorm:
    case kLayerNorm:
      return statistics;
    case kBatchNormGrad:
    case kLayerNormGrad:
      return norm_grad;
    case kBatchNormUpdate:
      return running;
    case kMaxPool:
      return pool;
    case kLstm:
      return lstm;
    case kLstmGrad:
      return lstm_grad;
    case kGru:
      return gru;
    case kGruGrad:
      return gru_grad;
    case kSgd:
      return sgd;
    case kAdam:
      return adam;
    default:
      return none;
  }
}

bool is_name_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '.' || c == '/' || c == '-';
}

}  // namespace

bool is_name(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), is_name_character);
}

std::string output_name(OpKind op, std::string_view node, std::size_t output) {
  if (output == 0) return std::string(node);
  const auto& further = further_outputs(op);
  REPRISE_CHECK(output <= further.size(), "op '{}' has no name for output {}", op_info(op).name,
                output);
  return fmt::format("{}.{}", node, further[output - 1]);
}

}  // namespace reprise::graph
