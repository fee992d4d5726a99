/*
 * begin.cuh - the first thing that a kernel does.
 *
 * Launches may start while the one before them still runs
 * (cudaLaunchAttributeProgrammaticStreamSerialization): blocks take their places early and wait here until
 * everything before is done and seen.  From then on the next launch may take its places.
 */
#ifndef VXK_CUDA_BEGIN_CUH
#define VXK_CUDA_BEGIN_CUH

#include <cuda_runtime.h>

static __device__ __forceinline__ void vxk_kernel_begin(void)
{
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}

#endif
