#include "fmt/format.h"

#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

void add_concat(std::vector<OpCase>& cases, std::string name, std::vector<Shape> parts,
                std::int64_t axis) {
  cases.push_back({"concat/" + name, [parts, axis](CaseBuilder& k) {
                     std::vector<ValueId> inputs;
                     for (const Shape& part : parts) {
                       inputs.push_back(k.x(fmt::format("x{}", inputs.size()), part));
                     }
                     k.out(k->concat(inputs, axis));
                   }});
}

void add_slice(std::vector<OpCase>& cases, std::string name, Shape x, std::int64_t axis,
               std::int64_t begin, std::int64_t end) {
  cases.push_back(
      {"slice/" + name, [=](CaseBuilder& k) { k.out(k->slice(k.x("x", x), axis, begin, end)); }});
}

void add_broadcast(std::vector<OpCase>& cases, std::string name, Shape from, Shape to) {
  cases.push_back(
      {"broadcast/" + name, [=](CaseBuilder& k) { k.out(k->broadcast(k.x("x", from), to)); }});
}

void add_reduce(std::vector<OpCase>& cases, std::string name, Shape x, graph::Ints axes) {
  for (const bool keep : {false, true}) {
    const std::string suffix = name + (keep ? "_kept" : "");
    cases.push_back({"reduce_sum/" + suffix,
                     [=](CaseBuilder& k) { k.out(k->reduce_sum(k.x("x", x), axes, keep)); }});
    cases.push_back({"reduce_mean/" + suffix,
                     [=](CaseBuilder& k) { k.out(k->reduce_mean(k.x("x", x), axes, keep)); }});
  }
}

}  // namespace

void add_shape_cases(std::vector<OpCase>& cases) {
  cases.push_back({"reshape/between_ops", [](CaseBuilder& k) {
                     const ValueId h = k->tanh(k.x("x", {2, 3, 4}));
                     k.out(k->sigmoid(k->reshape(h, {6, -1})));
                   }});
  cases.push_back({"reshape/of_a_reshape_of_an_input", [](CaseBuilder& k) {
                     const ValueId x = k.x("x", {2, 6});
                     k.out(k->tanh(k->reshape(k->reshape(x, {12}), {3, 2, 2})));
                   }});
  cases.push_back({"reshape/flatten_an_image", [](CaseBuilder& k) {
                     const ValueId image = k.x("x", {2, 17, 3, 3});
                     const ValueId w = k.w("w", {17, 17, 1, 1});
                     k.out(k->linear(k->flatten(k->conv2d(image, w)), k.w("fc", {3, 153})));
                   }});
  add_concat(cases, "channels", {{2, 3, 4, 4}, {2, 5, 4, 4}}, 1);
  add_concat(cases, "channels_16", {{1, 16, 3, 3}, {1, 32, 3, 3}, {1, 16, 3, 3}}, 1);
  add_concat(cases, "rows", {{1, 7}, {3, 7}, {2, 7}}, 0);
  add_concat(cases, "columns", {{3, 1}, {3, 4}}, 1);
  add_concat(cases, "last_of_four", {{2, 2, 3, 1}, {2, 2, 3, 5}}, 3);
  add_concat(cases, "single", {{3, 2}}, 0);
  cases.push_back({"concat/same_value_twice", [](CaseBuilder& k) {
                     const ValueId x = k.x("x", {2, 3});
                     k.out(k->concat({x, x}, 1));
                   }});
  cases.push_back({"concat/integers", [](CaseBuilder& k) {
                     const ValueId a = k.ids("a", {2, 2}, 0, 9);
                     k.fetch(k->concat({a, k.ids("b", {3, 2}, 0, 9)}, 0));
                     k.fetch(k->slice(a, 1, 1, 2));
                     k.out(k->scale(k.x("other", {1}), 1.0));
                   }});
  add_slice(cases, "channels", {2, 7, 3, 3}, 1, 2, 5);
  add_slice(cases, "first_rows", {5, 4}, 0, 0, 2);
  add_slice(cases, "last_column", {3, 6}, 1, 5, 6);
  add_slice(cases, "everything", {2, 3}, 0, 0, 2);
  cases.push_back({"slice/two_parts_of_one_value", [](CaseBuilder& k) {
                     const ValueId x = k.x("x", {2, 5});
                     k.out(k->mul(k->slice(x, 1, 0, 3), k->slice(x, 1, 2, 5)));
                   }});
  add_broadcast(cases, "scalar", {}, {3, 4});
  add_broadcast(cases, "row", {4}, {2, 3, 4});
  add_broadcast(cases, "column", {3, 1}, {3, 4});
  add_broadcast(cases, "channel", {5, 1, 1}, {2, 5, 3, 4});
  add_broadcast(cases, "inner_axes", {2, 1, 4, 1}, {2, 3, 4, 5});
  add_broadcast(cases, "same_shape", {2, 3}, {2, 3});
  add_broadcast(cases, "new_leading_one", {3}, {1, 3});
  add_reduce(cases, "all", {3, 4, 5}, {});
  add_reduce(cases, "first", {3, 4, 5}, {0});
  add_reduce(cases, "middle", {3, 4, 5}, {1});
  add_reduce(cases, "last", {7, 13}, {1});
  add_reduce(cases, "image_axes", {2, 5, 3, 4}, {2, 3});
  add_reduce(cases, "all_but_channels", {2, 5, 3, 4}, {0, 2, 3});
  add_reduce(cases, "axes_of_one", {1, 4, 1}, {0, 2});
  add_reduce(cases, "every_other", {2, 3, 4, 5}, {0, 2});
  add_reduce(cases, "every_other_of_five", {2, 3, 2, 3, 4}, {0, 2, 4});
  cases.push_back({"fill/times_x", [](CaseBuilder& k) {
                     k.out(k->mul(k.x("x", {2, 3}), k->fill({2, 3}, -1.25)));
                   }});
}

}  // namespace reprise::test
