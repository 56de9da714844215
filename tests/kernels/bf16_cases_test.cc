// On the CPU backend.

#include "tests/kernels/bf16_op_cases.h"
