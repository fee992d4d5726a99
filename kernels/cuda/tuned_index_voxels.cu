/*
 * Tuned variants of the two passes over coordinates: a warp brings 32 runs into shared memory in whole lines,
 * then each lane goes through one as the body does.
 */
#include "../body/index_voxels.h"
#include "tuned.cuh"

namespace
{

enum {
    WARPS = 8,
    RUN = VXK_INDEX_RUN * 3,      /* numbers of a run */
    STRIDE = RUN + 1,             /* apart in shared memory: lanes meet different banks */
    TILE = 32 * VXK_INDEX_RUN * 3 /* numbers of a warp */
};

/* Calls f(run in shared memory, coordinates in it) for every run. */
template <class F>
__device__ __forceinline__ void over_runs(const struct vxk_index_voxels &a, uint32_t n_runs, F f)
{
    __shared__ int32_t tiles[WARPS][32 * STRIDE];
    int32_t *tile = tiles[threadIdx.x >> 5];
    uint32_t lane = threadIdx.x & 31;
    uint64_t n_numbers = a.n * 3;
    for (uint64_t first = (blockIdx.x * (uint64_t)WARPS + (threadIdx.x >> 5)) * 32; first < n_runs;
         first += (uint64_t)gridDim.x * WARPS * 32) {
        uint64_t from = first * RUN;
        __syncwarp();
#pragma unroll
        for (uint32_t k = 0; k < TILE / 128; k++) {
            uint32_t q = k * 32 + lane, to = q / (RUN / 4) * STRIDE + q % (RUN / 4) * 4; /* q: four numbers */
            uint64_t at = from + q * 4;
            if (at + 3 < n_numbers) {
                int4 v = __ldcs((const int4 *)(const void *)(a.ijk + at));
                tile[to] = v.x;
                tile[to + 1] = v.y;
                tile[to + 2] = v.z;
                tile[to + 3] = v.w;
            } else {
                for (uint32_t j = 0; j < 4; j++)
                    if (at + j < n_numbers)
                        tile[to + j] = a.ijk[at + j];
            }
        }
        __syncwarp();
        if (first + lane < n_runs)
            f(tile + lane * STRIDE, vxk_index_run(&a, (uint32_t)(first + lane)));
    }
}

__global__ void __launch_bounds__(WARPS * 32)
    voxels_chunks(const __grid_constant__ struct vxk_index_voxels_chunks_args a, uint32_t n, const uint32_t *,
                  uint32_t)
{
    vxk_kernel_begin();
    over_runs(a.op, n, [&](const int32_t *run, uint32_t size) { vxk_index_mark_run(&a.op, run, size); });
}

__global__ void __launch_bounds__(WARPS * 32)
    voxels_leaves(const __grid_constant__ struct vxk_index_voxels_leaves_args a, uint32_t n, const uint32_t *,
                  uint32_t)
{
    vxk_kernel_begin();
    if (a.op.b.counts->made_leaves && !a.op.b.counts->n_outside)
        over_runs(a.op, n, [&](const int32_t *run, uint32_t size) { vxk_index_set_run(&a.op, run, size); });
}

} // namespace

VXK_TUNED_LAUNCH_IF(index_voxels_chunks, voxels_chunks, WARPS * 32, WARPS * 32, 8,
                    (uintptr_t)a->op.ijk % 16 == 0)
VXK_TUNED_LAUNCH_IF(index_voxels_leaves, voxels_leaves, WARPS * 32, WARPS * 32, 8,
                    (uintptr_t)a->op.ijk % 16 == 0)
