/* Kernels of body/vbm.h. */
#include "../body/vbm.h"
#include "topic.cuh"

#include "../body/vbm.def"
