/* Kernels of body/query.h. */
#include "../body/query.h"
#include "topic.cuh"

#include "../body/query.def"
