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

/*
 * For a kernel that neither reads what the launch right before it writes nor writes what that one reads: it
 * runs beside it.  Everything earlier is done when its blocks begin, as long as the launch before begins with
 * vxk_kernel_begin.  All threads call _begin first and _end last, so that whoever waits for this kernel has
 * waited for the one before too.
 */
static __device__ __forceinline__ void vxk_kernel_beside_begin(void)
{
#if __CUDA_ARCH__ >= 900
    cudaTriggerProgrammaticLaunchCompletion();
#endif
}
static __device__ __forceinline__ void vxk_kernel_beside_end(void)
{
#if __CUDA_ARCH__ >= 900
    cudaGridDependencySynchronize();
#endif
}

#endif
