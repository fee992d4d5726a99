/* Tuned variant of inject for one packed component: a warp a leaf of the target, 32 voxels at once. */
#include "../body/index_values.h"
#include "tuned.cuh"

namespace
{

enum { WARPS = 8, ROWS = 16 /* of 32 bits in a leaf's masks */ };

template <class T>
__global__ void __launch_bounds__(WARPS * 32)
    inject(const __grid_constant__ struct vxk_index_inject_args args, uint32_t n_leaves)
{
    vxk_kernel_begin();
    const struct vxk_index_carry &a = args.op;
    const T *src = (const T *)(const void *)a.from.data;
    T *dst = (T *)(void *)a.to.data, initial = (T)a.initial[0];
    uint32_t lane = threadIdx.x & 31, below = (1u << lane) - 1;
    for (uint32_t i = blockIdx.x * WARPS + (threadIdx.x >> 5); i < n_leaves; i += gridDim.x * WARPS) {
        uint32_t leaf = a.first_leaf + i, place = a.dst.place[leaf];
        uint32_t other = vxk_index_leaf(&a.src, vxk_index_chunk(&a.src, a.dst.keys[place >> 12]),
                                        place >> 6 & 63, place & 63);
        const uint4 *want = (const uint4 *)(const void *)(a.dst.masks + (uint64_t)leaf * 8), *has = want;
        const T *from = src;
        T *to = dst + vxk_index_first(&a.dst, leaf);
        if (other == VXK_NONE) {
            uint32_t n = a.fill ? vxk_index_count(&a.dst, leaf) : 0;
            for (uint32_t k = lane; k < n; k += 32)
                to[k] = initial;
            continue;
        }
        has = (const uint4 *)(const void *)(a.src.masks + (uint64_t)other * 8);
        from += vxk_index_first(&a.src, other);
#pragma unroll
        for (uint32_t k = 0; k < ROWS / 4; k++) {
            uint4 d4 = want[k], s4 = has[k];
            uint32_t d[4] = {d4.x, d4.y, d4.z, d4.w}, s[4] = {s4.x, s4.y, s4.z, s4.w};
            T value[4];
#pragma unroll
            for (uint32_t j = 0; j < 4; j++) {
                value[j] = initial;
                if (s[j] & d[j] & (1u << lane))
                    value[j] = __ldcs(from + __popc(s[j] & below));
                from += __popc(s[j]);
            }
#pragma unroll
            for (uint32_t j = 0; j < 4; j++) {
                if ((a.fill ? d[j] : d[j] & s[j]) & (1u << lane))
                    __stcs(to + __popc(d[j] & below), value[j]);
                to += __popc(d[j]);
            }
        }
    }
}

template <class T> cudaError_t launch(const struct vxk_cuda_launch *l)
{
    return vxk_launch_begun(l, inject<T>, vxk_blocks_for(l, l->n / 8, WARPS, 16), WARPS * 32,
                            *(const struct vxk_index_inject_args *)l->args, l->n / 8);
}

} // namespace

extern "C" cudaError_t vxk_cuda_tuned_index_inject(const struct vxk_cuda_launch *l)
{
    const struct vxk_index_carry *a = &((const struct vxk_index_inject_args *)l->args)->op;
    uint32_t bytes = a->type <= VXK_V_I8 ? 1 : a->type <= VXK_V_I16 ? 2 : a->type <= VXK_V_F32 ? 4 : 8;
    if (a->n_components != 1 || a->from.voxel_stride != bytes || a->to.voxel_stride != bytes || l->n_dev ||
        a->dst.n_voxels < 32ull * a->dst.n_leaves) /* few voxels a leaf: most lanes would idle */
        return cudaErrorNotSupported;
    return bytes == 1   ? launch<uint8_t>(l)
           : bytes == 2 ? launch<uint16_t>(l)
           : bytes == 4 ? launch<uint32_t>(l)
                        : launch<unsigned long long>(l);
}
