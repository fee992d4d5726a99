/*
 * tuned_vbm_build.cu - variant of vbm_build (body/vbm_block.h): in sparse chunks 128 threads a block of
 * voxels.
 *
 * The body lets the leaf in which a block begins read on to the block's end: a step or two where leaves are
 * full, 128 where each has a voxel.  There a thread a voxel finds its leaf by bisection, and the jump map is
 * what the threads say together.
 */
#include "tuned_vbm.cuh"

enum { BLOCK = 256 };

template <bool ONE, bool ALL_LEAVES>
static __global__ void __launch_bounds__(BLOCK)
    build_leaves(const __grid_constant__ struct vxk_vbm_build_args a)
{
    const uint32_t i = blockIdx.x * BLOCK + threadIdx.x;
    if (i >= a.v.n_leaves)
        return;
    const uint32_t k = ONE ? 0 : vxk_vbm_grid_of_leaf(&a.v, i);
    const struct vxk_vbm_grid *vg = grid_at<ONE>(&a.v, k);
    const uint32_t leaf = i - vg->leaf;
    if (ALL_LEAVES || dense(&vg->g, vg->g.place[leaf] >> 12))
        vxk_vbm_build_leaf(vg, a.v.blocks, k, leaf);
}

/* The leaf of [from, end) that holds voxel v of the chunk. */
static __device__ __forceinline__ uint32_t find_leaf(const struct vxk_index_grid *g, uint32_t from,
                                                     uint32_t end, uint32_t v)
{
    while (end - from > 1) {
        const uint32_t mid = from + (end - from) / 2;
        if (g->first[mid] <= v)
            from = mid;
        else
            end = mid;
    }
    return from;
}

template <bool ONE>
static __global__ void __launch_bounds__(VXK_VBM_WIDTH)
    build_blocks(const __grid_constant__ struct vxk_vbm_build_args a)
{
    __shared__ uint32_t jump[VXK_VBM_WIDTH / 32];
    const struct vxk_vbm_grid *vg;
    uint32_t first;
    const uint32_t n = sparse_blocks<ONE>(&a.v, blockIdx.x, &vg, &first);
    if (!n)
        return;
    const struct vxk_index_grid *g = &vg->g;
    const uint32_t c = blockIdx.x - vg->chunk, k = ONE ? 0 : (uint32_t)(vg - a.v.grids), t = threadIdx.x;
    const uint32_t begin = g->words[(uint64_t)c * 64].first,
                   end = c + 1 < g->n_chunks ? g->words[(uint64_t)(c + 1) * 64].first : g->n_leaves;
    const uint64_t voxel = g->chunk_voxel[c];
    const uint32_t n_voxels = (uint32_t)(g->chunk_voxel[c + 1] - voxel);
    for (uint32_t i = blockIdx.y; i < n; i += gridDim.y) {
        const uint32_t p = i * VXK_VBM_WIDTH, leaf = find_leaf(g, begin, end, p + t), at = g->first[leaf];
        const uint32_t here = __ballot_sync(ALL, t > 0 && p + t < n_voxels && at == p + t);
        if ((t & 31) == 0)
            jump[t >> 5] = here;
        __syncthreads();
        if (t == 0) {
            struct vxk_vbm_block b;
            b.jump[0] = (uint64_t)jump[1] << 32 | jump[0];
            b.jump[1] = (uint64_t)jump[3] << 32 | jump[2];
            b.voxel = vg->voxel + voxel + p;
            b.leaf = leaf;
            b.info = (p - at) | vxk_minu(VXK_VBM_WIDTH, n_voxels - p) << 9 | k << 17;
            a.v.blocks[first + i] = b;
        }
        __syncthreads();
    }
    /* what is unused behind the chunk's last block: at most two */
    const uint32_t next = (uint32_t)((vg->voxel + voxel + n_voxels) / VXK_VBM_WIDTH) + vg->chunk + c + 1;
    if (blockIdx.y == 0 && first + n + t < next) {
        struct vxk_vbm_block unused = {{0, 0}, 0, 0, k << 17};
        a.v.blocks[first + n + t] = unused;
    }
}

template <bool ONE>
static cudaError_t launch(const struct vxk_cuda_launch *l, const struct vxk_vbm_build_args *a)
{
    const uint32_t blocks = (a->v.n_leaves + BLOCK - 1) / BLOCK;
    const uint64_t n_voxels = (uint64_t)(a->v.n_blocks - a->v.n_chunks) * VXK_VBM_WIDTH;
    const dim3 chunks = {a->v.n_chunks, SPARSE_PARTS, 1};
    cudaError_t e;
    if (n_voxels >= 2ull * DENSE_VOXELS * a->v.n_leaves) /* few sparse chunks, if any: not worth a launch */
        return vxk_launch_plain(l, build_leaves<ONE, true>, blocks, BLOCK, 0, *a);
    e = vxk_launch_plain(l, build_leaves<ONE, false>, blocks, BLOCK, 0, *a);
    return e == cudaSuccess ? vxk_launch_plain(l, build_blocks<ONE>, chunks, VXK_VBM_WIDTH, 0, *a) : e;
}

/* Always launched over all leaves. */
extern "C" cudaError_t vxk_cuda_tuned_vbm_build(const struct vxk_cuda_launch *l)
{
    const struct vxk_vbm_build_args *a = (const struct vxk_vbm_build_args *)l->args;
    if (l->n_dev || l->n != a->v.n_leaves)
        return cudaErrorInvalidValue;
    return a->v.n_grids == 1 ? launch<true>(l, a) : launch<false>(l, a);
}
