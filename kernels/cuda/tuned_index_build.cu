/* Tuned variants of body/index_build.h: ranks by warps, scans by blocks. */
#include "../body/index_build.h"
#include "tuned.cuh"

namespace
{

enum { RANK_KEYS = 8, RANK_BLOCK = 256 };

/* A block takes eight keys and compares them with all. */
__global__ void __launch_bounds__(RANK_BLOCK) rank(const __grid_constant__ struct vxk_index_rank_args a,
                                                   uint32_t most, const uint32_t *n_dev, uint32_t per)
{
    vxk_kernel_begin();
    __shared__ uint32_t sums[RANK_KEYS];
    uint32_t n = vxk_launch_end(most, n_dev, per), t = threadIdx.x;
    for (uint32_t i = blockIdx.x * RANK_KEYS; i < n; i += gridDim.x * RANK_KEYS) {
        uint64_t key[RANK_KEYS];
        uint32_t before[RANK_KEYS] = {0};
        if (t < RANK_KEYS)
            sums[t] = a.in_order ? i + t : 0;
#pragma unroll
        for (uint32_t j = 0; j < RANK_KEYS; j++)
            key[j] = a.b.found[min(i + j, n - 1)];
        __syncthreads();
        if (!a.in_order) {
#pragma unroll 4
            for (uint32_t k = t; k < n; k += RANK_BLOCK) {
                uint64_t other = a.b.found[k];
#pragma unroll
                for (uint32_t j = 0; j < RANK_KEYS; j++)
                    before[j] += other < key[j];
            }
#pragma unroll
            for (uint32_t j = 0; j < RANK_KEYS; j++) {
                uint32_t sum = vxk_warp_sum(before[j]);
                if ((t & 31) == 0 && sum)
                    atomicAdd(&sums[j], sum);
            }
            __syncthreads();
        }
        if (t < RANK_KEYS && i + t < n)
            vxk_index_rank_put(&a.b, a.b.found[i + t], sums[t]);
        __syncthreads();
    }
}

enum { SCAN_BLOCK = 1024, SCAN_EACH = 4 };

/* One block over all chunks. */
__global__ void __launch_bounds__(SCAN_BLOCK)
    scan_leaves(const __grid_constant__ struct vxk_index_scan_leaves_args a)
{
    vxk_kernel_begin();
    __shared__ uint64_t sums[32];
    const struct vxk_index_build *b = &a.b;
    uint32_t n = min(b->counts->n_chunks, b->chunk_room);
    uint64_t carry = 0;
    for (uint32_t base = 0; base < n; base += SCAN_BLOCK * SCAN_EACH) {
        uint32_t at = base + threadIdx.x * SCAN_EACH, v[SCAN_EACH];
        uint64_t own = 0, total, before;
#pragma unroll
        for (uint32_t k = 0; k < SCAN_EACH; k++) {
            v[k] = at + k < n ? b->chunk_leaf[at + k] : 0;
            own += v[k];
        }
        before = carry + vxk_block_upto(own, sums, &total) - own;
#pragma unroll
        for (uint32_t k = 0; k < SCAN_EACH; k++) {
            if (at + k < n)
                b->chunk_leaf[at + k] = (uint32_t)before;
            before += v[k];
        }
        carry += total;
    }
    if (threadIdx.x == 0) {
        b->chunk_leaf[n] = (uint32_t)carry;
        vxk_index_scan_end(b, carry);
    }
}

__global__ void __launch_bounds__(SCAN_BLOCK)
    scan_voxels(const __grid_constant__ struct vxk_index_scan_voxels_args a)
{
    vxk_kernel_begin();
    __shared__ uint64_t sums[32];
    const struct vxk_index_build *b = &a.b;
    uint32_t n = b->counts->made_chunks;
    uint64_t carry = 0;
    for (uint32_t base = 0; base < n; base += SCAN_BLOCK * SCAN_EACH) {
        uint32_t at = base + threadIdx.x * SCAN_EACH;
        uint64_t v[SCAN_EACH], own = 0, total, before;
#pragma unroll
        for (uint32_t k = 0; k < SCAN_EACH; k++) {
            v[k] = at + k < n ? b->chunk_voxel[at + k] : 0;
            own += v[k];
        }
        before = carry + vxk_block_upto(own, sums, &total) - own;
#pragma unroll
        for (uint32_t k = 0; k < SCAN_EACH; k++) {
            if (at + k < n)
                b->chunk_voxel[at + k] = before;
            before += v[k];
        }
        carry += total;
    }
    if (threadIdx.x == 0) {
        b->chunk_voxel[n] = carry;
        b->counts->n_voxels = carry;
    }
}

enum { CHUNK_BLOCK = 128 };

/* A block a chunk; two threads a word, 32 cells each.  Places are gathered first, so that they are stored in
 * lines. */
__global__ void __launch_bounds__(CHUNK_BLOCK) expand(const __grid_constant__ struct vxk_index_expand_args a,
                                                      uint32_t most, const uint32_t *n_dev, uint32_t per)
{
    vxk_kernel_begin();
    __shared__ uint32_t sums[CHUNK_BLOCK / 32];
    __shared__ uint16_t cells_of[4096];
    uint32_t n = vxk_launch_end(most, n_dev, per), t = threadIdx.x;
    for (uint32_t c = blockIdx.x; c < n; c += gridDim.x) {
        struct vxk_index_word *word = &a.b.words[(uint64_t)c * 64 + (t >> 1)];
        uint32_t cells = (uint32_t)(word->mask >> (32 * (t & 1))), own = __popc(cells), total;
        uint32_t first = a.b.chunk_leaf[c], at = vxk_block_upto(own, sums, &total) - own;
        if ((t & 1) == 0)
            word->first = first + at;
        for (; cells; cells &= cells - 1)
            cells_of[at++] = (uint16_t)(t >> 1 << 6 | (t & 1) << 5 | (uint32_t)(__ffs((int)cells) - 1));
        __syncthreads();
        for (uint32_t i = t; i < total; i += CHUNK_BLOCK)
            a.b.place[first + i] = c << 12 | cells_of[i];
        __syncthreads();
    }
}

/* A block a chunk. */
__global__ void __launch_bounds__(CHUNK_BLOCK) number(const __grid_constant__ struct vxk_index_number_args a,
                                                      uint32_t most, const uint32_t *n_dev, uint32_t per)
{
    vxk_kernel_begin();
    __shared__ uint32_t sums[CHUNK_BLOCK / 32];
    uint32_t n = vxk_launch_end(most, n_dev, per), t = threadIdx.x;
    for (uint32_t c = blockIdx.x; c < n; c += gridDim.x) {
        uint32_t begin = a.b.chunk_leaf[c], end = a.b.chunk_leaf[c + 1], carry = 0;
        for (uint32_t base = begin; base < end; base += 4 * CHUNK_BLOCK) {
            uint32_t own[4], sum = 0, total, before;
#pragma unroll
            for (uint32_t k = 0; k < 4; k++) {
                own[k] = base + 4 * t + k < end ? a.b.first[base + 4 * t + k] : 0;
                sum += own[k];
            }
            before = carry + vxk_block_upto(sum, sums, &total) - sum;
#pragma unroll
            for (uint32_t k = 0; k < 4; k++) {
                if (base + 4 * t + k < end)
                    a.b.first[base + 4 * t + k] = before;
                before += own[k];
            }
            carry += total;
        }
        if (t == 0)
            a.b.chunk_voxel[c] = carry;
        __syncthreads(); /* the leaves' numbers are seen by the whole block */
        if (t < 64) {
            struct vxk_index_word *word = &a.b.words[(uint64_t)c * 64 + t];
            word->before = word->first < end ? a.b.first[word->first] : carry;
        }
    }
}

} // namespace

VXK_TUNED_LAUNCH(index_rank, rank, RANK_BLOCK, RANK_KEYS, 32)
VXK_TUNED_LAUNCH(index_expand, expand, CHUNK_BLOCK, 1, 32)
VXK_TUNED_LAUNCH(index_number, number, CHUNK_BLOCK, 1, 32)

extern "C" cudaError_t vxk_cuda_tuned_index_scan_leaves(const struct vxk_cuda_launch *l)
{
    return vxk_launch_begun(l, scan_leaves, 1, SCAN_BLOCK,
                            *(const struct vxk_index_scan_leaves_args *)l->args);
}
extern "C" cudaError_t vxk_cuda_tuned_index_scan_voxels(const struct vxk_cuda_launch *l)
{
    return vxk_launch_begun(l, scan_voxels, 1, SCAN_BLOCK,
                            *(const struct vxk_index_scan_voxels_args *)l->args);
}
