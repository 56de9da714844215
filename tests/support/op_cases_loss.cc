#include "fmt/format.h"

#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

using graph::LossAttributes;
using graph::Reduction;

struct Labels {
  std::string name;
  std::vector<double> values;
};

void add_cross_entropy(std::vector<OpCase>& cases, const std::string& name, std::int64_t classes,
                       const std::vector<double>& labels, std::int64_t ignore_index = -100) {
  for (const Reduction reduction : {Reduction::kMean, Reduction::kSum}) {
    const LossAttributes attributes{reduction, ignore_index};
    const std::string suffix = reduction == Reduction::kSum ? "_sum" : "";
    cases.push_back({"softmax_cross_entropy/" + name + suffix, [=](CaseBuilder& k) {
                       const auto rows = static_cast<std::int64_t>(labels.size());
                       const ValueId logits = k.x("logits", {rows, classes}, between(-3, 3));
                       const ValueId ids = k.ids("labels", {rows}, labels);
                       k.out(k->softmax_cross_entropy(logits, ids, attributes));
                       k.fetch(k->correct_count(logits, ids));
                     }});
  }
}

}  // namespace

void add_loss_cases(std::vector<OpCase>& cases) {
  add_cross_entropy(cases, "plain", 5, {0, 4, 2, 2});
  add_cross_entropy(cases, "one_row", 3, {1});
  add_cross_entropy(cases, "one_class", 1, {0, 0});
  add_cross_entropy(cases, "many_classes", 37, {36, 0, 17});
  add_cross_entropy(cases, "some_ignored", 4, {-100, 1, -100, 3, 0});
  add_cross_entropy(cases, "all_ignored", 4, {-100, -100});
  cases.push_back({"softmax_cross_entropy/ignores_a_class", [](CaseBuilder& k) {
                     const ValueId logits = k.x("logits", {4, 3});
                     const ValueId labels = k.ids("labels", {4}, {0, 2, 1, 2});
                     k.out(k->softmax_cross_entropy(logits, labels, {Reduction::kMean, 2}));
                   }});
  cases.push_back(
      {"softmax_cross_entropy/large_logits", [](CaseBuilder& k) {
         const ValueId logits = k.x("logits", {2, 3}, given({900, -900, 899, -500, -501, -502}));
         k.out(k->softmax_cross_entropy(logits, k.ids("labels", {2}, {2, 0})));
       }});
  cases.push_back(
      {"correct_count/ties_go_to_the_first", [](CaseBuilder& k) {
         const ValueId logits = k.constant("logits", {3, 3}, given({1, 1, 0, 2, 2, 2, 0, 5, 5}));
         k.fetch(k->correct_count(logits, k.ids("labels", {3}, {0, 1, 1})));
         k.out(k->scale(k.x("other", {1}), 1.0));
       }});
  for (const Reduction reduction : {Reduction::kMean, Reduction::kSum}) {
    const std::string suffix = reduction == Reduction::kSum ? "_sum" : "";
    for (const Shape& shape : {Shape{}, Shape{5}, Shape{2, 3, 4, 1}}) {
      cases.push_back(
          {fmt::format("mean_squared_error/rank{}", shape.size()) + suffix, [=](CaseBuilder& k) {
             k.out(
                 k->mean_squared_error(k.x("prediction", shape), k.x("target", shape), reduction));
           }});
    }
  }
}

}  // namespace reprise::test
