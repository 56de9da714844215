#pragma once

// Small problems by name: add("relu", {"x"}, {"y"}).

#include <initializer_list>
#include <map>
#include <string>

#include "schedule/problem.h"
#include "schedule/simulate.h"

namespace reprise::schedule::testing {

class ProblemBuilder {
 public:
  ProblemBuilder& tensor(const std::string& name, Bytes bytes,
                         TensorKind kind = TensorKind::kTemp) {
    tensors_[name] = problem_.tensors.push_back({name, bytes, kind});
    return *this;
  }

  // The op stays open to changes (workspace, in-place pairs) until the next one is added.
  Op& op(const std::string& name, std::initializer_list<const char*> inputs,
         std::initializer_list<const char*> outputs) {
    Op op;
    op.name = name;
    op.cost = 1;
    for (const char* input : inputs) op.inputs.push_back(tensors_.at(input));
    for (const char* output : outputs) op.outputs.push_back(tensors_.at(output));
    ops_[name] = problem_.ops.push_back(op);
    return problem_.ops[ops_[name]];
  }

  [[nodiscard]] Order order(std::initializer_list<const char*> names) const {
    Order order;
    for (const char* name : names) order.push_back(ops_.at(name));
    return order;
  }

  [[nodiscard]] TensorId tensor_id(const std::string& name) const { return tensors_.at(name); }
  [[nodiscard]] OpId op_id(const std::string& name) const { return ops_.at(name); }
  Problem& problem() { return problem_; }

 private:
  Problem problem_;
  std::map<std::string, TensorId> tensors_;
  std::map<std::string, OpId> ops_;
};

}  // namespace reprise::schedule::testing
