/*
 * tuned_vbm_ijk.cu - variant of vbm_ijk (body/vbm_block.h): a warp a block of 128 voxels.
 *
 * Where few leaves meet a block, their mask bits are scattered to the voxels' places in shared memory: a
 * bit's rank is a popcount, so nothing is selected.  Where many do, every lane selects its voxels by the jump
 * map. A voxel is kept as its place in the chunk, which a block never leaves, 7 bits an axis; the warp then
 * writes the block's 384 numbers line by line.
 */
#include "../body/vbm.h"
#include "device.h"

enum { WARPS = 8, DENSE_LEAVES = 8 };
#define ALL 0xffffffffu

/* First voxel of a leaf in its chunk: x << 14 | y << 7 | z. */
static __device__ __forceinline__ uint32_t corner_of(uint32_t place)
{
    uint32_t x, y, z;
    vxk_cell_base(place >> 6 & 63, place & 63, &x, &y, &z);
    return x << 14 | y << 7 | z;
}
static __device__ __forceinline__ uint32_t place_in_chunk(uint32_t corner, uint32_t n)
{
    return corner + (n >> 6 << 14) + (n >> 3 << 7 & 0x380) + (n & 7);
}

/* at[t] of the voxels t of a block that are in leaf `leaf`, whose first voxel is voxel `start` of the block.
 */
static __device__ __forceinline__ void scatter(const struct vxk_index_grid *g, uint32_t leaf, int start,
                                               uint32_t lane, uint32_t *at)
{
    const ulonglong2 *masks = (const ulonglong2 *)(g->masks + (uint64_t)leaf * 8);
    const uint64_t prefix = g->prefix[leaf];
    const uint32_t corner = corner_of(g->place[leaf]) + (lane >> 3 << 7) + (lane & 7),
                   below = (1u << lane) - 1;
    ulonglong2 m[4];
#pragma unroll
    for (int k = 0; k < 4; k++)
        m[k] = masks[k];
#pragma unroll
    for (int x = 0; x < 8; x++) {
        const int first = start + (int)vxk_index_before(prefix, x),
                  end = x < 7 ? start + (int)vxk_index_before(prefix, x + 1) : VXK_VBM_WIDTH;
        const uint64_t mask = x & 1 ? m[x / 2].y : m[x / 2].x;
        const uint32_t lo = (uint32_t)mask, hi = (uint32_t)(mask >> 32);
        if (first >= VXK_VBM_WIDTH || end <= 0)
            continue;
        const int t0 = first + __popc(lo & below), t1 = first + __popc(lo) + __popc(hi & below);
        if ((lo >> lane & 1) && (uint32_t)t0 < VXK_VBM_WIDTH)
            at[t0] = corner + ((uint32_t)x << 14);
        if ((hi >> lane & 1) && (uint32_t)t1 < VXK_VBM_WIDTH)
            at[t1] = corner + ((uint32_t)x << 14) + (4 << 7);
    }
}

static __device__ __forceinline__ void decode(const struct vxk_index_grid *g, const struct vxk_vbm_block *b,
                                              uint32_t lane, uint32_t *at)
{
    const uint32_t n_leaves = 1 + __popcll(b->jump[0]) + __popcll(b->jump[1]), n = vxk_vbm_count(b);
    if (n_leaves <= DENSE_LEAVES) {
        uint64_t lo = b->jump[0], hi = b->jump[1];
        int start = -(int)vxk_vbm_skip(b);
        for (uint32_t l = 0; l < n_leaves; l++) {
            scatter(g, b->leaf + l, start, lane, at);
            start = lo ? __ffsll((long long)lo) - 1 : __ffsll((long long)hi) + 63;
            hi = lo ? hi : hi & (hi - 1);
            lo &= lo - 1;
        }
        return;
    }
    for (uint32_t t = lane; t < n; t += 32) {
        uint32_t rank, leaf = vxk_vbm_leaf(b, t, &rank);
        at[t] = place_in_chunk(corner_of(g->place[leaf]), vxk_leaf_select(g, leaf, rank));
    }
}

/* Number k of the block's coordinates, of voxel k / 3: what comes round again after 96 numbers is `c`. */
struct column {
    uint32_t voxel, shift;
    int32_t base;
};

template <bool ONE>
static __global__ void __launch_bounds__(32 * WARPS)
    vbm_ijk_tuned(const __grid_constant__ struct vxk_vbm_ijk_args a, uint32_t n, const uint32_t *n_dev,
                  uint32_t per)
{
    __shared__ uint32_t places[WARPS][VXK_VBM_WIDTH];
    const uint32_t lane = threadIdx.x & 31, i = blockIdx.x * WARPS + (threadIdx.x >> 5);
    uint32_t *at = places[threadIdx.x >> 5];
    if (i >= (n_dev ? min(*n_dev, n / per) * per : n))
        return;
    const struct vxk_vbm_block b = a.v.blocks[i];
    const struct vxk_index_grid *g = ONE ? &a.v.one.g : &a.v.grids[b.info >> 17].g;
    const uint32_t count = vxk_vbm_count(&b);
    if (!count)
        return;
    decode(g, &b, lane, at);
    int32_t x, y, z;
    vxk_key_xyz(g->keys[g->place[b.leaf] >> 12], &x, &y, &z);
    struct column c[3];
#pragma unroll
    for (uint32_t k = 0; k < 3; k++) {
        const uint32_t number = lane + 32 * k, axis = number % 3;
        c[k].voxel = number / 3;
        c[k].shift = 14 - 7 * axis;
        c[k].base = 128 * (axis == 0 ? x : axis == 1 ? y : z);
    }
    __syncwarp();
    int32_t *out = a.ijk + 3 * b.voxel + lane;
#pragma unroll
    for (uint32_t k = 0; k < 12; k++)
        if (lane + 32 * k < 3 * count)
            __stcs(out + 32 * k,
                   c[k % 3].base + (int32_t)(at[c[k % 3].voxel + k / 3 * 32] >> c[k % 3].shift & 127));
}

extern "C" cudaError_t vxk_cuda_tuned_vbm_ijk(const struct vxk_cuda_launch *l)
{
    const struct vxk_vbm_ijk_args *a = (const struct vxk_vbm_ijk_args *)l->args;
    const uint32_t blocks = (l->n + WARPS - 1) / WARPS;
    if (a->v.n_grids == 1)
        vbm_ijk_tuned<true><<<blocks, 32 * WARPS, 0, l->stream>>>(*a, l->n, l->n_dev, l->per);
    else
        vbm_ijk_tuned<false><<<blocks, 32 * WARPS, 0, l->stream>>>(*a, l->n, l->n_dev, l->per);
    return cudaGetLastError();
}
