/* Kernels of body/frame.h. */
#include "../body/frame.h"
#include "topic.cuh"

#include "../body/frame.def"
