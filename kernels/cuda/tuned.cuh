/*
 * tuned.cuh - what the variants of tuned.def share: shapes, warps.
 */
#ifndef VXK_CUDA_TUNED_CUH
#define VXK_CUDA_TUNED_CUH

#include "begin.cuh"
#include "device.h"

enum { VXK_WARP = 32 };
#define VXK_FULL 0xffffffffu

/* Number of elements of a launch, on the device. */
static __device__ __forceinline__ uint32_t vxk_launch_end(uint32_t n, const uint32_t *n_dev, uint32_t per)
{
    return n_dev ? min(*n_dev, n / per) * per : n;
}

/* Sum over a warp; the result is everyone's. */
static __device__ __forceinline__ uint32_t vxk_warp_sum(uint32_t x)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(VXK_FULL, x);
#else
    for (int o = 16; o; o >>= 1)
        x += __shfl_xor_sync(VXK_FULL, x, o);
    return x;
#endif
}

static __device__ __forceinline__ uint32_t vxk_warp_or(uint32_t x)
{
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(VXK_FULL, x);
#else
    for (int o = 16; o; o >>= 1)
        x |= __shfl_xor_sync(VXK_FULL, x, o);
    return x;
#endif
}

/* Sum of x over this lane and those before it. */
static __device__ __forceinline__ uint32_t vxk_warp_scan(uint32_t x, uint32_t lane)
{
    for (uint32_t o = 1; o < VXK_WARP; o <<= 1) {
        uint32_t y = __shfl_up_sync(VXK_FULL, x, o);
        if (lane >= o)
            x += y;
    }
    return x;
}

/* Sum of x over this lane and those before it, of any integer type. */
template <typename T> static __device__ __forceinline__ T vxk_warp_upto(T x)
{
    uint32_t lane = threadIdx.x & (VXK_WARP - 1);
#pragma unroll
    for (uint32_t o = 1; o < VXK_WARP; o <<= 1) {
        T y = __shfl_up_sync(VXK_FULL, x, o);
        if (lane >= o)
            x += y;
    }
    return x;
}

/* Sum of x over this thread and those before it, and over all.  sums: one T a warp, shared; every thread of
 * the block calls. */
template <typename T> static __device__ __forceinline__ T vxk_block_upto(T x, T *sums, T *total)
{
    uint32_t lane = threadIdx.x & (VXK_WARP - 1), warp = threadIdx.x / VXK_WARP,
             n_warps = blockDim.x / VXK_WARP;
    T before = 0, all = 0;
    x = vxk_warp_upto(x);
    __syncthreads(); /* the last call's sums were read */
    if (lane == VXK_WARP - 1)
        sums[warp] = x;
    __syncthreads();
    if (n_warps <= 8) {
        for (uint32_t k = 0; k < n_warps; k++) {
            before += k < warp ? sums[k] : 0;
            all += sums[k];
        }
    } else {
        T own = lane < n_warps ? sums[lane] : 0, upto = vxk_warp_upto(own);
        before = __shfl_sync(VXK_FULL, upto - own, warp);
        all = __shfl_sync(VXK_FULL, upto, VXK_WARP - 1);
    }
    *total = all;
    return before + x;
}

/* Blocks for n elements with `in_block` of them a block, no more than `most` a multiprocessor. */
static inline uint32_t vxk_blocks_for(const struct vxk_cuda_launch *l, uint32_t n, uint32_t in_block,
                                      uint32_t most)
{
    uint32_t blocks = n / in_block + (n % in_block != 0), limit = l->n_multiprocessors * most;
    return blocks < limit ? blocks : limit;
}

/* Launches a kernel with shared_bytes of dynamic shared memory a block. */
template <typename... P, typename... A>
static cudaError_t vxk_launch_plain(const struct vxk_cuda_launch *l, void (*kernel)(P...), dim3 blocks,
                                    uint32_t threads, uint32_t shared_bytes, const A &...args)
{
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = dim3(threads);
    config.dynamicSmemBytes = shared_bytes;
    config.stream = l->stream;
    return cudaLaunchKernelEx(&config, kernel, args...);
}
/* Launches a kernel that begins with vxk_kernel_begin. */
template <typename... P, typename... A>
static cudaError_t vxk_launch_begun(const struct vxk_cuda_launch *l, void (*kernel)(P...), uint32_t blocks,
                                    uint32_t threads, const A &...args)
{
    cudaLaunchAttribute early = {};
    cudaLaunchConfig_t config = {};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(threads);
    config.stream = l->stream;
    config.attrs = &early;
    config.numAttrs = l->early ? 1 : 0;
    return cudaLaunchKernelEx(&config, kernel, args...);
}
/* The same for one that takes its arguments and the count of the launch. */
template <typename T>
static cudaError_t vxk_launch_tuned(const struct vxk_cuda_launch *l,
                                    void (*kernel)(T, uint32_t, const uint32_t *, uint32_t), const T &args,
                                    uint32_t blocks, uint32_t threads)
{
    return vxk_launch_begun(l, kernel, blocks, threads, args, l->n, l->n_dev, l->per);
}

/* Defines vxk_cuda_tuned_NAME: `kernel` with THREADS a block, IN_BLOCK elements a block, at most MOST blocks
 * a multiprocessor (elements beyond are strided over).  `kernel` may depend on the arguments `a`. */
#define VXK_TUNED_LAUNCH(name, kernel, threads, in_block, most)                                              \
    VXK_TUNED_LAUNCH_IF(name, kernel, threads, in_block, most, a != NULL)
/* The same for launches whose arguments `a` meet a condition; the others run the body. */
#define VXK_TUNED_LAUNCH_IF(name, kernel, threads, in_block, most, condition)                                \
    extern "C" cudaError_t vxk_cuda_tuned_##name(const struct vxk_cuda_launch *l)                            \
    {                                                                                                        \
        const struct vxk_##name##_args *a = (const struct vxk_##name##_args *)l->args;                       \
        if (!(condition))                                                                                    \
            return cudaErrorNotSupported;                                                                    \
        return vxk_launch_tuned(l, kernel, *a, vxk_blocks_for(l, l->n, in_block, most), threads);            \
    }

#endif
