#pragma once

// A training step as a chain of stages, the model of rotor (Beaumont et al. 2019): forward stages
// 0..L-1, a loss, backward stages L-1..0. Sizes in bytes, times in any unit, all non-negative.
//
//   x_i     input of stage i           a[i] bytes    i = 0..L; x_0 is there and stays until B(0)
//   xbar_i  all that Fall(i-1) leaves  b[i] bytes    i = 1..L; includes x_i, so b[i] >= a[i]
//   y_i     gradient of x_i            g[i] bytes    i = 0..L
//
//   instruction  needs                            bytes while it runs    afterwards
//   Fall(i)      x_i or xbar_i                    M + b[i+1] + of[i]     xbar_{i+1} is there
//   Fck(i)       x_i or xbar_i                    M + a[i+1] + of[i]     x_{i+1} is there
//   Fnone(i)     plain x_i, i > 0                 M + a[i+1] + of[i]     x_{i+1} is there, x_i gone
//   Loss         x_L or xbar_L                    M + g[L] + ol          y_L there, x_L gone
//   B(i)         y_{i+1}, xbar_{i+1}, and         M + g[i] + ob[i]       y_i is there; y_{i+1},
//                x_i or xbar_i                                           xbar_{i+1}, x_i gone
//   DropX(i), DropXB(i)                                                  x_i (i > 0), xbar_i gone
//
// M is what is there just before; what goes of x_i and x_L is the plain one. Peak is the largest
// "while it runs".

#include <compare>
#include <cstdint>
#include <vector>

#include "base/bytes.h"

namespace reprise::planner {

using base::Bytes;

// One way to run Fall(i) and B(i): what it records, and what that costs.
struct StageOption {
  std::int64_t forward_cost = 0;   // uf of this Fall
  std::int64_t backward_cost = 0;  // ub
  Bytes record = 0;                // b[i+1]
  Bytes forward_workspace = 0;     // of of this Fall
  Bytes backward_workspace = 0;    // ob
  friend bool operator==(const StageOption&, const StageOption&) = default;
};

struct Stage {
  Bytes output = 0;                  // a[i+1]
  Bytes output_gradient = 0;         // g[i+1]
  std::int64_t forward_cost = 0;     // uf of Fck and Fnone
  Bytes forward_workspace = 0;       // of of Fck and Fnone
  std::vector<StageOption> options;  // at least one
  friend bool operator==(const Stage&, const Stage&) = default;
};

struct ChainProblem {
  Bytes input = 0;            // a[0]
  Bytes input_gradient = 0;   // g[0]
  std::vector<Stage> stages;  // L of them
  std::int64_t loss_cost = 0;
  Bytes loss_workspace = 0;
  friend bool operator==(const ChainProblem&, const ChainProblem&) = default;
};

enum class ChainStep : std::uint8_t {
  kForwardAll,
  kForwardKeep,
  kForwardDrop,
  kLoss,
  kBackward,
  kDropInput,
  kDropRecord
};

struct ChainInstruction {
  ChainStep step = ChainStep::kLoss;
  std::int32_t stage = 0;   // i of the table; 0 for the loss
  std::int32_t option = 0;  // kForwardAll and kBackward: index into the stage's options
  friend bool operator==(const ChainInstruction&, const ChainInstruction&) = default;
};

}  // namespace reprise::planner
