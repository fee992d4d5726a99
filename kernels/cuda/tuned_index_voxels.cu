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

/* True where the lanes' runs jump about: then the look-ups of a whole run are made side by side, so that they
 * wait for memory together.  Neighbours in space share one instead, as in the body. */
__device__ __forceinline__ bool scattered(const int32_t *run, uint32_t size, int32_t rows)
{
    return __all_sync(__activemask(),
                      size == VXK_INDEX_RUN && __popc(vxk_index_starts(run, size, rows)) >= 6);
}

__device__ __forceinline__ void mark_scattered(const struct vxk_index_voxels &a, const int32_t *run)
{
    uint32_t slot[VXK_INDEX_RUN];
    uint64_t has[VXK_INDEX_RUN];
#pragma unroll
    for (uint32_t i = 0; i < VXK_INDEX_RUN; i++) {
        int32_t x = run[3 * i] >> 7, y = run[3 * i + 1] >> 7, z = run[3 * i + 2] >> 7;
        uint64_t key = vxk_key(x, y, z);
        slot[i] = (uint32_t)vxk_mix64(key) & a.b.seen_mask;
        if (!vxk_index_in_range(x, y, z) || vxk_peek64(&a.b.seen[slot[i]]) != key)
            slot[i] = VXK_NONE;
    }
#pragma unroll
    for (uint32_t i = 0; i < VXK_INDEX_RUN; i++) {
        uint32_t x = (uint32_t)run[3 * i], y = (uint32_t)run[3 * i + 1], z = (uint32_t)run[3 * i + 2];
        has[i] = slot[i] == VXK_NONE
                     ? 0
                     : vxk_peek64(&a.cells[(uint64_t)slot[i] * 64 + vxk_word_of(x & 127, y & 127, z & 127)]);
    }
    for (uint32_t i = 0; i < VXK_INDEX_RUN; i++) { /* what is new, or not at its first place in the table */
        uint32_t x = (uint32_t)run[3 * i], y = (uint32_t)run[3 * i + 1], z = (uint32_t)run[3 * i + 2];
        bool marked = false;
#pragma unroll
        for (uint32_t k = 0; k < VXK_INDEX_RUN; k++)
            marked |= k == i && has[k] >> vxk_cell_of(x, y, z) & 1;
        if (!marked)
            vxk_index_mark_run(&a, run + 3 * i, 1);
    }
}

enum { AT_ONCE = 4 };

/* The same for AT_ONCE voxels' bits in the masks. */
__device__ __forceinline__ void set_scattered(const struct vxk_index_voxels &a, const int32_t *run)
{
    ulonglong2 at[AT_ONCE]; /* slots of the table, then words */
#pragma unroll
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        uint64_t key = vxk_key(run[3 * i] >> 7, run[3 * i + 1] >> 7, run[3 * i + 2] >> 7);
        at[i] = *(const ulonglong2 *)(const void *)&a.b.slots[(uint32_t)vxk_mix64(key) & a.b.slot_mask];
    }
#pragma unroll
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        uint32_t x = (uint32_t)run[3 * i], y = (uint32_t)run[3 * i + 1], z = (uint32_t)run[3 * i + 2];
        uint64_t key = vxk_key((int32_t)x >> 7, (int32_t)y >> 7, (int32_t)z >> 7);
        uint32_t chunk = at[i].x == key ? (uint32_t)at[i].y : vxk_index_made_chunk(&a.b, key);
        at[i] = *(const ulonglong2 *)(const void *)&a.b
                     .words[(uint64_t)chunk * 64 + vxk_word_of(x & 127, y & 127, z & 127)];
    }
#pragma unroll
    for (uint32_t i = 0; i < AT_ONCE; i++) {
        uint32_t x = (uint32_t)run[3 * i], y = (uint32_t)run[3 * i + 1], z = (uint32_t)run[3 * i + 2];
        uint64_t leaf = (uint32_t)at[i].y + vxk_popc64(at[i].x & ((1ull << vxk_cell_of(x, y, z)) - 1));
        vxk_atomic_or64(&a.b.masks[leaf * 8 + (x & 7)], 1ull << ((y & 7) << 3 | (z & 7)));
    }
}

__global__ void __launch_bounds__(WARPS * 32)
    voxels_chunks(const __grid_constant__ struct vxk_index_voxels_chunks_args a, uint32_t n, const uint32_t *,
                  uint32_t)
{
    vxk_kernel_begin();
    over_runs(a.op, n, [&](const int32_t *run, uint32_t size) {
        if (scattered(run, size, 0))
            mark_scattered(a.op, run);
        else
            vxk_index_mark_run(&a.op, run, size);
    });
}

__global__ void __launch_bounds__(WARPS * 32, 5)
    voxels_leaves(const __grid_constant__ struct vxk_index_voxels_leaves_args a, uint32_t n, const uint32_t *,
                  uint32_t)
{
    vxk_kernel_begin();
    if (!a.op.b.counts->made_leaves || a.op.b.counts->n_outside)
        return;
    over_runs(a.op, n, [&](const int32_t *run, uint32_t size) {
        if (scattered(run, size, 1))
            for (uint32_t i = 0; i < VXK_INDEX_RUN; i += AT_ONCE)
                set_scattered(a.op, run + 3 * i);
        else
            vxk_index_set_run(&a.op, run, size);
    });
}

} // namespace

VXK_TUNED_LAUNCH_IF(index_voxels_chunks, voxels_chunks, WARPS * 32, WARPS * 32, 8,
                    (uintptr_t)a->op.ijk % 16 == 0)
VXK_TUNED_LAUNCH_IF(index_voxels_leaves, voxels_leaves, WARPS * 32, WARPS * 32, 8,
                    (uintptr_t)a->op.ijk % 16 == 0)
