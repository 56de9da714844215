#include "fmt/format.h"

#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

using graph::Pool2dAttributes;

struct PoolCase {
  std::string name;
  Shape x;
  Pool2dAttributes attributes;
};

std::vector<PoolCase> windows() {
  return {
      {"2x2", {2, 3, 4, 6}, {.kernel = {2, 2}, .stride = {2, 2}}},
      {"3x3_stride2_padding1",
       {2, 5, 7, 8},
       {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}},
      {"overlapping", {1, 4, 5, 5}, {.kernel = {3, 3}, .stride = {1, 1}}},
      {"rest_unread", {1, 2, 5, 7}, {.kernel = {2, 2}, .stride = {2, 2}}},
      {"gaps_between_windows", {1, 3, 7, 8}, {.kernel = {2, 2}, .stride = {3, 3}}},
      {"uneven", {2, 3, 6, 5}, {.kernel = {3, 2}, .stride = {1, 2}, .padding = {1, 1}}},
      {"whole_image", {3, 17, 3, 5}, {.kernel = {3, 5}, .stride = {1, 1}}},
      {"channels_16", {2, 16, 4, 4}, {.kernel = {2, 2}, .stride = {2, 2}}},
      {"1x1", {1, 1, 1, 1}, {.kernel = {1, 1}, .stride = {1, 1}}},
  };
}

}  // namespace

void add_pool_cases(std::vector<OpCase>& cases) {
  for (const PoolCase& c : windows()) {
    cases.push_back({"max_pool/" + c.name, [c](CaseBuilder& k) {
                       k.out(k->max_pool(k.x("x", c.x, distinct()), c.attributes));
                     }});
    for (const bool count_padding : {false, true}) {
      Pool2dAttributes attributes = c.attributes;
      attributes.count_padding = count_padding;
      cases.push_back(
          {"avg_pool/" + c.name + (count_padding ? "_counting_padding" : ""),
           [c, attributes](CaseBuilder& k) { k.out(k->avg_pool(k.x("x", c.x), attributes)); }});
    }
  }
  cases.push_back({"max_pool/all_negative_with_padding", [](CaseBuilder& k) {
                     const Fill negative{.kind = Fill::Kind::kDistinct, .low = -9, .high = -1};
                     k.out(k->max_pool(k.x("x", {1, 2, 5, 5}, negative),
                                       {.kernel = {3, 3}, .stride = {2, 2}, .padding = {1, 1}}));
                   }});
  for (const Shape& shape : {Shape{2, 3, 5, 4}, Shape{1, 19, 1, 1}, Shape{3, 16, 7, 7}}) {
    const std::string name = std::to_string(shape[1]) + "_channels";
    cases.push_back({"global_avg_pool/" + name,
                     [shape](CaseBuilder& k) { k.out(k->global_avg_pool(k.x("x", shape))); }});
  }
  for (const int factor : {1, 2, 3}) {
    cases.push_back({fmt::format("upsample/by_{}", factor), [factor](CaseBuilder& k) {
                       k.out(k->upsample(k.x("x", {2, 5, 3, 2}), factor));
                     }});
  }
}

}  // namespace reprise::test
