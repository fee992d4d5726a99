/*
 * tuned.cuh - what tuned variants share: how many elements a launch has, its shape, sums over warps and
 * blocks.
 */
#ifndef VXK_CUDA_TUNED_CUH
#define VXK_CUDA_TUNED_CUH

#include "device.h"

#include <cuda_runtime.h>

/* Elements of a launch (vxk_cuda_launch), in the kernel. */
struct vxk_tuned_count {
    const uint32_t *n_dev;
    uint32_t n, per;
    __device__ __forceinline__ uint32_t get() const
    {
        return n_dev ? min(*n_dev, n / per) * per : n;
    }
};

static inline struct vxk_tuned_count vxk_tuned_count_of(const struct vxk_cuda_launch *l)
{
    struct vxk_tuned_count c = {l->n_dev, l->n, l->per};
    return c;
}

/* Blocks for n elements of which a block takes `each`, at most `most` a multiprocessor: kernels stride over
 * the rest. */
static inline uint32_t vxk_tuned_blocks(const struct vxk_cuda_launch *l, uint32_t each, uint32_t most)
{
    uint64_t blocks = ((uint64_t)l->n + each - 1) / each, limit = (uint64_t)l->n_multiprocessors * most;
    return (uint32_t)(blocks < limit ? blocks : limit);
}

/* Sum of x over the lanes before and including this one. */
template <typename T> __device__ __forceinline__ T vxk_warp_scan(T x)
{
    uint32_t lane = threadIdx.x & 31;
#pragma unroll
    for (int d = 1; d < 32; d <<= 1) {
        T y = __shfl_up_sync(~0u, x, d);
        if (lane >= d)
            x += y;
    }
    return x;
}

/* Sum of x over the threads before and including this one, and over all.  sums: one T a warp, shared; every
 * thread of the block calls. */
template <typename T> __device__ __forceinline__ T vxk_block_scan(T x, T *sums, T *total)
{
    uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5, n_warps = blockDim.x >> 5;
    T before = 0, all = 0;
    x = vxk_warp_scan(x);
    __syncthreads(); /* the last call's sums were read */
    if (lane == 31)
        sums[warp] = x;
    __syncthreads();
    if (n_warps <= 8) {
        for (uint32_t k = 0; k < n_warps; k++) {
            before += k < warp ? sums[k] : 0;
            all += sums[k];
        }
    } else {
        T own = lane < n_warps ? sums[lane] : 0, upto = vxk_warp_scan(own);
        before = __shfl_sync(~0u, upto - own, warp);
        all = __shfl_sync(~0u, upto, 31);
    }
    *total = all;
    return before + x;
}

#endif
