/* Kernels of body/index.h. */
#include "../body/index.h"
#include "topic.cuh"

#include "../body/index.def"
