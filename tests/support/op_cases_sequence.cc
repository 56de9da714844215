#include "fmt/format.h"

#include "tests/support/op_cases.h"

namespace reprise::test {
namespace {

struct Sizes {
  std::int64_t steps, batch, inputs, hidden;
};

std::vector<std::pair<std::string, Sizes>> sizes() {
  return {{"small", {3, 2, 4, 5}},      {"one_step", {1, 3, 2, 3}},    {"one_sample", {4, 1, 3, 2}},
          {"one_of_all", {1, 1, 1, 1}}, {"hidden_16", {3, 2, 16, 16}}, {"prime", {5, 3, 7, 11}}};
}

struct Weights {
  ValueId w_ih, w_hh, bias;
};

Weights weights(CaseBuilder& k, int gates, std::int64_t inputs, std::int64_t hidden) {
  return {k.w("w_ih", {gates * hidden, inputs}), k.w("w_hh", {gates * hidden, hidden}),
          k.w("bias", {4 * hidden})};
}

// `chunks` nodes that carry (h, c) and share their weights, whose gradients then accumulate.
void lstm_chunks(CaseBuilder& k, const Sizes& s, int chunks) {
  const Weights w = weights(k, 4, s.inputs, s.hidden);
  graph::Builder::Recurrent r{{}, k.x("h0", {s.batch, s.hidden}), k.x("c0", {s.batch, s.hidden})};
  for (int i = 0; i < chunks; ++i) {
    const ValueId x = k.x(fmt::format("x{}", i), {s.steps, s.batch, s.inputs});
    r = k->lstm(x, r.h_n, r.c_n, w.w_ih, w.w_hh, w.bias);
    k.out(r.y);
  }
  k.out(r.h_n);
  k.out(r.c_n);
}

void gru_chunks(CaseBuilder& k, const Sizes& s, int chunks) {
  const Weights w = weights(k, 3, s.inputs, s.hidden);
  ValueId h = k.x("h0", {s.batch, s.hidden});
  for (int i = 0; i < chunks; ++i) {
    const ValueId x = k.x(fmt::format("x{}", i), {s.steps, s.batch, s.inputs});
    const auto r = k->gru(x, h, w.w_ih, w.w_hh, w.bias);
    k.out(r.y);
    h = r.h_n;
  }
  k.out(h);
}

void add_recurrent(std::vector<OpCase>& cases, const std::string& cell,
                   void (*chunks)(CaseBuilder&, const Sizes&, int)) {
  for (const auto& [name, s] : sizes()) {
    cases.push_back({cell + "/" + name, [=, s = s](CaseBuilder& k) { chunks(k, s, 1); }});
  }
  for (const int count : {2, 3}) {
    cases.push_back({cell + fmt::format("/{}_chunks", count), [=](CaseBuilder& k) {
                       chunks(k, {2, 3, 4, 5}, count);
                     }});
  }
}

// Only one output of the layer is used: the gradients of the others are zeros.
void add_single_outputs(std::vector<OpCase>& cases) {
  cases.push_back({"lstm/only_c_n_used", [](CaseBuilder& k) {
                     const Weights w = weights(k, 4, 3, 4);
                     const auto r = k->lstm(k.x("x", {3, 2, 3}), k.constant("h0", {2, 4}),
                                            k.constant("c0", {2, 4}), w.w_ih, w.w_hh, w.bias);
                     k.out(r.c_n);
                   }});
  cases.push_back({"gru/only_h_n_used", [](CaseBuilder& k) {
                     const Weights w = weights(k, 3, 3, 4);
                     const auto r = k->gru(k.x("x", {3, 2, 3}), k.constant("h0", {2, 4}), w.w_ih,
                                           w.w_hh, w.bias);
                     k.out(r.h_n);
                   }});
}

}  // namespace

void add_sequence_cases(std::vector<OpCase>& cases) {
  cases.push_back({"embedding/repeated_ids", [](CaseBuilder& k) {
                     k.out(k->embedding(k.w("table", {5, 7}), k.ids("ids", {3, 4}, 0, 5)));
                   }});
  cases.push_back({"embedding/first_and_last_row", [](CaseBuilder& k) {
                     k.out(k->embedding(k.w("table", {4, 3}), k.ids("ids", {3}, {0, 3, 3})));
                   }});
  cases.push_back({"embedding/width_1", [](CaseBuilder& k) {
                     k.out(k->embedding(k.w("table", {3, 1}), k.ids("ids", {2, 1, 2}, 0, 3)));
                   }});
  for (const int uses : {2, 3}) {
    cases.push_back({fmt::format("embedding/table_used_{}_times", uses), [uses](CaseBuilder& k) {
                       const ValueId table = k.w("table", {6, 5});
                       for (int i = 0; i < uses; ++i) {
                         k.out(k->embedding(table, k.ids(fmt::format("ids{}", i), {2, 3}, 0, 6)));
                       }
                     }});
  }
  cases.push_back({"embedding/tied_with_the_output_weights", [](CaseBuilder& k) {
                     const ValueId table = k.w("table", {6, 5});
                     const ValueId h = k->tanh(k->embedding(table, k.ids("ids", {4}, 0, 6)));
                     k.out(k->linear(h, table));
                   }});
  add_recurrent(cases, "lstm", lstm_chunks);
  add_recurrent(cases, "gru", gru_chunks);
  add_single_outputs(cases);
}

}  // namespace reprise::test
