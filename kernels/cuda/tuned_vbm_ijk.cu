/*
 * tuned_vbm_ijk.cu - variant of vbm_ijk (body/vbm_block.h): a warp a leaf in dense chunks, a thread a voxel
 * in sparse ones.
 *
 * Leaf by leaf: mask bits are scattered to the voxels' places in shared memory: a bit's rank is a popcount,
 * so nothing is selected; the warp then writes the leaf's coordinates line by line.  Voxel by voxel: by the
 * jump map.
 */
#include "tuned_vbm.cuh"

enum { WARPS = 8 };

/* First voxel of a leaf. */
struct corner {
    int32_t at[3];
};
static __device__ __forceinline__ struct corner corner_of(const struct vxk_index_grid *g, uint32_t leaf)
{
    struct corner c;
    vxk_index_origin(g, leaf, &c.at[0], &c.at[1], &c.at[2]);
    return c;
}

/* number[r] = the r-th voxel of the leaf, 0..511 as x << 6 | y << 3 | z; how many there are. */
static __device__ __forceinline__ uint32_t list_voxels(const struct vxk_index_grid *g, uint32_t leaf,
                                                       uint32_t lane, uint16_t *number)
{
    const ulonglong2 *masks = (const ulonglong2 *)(g->masks + (uint64_t)leaf * 8);
    const uint32_t below = below32(lane);
    ulonglong2 m[4];
    uint32_t at = 0;
#pragma unroll
    for (int k = 0; k < 4; k++)
        m[k] = masks[k];
#pragma unroll
    for (int w = 0; w < 16; w++) {
        const uint64_t both = w & 2 ? m[w / 4].y : m[w / 4].x;
        const uint32_t mask = w & 1 ? (uint32_t)(both >> 32) : (uint32_t)both;
        if (mask >> lane & 1)
            number[at + __popc(mask & below)] = (uint16_t)(32 * w + lane);
        at += __popc(mask);
    }
    return at;
}

/* Number k of a list of coordinates is that of voxel k / 3; what comes round again after 96 of them. */
struct column {
    uint32_t voxel, shift;
    int32_t base;
};

static __device__ __forceinline__ void write_leaf(const struct vxk_index_grid *g, uint32_t leaf,
                                                  uint32_t lane, uint16_t *number, int32_t *out)
{
    const uint32_t n = 3 * list_voxels(g, leaf, lane, number);
    const struct corner at = corner_of(g, leaf);
    struct column c[3];
#pragma unroll
    for (uint32_t k = 0; k < 3; k++) {
        const uint32_t axis = (lane + 32 * k) % 3;
        c[k].voxel = (lane + 32 * k) / 3;
        c[k].shift = 6 - 3 * axis;
        c[k].base = axis == 0 ? at.at[0] : axis == 1 ? at.at[1] : at.at[2];
    }
    __syncwarp();
    for (uint32_t i = 0; i < n; i += 96) {
#pragma unroll
        for (uint32_t k = 0; k < 3; k++)
            if (i + lane + 32 * k < n)
                __stcs(out + i + lane + 32 * k,
                       c[k].base + (int32_t)(number[i / 3 + c[k].voxel] >> c[k].shift & 7));
    }
    __syncwarp();
}

template <bool ONE>
static __global__ void __launch_bounds__(32 * WARPS)
    ijk_leaves(const __grid_constant__ struct vxk_vbm_ijk_args a, uint32_t n_at_once)
{
    __shared__ uint16_t numbers[WARPS][512];
    __shared__ uint32_t leaves[WARPS][MOST_AT_ONCE];
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const uint64_t first = ((uint64_t)blockIdx.x * WARPS + warp) * n_at_once;
    const uint32_t n = take_leaves<ONE>(&a.v, first, n_at_once, lane, leaves[warp]);
    for (uint32_t k = 0; k < n; k++) {
        const struct vxk_vbm_grid *vg = grid_of_leaf<ONE>(&a.v, leaves[warp][k]);
        const uint32_t leaf = leaves[warp][k] - vg->leaf;
        write_leaf(&vg->g, leaf, lane, numbers[warp],
                   a.ijk + 3 * (vg->voxel + vxk_index_first(&vg->g, leaf)));
    }
}

template <bool ONE>
static __global__ void __launch_bounds__(VXK_VBM_WIDTH)
    ijk_voxels(const __grid_constant__ struct vxk_vbm_ijk_args a)
{
    __shared__ int32_t stage[3 * VXK_VBM_WIDTH];
    const struct vxk_vbm_grid *vg;
    uint32_t first;
    const uint32_t n = sparse_blocks<ONE>(&a.v, blockIdx.x, &vg, &first);
    for (uint32_t i = blockIdx.y; i < n; i += gridDim.y) {
        const struct vxk_vbm_block b = a.v.blocks[first + i];
        const uint32_t count = vxk_vbm_count(&b);
        if (threadIdx.x < count) {
            uint32_t rank, leaf = vxk_vbm_leaf(&b, threadIdx.x, &rank),
                           v = vxk_leaf_select(&vg->g, leaf, rank);
            const struct corner c = corner_of(&vg->g, leaf);
            stage[3 * threadIdx.x] = c.at[0] + (int32_t)(v >> 6);
            stage[3 * threadIdx.x + 1] = c.at[1] + (int32_t)(v >> 3 & 7);
            stage[3 * threadIdx.x + 2] = c.at[2] + (int32_t)(v & 7);
        }
        __syncthreads();
        for (uint32_t k = threadIdx.x; k < 3 * count; k += VXK_VBM_WIDTH)
            __stcs(a.ijk + 3 * b.voxel + k, stage[k]);
        __syncthreads();
    }
}

template <bool ONE>
static cudaError_t launch(const struct vxk_cuda_launch *l, const struct vxk_vbm_ijk_args *a)
{
    const uint32_t at_once = leaves_at_once(a->v.n_leaves, l->n_multiprocessors * 6 * WARPS),
                   per_block = WARPS * at_once;
    const dim3 chunks = {a->v.n_chunks, SPARSE_PARTS, 1};
    const uint32_t blocks = (a->v.n_leaves + per_block - 1) / per_block;
    cudaError_t e = vxk_launch_plain(l, ijk_leaves<ONE>, blocks, 32 * WARPS, 0, *a, at_once);
    return e == cudaSuccess ? vxk_launch_plain(l, ijk_voxels<ONE>, chunks, VXK_VBM_WIDTH, 0, *a) : e;
}

/* Always launched over all blocks: the work is found by leaf and by chunk. */
extern "C" cudaError_t vxk_cuda_tuned_vbm_ijk(const struct vxk_cuda_launch *l)
{
    const struct vxk_vbm_ijk_args *a = (const struct vxk_vbm_ijk_args *)l->args;
    if (l->n_dev || l->n != a->v.n_blocks)
        return cudaErrorInvalidValue;
    return a->v.n_grids == 1 ? launch<true>(l, a) : launch<false>(l, a);
}
