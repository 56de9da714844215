// On the CPU backend.

#include "tests/kernels/backend_op_cases.h"
