#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

void add_batch_norm(std::vector<OpCase>& cases, std::string name, Shape shape,
                    double epsilon = 1e-5) {
  cases.push_back({"batch_norm/" + name, [shape, epsilon](CaseBuilder& k) {
                     const Shape channels{shape[1]};
                     const ValueId x = k.x("x", shape, between(-2, 3));
                     const ValueId gamma = k.w("gamma", channels, between(0.5, 1.5));
                     const ValueId beta = k.w("beta", channels);
                     const ValueId mean = k.state("running_mean", channels);
                     const ValueId var = k.state("running_var", channels, between(0.5, 2));
                     k.out(k->batch_norm(x, gamma, beta, mean, var, 0.1, {.epsilon = epsilon}));
                   }});
}

// Over ranks as one of them sees it while the others' values are zeros: all_reduce is the identity
// here, so their rows of the moments stay zero, which is what they are for x = 0.
void add_over_ranks(std::vector<OpCase>& cases, std::string name, Shape shape,
                    std::vector<double> parts) {
  using enum graph::OpKind;
  cases.push_back(
      {"batch_norm_over_ranks/" + name, [shape, parts](CaseBuilder& k) {
         const Shape channels{shape[1]};
         const ValueId x = k.x("x", shape, between(-2, 3));
         const ValueId gamma = k.w("gamma", channels, between(0.5, 1.5));
         const ValueId beta = k.w("beta", channels);
         const ValueId of = k.ids("parts", {static_cast<graph::Dim>(parts.size())}, parts);
         const graph::NoAttributes none;
         ValueId moments = k->append(kBatchNormMoments, {x, of}, none, "moments")[0];
         moments = k->append(kAllReduce, {moments}, none, "reduce")[0];
         moments = k->append(kAwait, {moments}, none, "await")[0];
         const graph::CombineAttributes values{graph::element_count(shape) / shape[0] / shape[1]};
         const auto all = k->append(kBatchNormCombine, {moments, of}, values, "combine");
         for (const ValueId each : all) k.fetch(each);
         k.out(k->append(kBatchNormApply, {x, gamma, beta, all[0], all[1], of},
                         graph::NormAttributes{}, "apply")[0]);
       }});
}

void add_layer_norm(std::vector<OpCase>& cases, std::string name, Shape shape,
                    double epsilon = 1e-5) {
  cases.push_back({"layer_norm/" + name, [shape, epsilon](CaseBuilder& k) {
                     const Shape features{shape.back()};
                     k.out(k->layer_norm(k.x("x", shape, between(-2, 3)),
                                         k.w("gamma", features, between(0.5, 1.5)),
                                         k.w("beta", features), {.epsilon = epsilon}));
                   }});
}

}  // namespace

void add_norm_cases(std::vector<OpCase>& cases) {
  add_batch_norm(cases, "image", {3, 5, 4, 3});
  add_batch_norm(cases, "channels_16", {2, 16, 3, 3});
  add_batch_norm(cases, "channels_prime", {2, 19, 3, 2});
  add_batch_norm(cases, "batch_1", {1, 4, 3, 5});
  add_batch_norm(cases, "two_axes", {7, 6});
  add_batch_norm(cases, "two_values_per_channel", {2, 3, 1, 1}, 0.1);
  add_batch_norm(cases, "three_axes", {3, 4, 5}, 1e-3);
  add_over_ranks(cases, "alone", {3, 5, 4, 3}, {0, 3});
  add_over_ranks(cases, "of_three", {3, 16, 3, 3}, {1, 2, 3, 1});
  add_over_ranks(cases, "padded", {4, 19, 2, 3}, {0, 3, 4});
  add_over_ranks(cases, "others_empty", {5, 4, 3}, {2, 0, 0, 4, 0});
  add_over_ranks(cases, "two_axes", {7, 6}, {1, 7, 6});
  cases.push_back({"batch_norm/inference", [](CaseBuilder& k) {
                     // No gradient flows through it; it is only compared.
                     const ValueId x = k.constant("x", {2, 5, 3, 4});
                     k.fetch(k->batch_norm_inference(
                         x, k.constant("gamma", {5}), k.constant("beta", {5}),
                         k.constant("mean", {5}), k.constant("var", {5}, between(0.1, 2)),
                         {.epsilon = 1e-3}));
                     k.out(k->scale(k.x("other", {2}), 2.0));
                   }});
  add_layer_norm(cases, "rows", {5, 7});
  add_layer_norm(cases, "three_axes", {2, 3, 16});
  add_layer_norm(cases, "prime", {3, 31}, 1e-3);
  add_layer_norm(cases, "one_row", {1, 9});
  add_layer_norm(cases, "one_axis", {6});
}

}  // namespace reprise::test
