#include "fmt/format.h"

#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

using Unary = ValueId (graph::Builder::*)(ValueId, std::string_view);

void add_unary(std::vector<OpCase>& cases, std::string name, Unary op, Fill fill) {
  for (const Shape& shape : {Shape{}, Shape{1}, Shape{7, 5}, Shape{2, 19, 3, 3}}) {
    const std::string rank = fmt::format("/rank{}", shape.size());
    cases.push_back({name + rank, [op, fill, shape](CaseBuilder& k) {
                       k.out((k.b().*op)(k.x("x", shape, fill), {}));
                     }});
  }
}

}  // namespace

void add_pointwise_cases(std::vector<OpCase>& cases) {
  add_unary(cases, "relu", &graph::Builder::relu, away_from_zero());
  add_unary(cases, "sigmoid", &graph::Builder::sigmoid, between(-4, 4));
  add_unary(cases, "tanh", &graph::Builder::tanh, between(-3, 3));
  add_unary(cases, "gelu", &graph::Builder::gelu, between(-4, 4));
  cases.push_back({"relu/of_a_relu", [](CaseBuilder& k) {
                     k.out(k->relu(k->relu(k.x("x", {3, 3}, away_from_zero()))));
                   }});
  cases.push_back({"add/two", [](CaseBuilder& k) {
                     k.out(k->add(k.x("a", {3, 5}), k.x("b", {3, 5})));
                   }});
  cases.push_back({"add/same_value_twice", [](CaseBuilder& k) {
                     const ValueId a = k.x("a", {3, 5});
                     k.out(k->add(a, a));
                   }});
  cases.push_back({"add/integers", [](CaseBuilder& k) {
                     k.fetch(k->add(k.ids("a", {5}, -9, 9), k.ids("b", {5}, 0, 100)));
                     k.out(k->scale(k.x("other", {1}), 1.0));
                   }});
  cases.push_back({"mul/two", [](CaseBuilder& k) {
                     k.out(k->mul(k.x("a", {2, 3, 5}), k.x("b", {2, 3, 5})));
                   }});
  cases.push_back({"mul/square", [](CaseBuilder& k) {
                     const ValueId a = k.x("a", {7});
                     k.out(k->mul(a, a));
                   }});
  cases.push_back({"scale/negative", [](CaseBuilder& k) {
                     k.out(k->scale(k.x("x", {3, 4}), -0.75));
                   }});
  cases.push_back({"scale/zero", [](CaseBuilder& k) { k.out(k->scale(k.x("x", {3}), 0.0)); }});
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    cases.push_back({fmt::format("dropout/{}", static_cast<int>(100 * p)), [p](CaseBuilder& k) {
                       k.out(k->dropout(k.x("x", {5, 13}), p));
                     }});
  }
  cases.push_back({"dropout/two_streams", [](CaseBuilder& k) {
                     const ValueId x = k.x("x", {3, 17, 2, 2});
                     k.out(k->add(k->dropout(x, 0.5), k->dropout(x, 0.5)));
                   }});
  cases.push_back({"positive/signs_and_zero", [](CaseBuilder& k) {
                     const ValueId x = k.x("x", {6}, given({-1, 0, 0.5, -0.25, 2, 1e-30}));
                     k.fetch(k->positive(x));
                     k.out(k->scale(x, 3.0));
                   }});
}

}  // namespace reprise::test
