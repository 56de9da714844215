// On the CUDA backend, linked with the double.

#include "tests/kernels/backend_op_cases.h"
