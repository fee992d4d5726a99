/* Kernels of body/digest.h. */
#include "../body/digest.h"
#include "topic.cuh"

#include "../body/digest.def"
