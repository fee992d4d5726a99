/* Kernels of body/mesh.h. */
#include "../body/mesh.h"
#include "topic.cuh"

#include "../body/mesh.def"
