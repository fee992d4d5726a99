/* Kernels of body/pool.h. */
#include "../body/pool.h"
#include "topic.cuh"

#include "../body/pool.def"
