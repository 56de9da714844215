// On the CPU backend.

#include "tests/kernels/backend_bf16_cases.h"
