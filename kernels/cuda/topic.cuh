/*
 * topic.cuh - makes __global__ kernels of the element functions of one topic.
 *
 * A topic's .cu includes body/TOPIC.h, then this, then body/TOPIC.def.  Every kernel is shown to C as
 * vxk_cuda_kernel_NAME (device.h); a kernel that kernels.def lists and no .cu makes is an error of the
 * linker.
 */
#ifndef VXK_CUDA_TOPIC_CUH
#define VXK_CUDA_TOPIC_CUH

#include "begin.cuh"
#include "device.h"

/* n_dev NULL: elements 0 .. n-1; else 0 .. min(*n_dev, n / per) * per - 1. */
#define VXK_KERNEL(name)                                                                                     \
    static __global__ void __launch_bounds__(VXK_CUDA_BLOCK) run_##name(                                     \
        const __grid_constant__ struct vxk_##name##_args a, uint32_t n, const uint32_t *n_dev, uint32_t per) \
    {                                                                                                        \
        vxk_kernel_begin();                                                                                  \
        uint32_t end = n_dev ? min(*n_dev, n / per) * per : n;                                               \
        uint64_t step = (uint64_t)gridDim.x * blockDim.x;                                                    \
        for (uint64_t i = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; i < end; i += step)               \
            vxk_##name(&a, (uint32_t)i);                                                                     \
    }                                                                                                        \
    static_assert(sizeof(struct vxk_##name##_args) <= VXK_MAX_ARGS, "arguments of " #name " are too large"); \
    extern "C" const struct vxk_cuda_kernel vxk_cuda_kernel_##name = {VXK_GLOBAL(run_##name),                \
                                                                      sizeof(struct vxk_##name##_args)};

#endif
