/* Kernels of body/esdf.h. */
#include "../body/esdf.h"
#include "topic.cuh"

#include "../body/esdf.def"
