/* Kernels of body/load.h. */
#include "../body/load.h"
#include "topic.cuh"

#include "../body/load.def"
