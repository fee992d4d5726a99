/* Kernels of body/selftest.h. */
#include "../body/selftest.h"
#include "topic.cuh"

#include "../body/selftest.def"
