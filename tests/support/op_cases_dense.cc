// Convolution and matrix products. Odd sizes on purpose: primes, 1x1, batch 1, channels that fill
// no vector register.

#include "fmt/format.h"

#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

using graph::Conv2dAttributes;
using graph::MatmulAttributes;

struct ConvCase {
  std::string name;
  Shape x, w;
  Conv2dAttributes attributes{};
  bool bias = false;
};

void add_conv(std::vector<OpCase>& cases, ConvCase c) {
  cases.push_back({"conv2d/" + c.name, [c](CaseBuilder& k) {
                     const ValueId x = k.x("x", c.x);
                     const ValueId w = k.w("w", c.w);
                     if (c.bias) {
                       k.out(k->conv2d(x, w, k.w("bias", {c.w[0]}), c.attributes));
                     } else {
                       k.out(k->conv2d(x, w, c.attributes));
                     }
                   }});
}

// x -> conv w -> tanh -> conv w [-> tanh -> conv w]: the gradient of w accumulates in place.
void add_shared_conv(std::vector<OpCase>& cases, int uses) {
  cases.push_back({fmt::format("conv2d/weight_used_{}_times", uses), [uses](CaseBuilder& k) {
                     const ValueId w = k.w("w", {5, 5, 3, 3});
                     const ValueId bias = k.w("bias", {5});
                     ValueId h = k.x("x", {2, 5, 4, 3});
                     for (int i = 0; i < uses; ++i) {
                       h = k->tanh(k->conv2d(h, w, bias, {.padding = {1, 1}}));
                     }
                     k.out(h);
                   }});
}

struct MatmulCase {
  std::string name;
  Shape a, b;
  MatmulAttributes attributes{};
  bool bias = false;
};

void add_matmul(std::vector<OpCase>& cases, MatmulCase c) {
  cases.push_back({"matmul/" + c.name, [c](CaseBuilder& k) {
                     std::vector<ValueId> inputs{k.x("a", c.a), k.w("b", c.b)};
                     const auto p = c.b[c.b.size() - (c.attributes.transpose_b ? 2 : 1)];
                     if (c.bias) inputs.push_back(k.w("bias", {p}));
                     k.out(k->append(graph::OpKind::kMatmul, inputs, c.attributes, "y")[0]);
                   }});
}

void add_shared_linear(std::vector<OpCase>& cases, int uses) {
  cases.push_back({fmt::format("matmul/weight_used_{}_times", uses), [uses](CaseBuilder& k) {
                     const ValueId w = k.w("w", {7, 7});
                     const ValueId bias = k.w("bias", {7});
                     ValueId h = k.x("x", {3, 7});
                     for (int i = 0; i < uses; ++i) h = k->tanh(k->linear(h, w, bias));
                     k.out(h);
                   }});
}

}  // namespace

void add_dense_cases(std::vector<OpCase>& cases) {
  add_conv(cases, {"3x3", {2, 3, 5, 6}, {4, 3, 3, 3}});
  add_conv(cases, {"3x3_bias_padding", {2, 3, 5, 6}, {4, 3, 3, 3}, {.padding = {1, 1}}, true});
  add_conv(cases, {"1x1", {2, 17, 3, 5}, {13, 17, 1, 1}, {}, true});
  add_conv(cases, {"1x1_image_1x1", {1, 5, 1, 1}, {3, 5, 1, 1}});
  add_conv(cases, {"one_of_everything", {1, 1, 1, 1}, {1, 1, 1, 1}, {}, true});
  add_conv(cases, {"1x1_stride2", {2, 6, 7, 7}, {10, 6, 1, 1}, {.stride = {2, 2}}});
  add_conv(
      cases,
      {"3x3_stride2_padding1", {2, 4, 7, 7}, {6, 4, 3, 3}, {.stride = {2, 2}, .padding = {1, 1}}});
  // 9 pixels, kernel 3, stride 2: the last column is never read.
  add_conv(cases, {"stride_leaves_rest", {1, 2, 6, 8}, {3, 2, 3, 3}, {.stride = {2, 2}}, true});
  add_conv(cases,
           {"stem_7x7", {1, 3, 15, 13}, {5, 3, 7, 7}, {.stride = {2, 2}, .padding = {3, 3}}});
  add_conv(
      cases,
      {"uneven_kernel", {2, 3, 6, 9}, {4, 3, 1, 5}, {.stride = {1, 2}, .padding = {0, 2}}, true});
  add_conv(cases,
           {"uneven_stride", {1, 2, 9, 5}, {3, 2, 3, 2}, {.stride = {3, 1}, .padding = {2, 0}}});
  add_conv(cases,
           {"dilation2", {1, 3, 9, 8}, {2, 3, 3, 3}, {.padding = {2, 2}, .dilation = {2, 2}}});
  add_conv(cases, {"dilation_uneven_stride",
                   {2, 2, 11, 9},
                   {3, 2, 3, 3},
                   {.stride = {2, 1}, .padding = {1, 3}, .dilation = {2, 3}}});
  add_conv(cases, {"groups2", {2, 6, 5, 5}, {4, 3, 3, 3}, {.padding = {1, 1}, .groups = 2}, true});
  add_conv(cases,
           {"depthwise", {2, 5, 6, 6}, {5, 1, 3, 3}, {.padding = {1, 1}, .groups = 5}, true});
  add_conv(cases, {"depthwise_multiplier", {1, 3, 5, 4}, {6, 1, 3, 3}, {.groups = 3}});
  add_conv(cases,
           {"groups_of_16", {1, 32, 4, 4}, {32, 16, 3, 3}, {.padding = {1, 1}, .groups = 2}});
  add_conv(cases, {"channels_16", {2, 16, 5, 5}, {16, 16, 3, 3}, {.padding = {1, 1}}, true});
  add_conv(cases, {"channels_prime", {1, 19, 4, 5}, {23, 19, 3, 3}, {.padding = {1, 1}}});
  add_conv(cases, {"padding_wider_than_image", {1, 2, 1, 2}, {2, 2, 3, 3}, {.padding = {1, 1}}});
  add_shared_conv(cases, 2);
  add_shared_conv(cases, 3);

  for (const bool ta : {false, true})
    for (const bool tb : {false, true}) {
      const std::string kind = std::string(ta ? "t" : "n") + (tb ? "t" : "n");
      const Shape a = ta ? Shape{7, 5} : Shape{5, 7};
      const Shape b = tb ? Shape{3, 7} : Shape{7, 3};
      add_matmul(cases, {kind, a, b, {ta, tb}});
      add_matmul(cases, {kind + "_bias", a, b, {ta, tb}, true});
      Shape batched_a = a;
      Shape batched_b = b;
      batched_a.insert(batched_a.begin(), {2, 3});
      batched_b.insert(batched_b.begin(), {2, 3});
      add_matmul(cases, {kind + "_batched", batched_a, batched_b, {ta, tb}});
    }
  add_matmul(cases, {"batched_bias", {3, 2, 4}, {3, 4, 5}, {}, true});
  add_matmul(cases, {"one_by_one", {1, 1}, {1, 1}});
  add_matmul(cases, {"row_times_column", {1, 13}, {13, 1}});
  add_matmul(cases, {"column_times_row", {11, 1}, {1, 17}, {}, true});
  add_matmul(cases, {"wide", {2, 33}, {33, 65}, {}, true});
  add_shared_linear(cases, 2);
  add_shared_linear(cases, 3);
  cases.push_back({"matmul/same_value_twice", [](CaseBuilder& k) {
                     const ValueId w = k.w("w", {4, 4});
                     k.out(k->matmul(w, w));
                   }});
  cases.push_back({"matmul/linear_over_three_axes", [](CaseBuilder& k) {
                     k.out(k->linear(k.x("x", {2, 3, 5}), k.w("w", {4, 5}), k.w("bias", {4})));
                   }});
}

}  // namespace reprise::test
