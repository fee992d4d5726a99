/*
 * tuned_vbm.cuh - what the tuned kernels on VoxelBlockManagers share: which chunks go leaf by leaf, and how
 * the leaves are dealt to warps.
 */
#ifndef VXK_CUDA_TUNED_VBM_CUH
#define VXK_CUDA_TUNED_VBM_CUH

#include "../body/vbm.h"
#include "tuned.cuh"

enum {
    DENSE_VOXELS = 32, /* a leaf on average, from which a chunk goes leaf by leaf */
    SPARSE_PARTS = 4,  /* thread blocks that share a sparse chunk */
    MOST_AT_ONCE = 8   /* leaves that a warp takes */
};
#define ALL 0xffffffffu

static __device__ __forceinline__ uint32_t below32(uint32_t bit)
{
    return (1u << bit) - 1;
}

static __device__ __forceinline__ bool dense(const struct vxk_index_grid *g, uint32_t c)
{
    uint64_t n = g->chunk_voxel[c + 1] - g->chunk_voxel[c];
    uint32_t last = c + 1 < g->n_chunks ? g->words[(uint64_t)(c + 1) * 64].first : g->n_leaves;
    return n >= (uint64_t)DENSE_VOXELS * (last - g->words[(uint64_t)c * 64].first);
}

/* Grid k of a batch; ONE: there is one, and what is read of it lies in the kernel's arguments. */
template <bool ONE>
static __device__ __forceinline__ const struct vxk_vbm_grid *grid_at(const struct vxk_vbm *v, uint32_t k)
{
    return ONE ? &v->one : &v->grids[k];
}
/* The grid of leaf or chunk i of the batch. */
template <bool ONE>
static __device__ __forceinline__ const struct vxk_vbm_grid *grid_of_leaf(const struct vxk_vbm *v, uint32_t i)
{
    return grid_at<ONE>(v, ONE ? 0 : vxk_vbm_grid_of_leaf(v, i));
}
template <bool ONE>
static __device__ __forceinline__ const struct vxk_vbm_grid *grid_of_chunk(const struct vxk_vbm *v,
                                                                           uint32_t i)
{
    uint32_t lo = 0, hi = ONE ? 1 : v->n_grids;
    while (hi - lo > 1) {
        uint32_t mid = (lo + hi) / 2;
        if (v->grids[mid].chunk <= i)
            lo = mid;
        else
            hi = mid;
    }
    return grid_at<ONE>(v, lo);
}

/* Writes the leaves of dense chunks among `n` from `first` on to leaf[]; their number. */
template <bool ONE>
static __device__ __forceinline__ uint32_t take_leaves(const struct vxk_vbm *v, uint64_t first, uint32_t n,
                                                       uint32_t lane, uint32_t *leaf)
{
    const uint64_t i = first + lane;
    bool mine = false;
    if (lane < n && i < v->n_leaves) {
        const struct vxk_vbm_grid *vg = grid_of_leaf<ONE>(v, (uint32_t)i);
        mine = dense(&vg->g, vg->g.place[i - vg->leaf] >> 12);
    }
    const uint32_t taken = __ballot_sync(ALL, mine);
    if (mine)
        leaf[__popc(taken & below32(lane))] = (uint32_t)i;
    __syncwarp();
    return __popc(taken);
}

/* How many a warp takes so that `warps` of them have something to do. */
static inline uint32_t leaves_at_once(uint32_t n_leaves, uint32_t warps)
{
    const uint32_t n = n_leaves / (2 * warps);
    return n < 1 ? 1 : n > MOST_AT_ONCE ? (uint32_t)MOST_AT_ONCE : n;
}

/* Blocks of a chunk that is not dense: the thread block takes every gridDim.y-th from *first on; 0: none. */
template <bool ONE>
static __device__ __forceinline__ uint32_t sparse_blocks(const struct vxk_vbm *v, uint32_t chunk,
                                                         const struct vxk_vbm_grid **vg, uint32_t *first)
{
    *vg = grid_of_chunk<ONE>(v, chunk);
    const uint32_t c = chunk - (*vg)->chunk;
    if (dense(&(*vg)->g, c))
        return 0;
    *first = vxk_vbm_first_block(*vg, c);
    return (uint32_t)(((*vg)->g.chunk_voxel[c + 1] - (*vg)->g.chunk_voxel[c] + VXK_VBM_WIDTH - 1) /
                      VXK_VBM_WIDTH);
}

#endif
