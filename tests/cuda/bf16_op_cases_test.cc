// On the CUDA backend, linked with the double.

#include "tests/kernels/bf16_op_cases.h"
