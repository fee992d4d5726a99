/*
 * tuned_vbm_ijk.cu - variant of vbm_ijk (body/vbm_block.h): a warp a block of 128 voxels.
 *
 * Where few leaves meet a block, their mask bits are scattered to the voxels' places in shared memory: a
 * bit's rank is a popcount, so nothing is selected.  Where many do, every lane selects its voxels by the jump
 * map. Coordinates are staged, so that the stores are whole lines.
 */
#include "../body/vbm.h"
#include "device.h"

enum { WARPS = 8, DENSE_LEAVES = 8 };
#define ALL 0xffffffffu

struct warp_space {
    int32_t stage[3 * VXK_VBM_WIDTH];
    int32_t origin[DENSE_LEAVES][3];
    uint16_t place[VXK_VBM_WIDTH]; /* leaf of the block << 9 | voxel of the leaf */
};

static __device__ __forceinline__ uint32_t below(uint32_t lane)
{
    return (1u << lane) - 1;
}

/* Fills s->place from the masks of the block's leaves. */
static __device__ __forceinline__ void scatter(const struct vxk_index_grid *g, const struct vxk_vbm_block *b,
                                               uint32_t n_leaves, uint32_t lane, struct warp_space *s)
{
    int start = -(int)vxk_vbm_skip(b);
    uint64_t jump0 = b->jump[0], jump1 = b->jump[1];
    for (uint32_t l = 0; l < n_leaves; l++) {
        uint32_t m = ((const uint32_t *)g->masks)[(uint64_t)(b->leaf + l) * 16 + (lane & 15)];
        uint32_t n = __popc(m), sum = n;
        for (uint32_t d = 1; d < 16; d *= 2) {
            uint32_t o = __shfl_up_sync(ALL, sum, d, 16);
            sum += (lane & 15) >= d ? o : 0;
        }
        int first = start + (int)(sum - n);
        uint32_t words = __ballot_sync(ALL, n && first < VXK_VBM_WIDTH && first + (int)n > 0) & 0xffff;
        while (words) {
            int w = __ffs((int)words) - 1;
            words &= words - 1;
            uint32_t mask = __shfl_sync(ALL, m, w);
            int at = __shfl_sync(ALL, first, w) + __popc(mask & below(lane));
            if ((mask >> lane & 1) && (uint32_t)at < VXK_VBM_WIDTH)
                s->place[at] = (uint16_t)(l << 9 | (uint32_t)w << 5 | lane);
        }
        if (jump0) {
            start = __ffsll((long long)jump0) - 1;
            jump0 &= jump0 - 1;
        } else {
            start = 63 + __ffsll((long long)jump1);
            jump1 &= jump1 - 1;
        }
    }
}

static __global__ void __launch_bounds__(32 * WARPS)
    vbm_ijk_tuned(const __grid_constant__ struct vxk_vbm_ijk_args a, uint32_t n, const uint32_t *n_dev,
                  uint32_t per)
{
    __shared__ struct warp_space spaces[WARPS];
    uint32_t lane = threadIdx.x & 31, i = blockIdx.x * WARPS + (threadIdx.x >> 5);
    struct warp_space *s = &spaces[threadIdx.x >> 5];
    if (i >= (n_dev ? min(*n_dev, n / per) * per : n))
        return;
    const struct vxk_vbm_block b = a.v.blocks[i];
    const struct vxk_index_grid *g = &vxk_vbm_grid_of(&a.v, &b)->g;
    uint32_t count = vxk_vbm_count(&b), n_leaves = 1 + __popcll(b.jump[0]) + __popcll(b.jump[1]);
    if (!count)
        return;
    if (n_leaves <= DENSE_LEAVES) {
        if (lane < n_leaves)
            vxk_index_origin(g, b.leaf + lane, &s->origin[lane][0], &s->origin[lane][1], &s->origin[lane][2]);
        scatter(g, &b, n_leaves, lane, s);
        __syncwarp();
    }
#pragma unroll
    for (uint32_t t = lane; t < VXK_VBM_WIDTH; t += 32) {
        uint32_t v;
        int32_t x, y, z;
        if (t >= count)
            break;
        if (n_leaves <= DENSE_LEAVES) {
            uint32_t place = s->place[t];
            const int32_t *origin = s->origin[place >> 9];
            v = place & 511;
            x = origin[0];
            y = origin[1];
            z = origin[2];
        } else {
            uint32_t rank, leaf = vxk_vbm_leaf(&b, t, &rank);
            v = vxk_leaf_select(g, leaf, rank);
            vxk_index_origin(g, leaf, &x, &y, &z);
        }
        s->stage[3 * t] = x + (int32_t)(v >> 6);
        s->stage[3 * t + 1] = y + (int32_t)(v >> 3 & 7);
        s->stage[3 * t + 2] = z + (int32_t)(v & 7);
    }
    __syncwarp();
    int32_t *out = a.ijk + 3 * b.voxel;
#pragma unroll
    for (uint32_t k = lane; k < 3 * VXK_VBM_WIDTH; k += 32)
        if (k < 3 * count)
            __stcs(out + k, s->stage[k]);
}

extern "C" cudaError_t vxk_cuda_tuned_vbm_ijk(const struct vxk_cuda_launch *l)
{
    const struct vxk_vbm_ijk_args *a = (const struct vxk_vbm_ijk_args *)l->args;
    vbm_ijk_tuned<<<(l->n + WARPS - 1) / WARPS, 32 * WARPS, 0, l->stream>>>(*a, l->n, l->n_dev, l->per);
    return cudaGetLastError();
}
