/* Tuned variants of the kernels that find the chunks and cells of a dilated or pruned index grid. */
#include "../body/index_morph.h"
#include "../body/index_ops.h"
#include "tuned_index.cuh"

namespace
{

/* A thread a leaf; a warp brings the masks of its 32 leaves in whole lines.  Most leaves lie inside their
 * chunk and reach no other. */
__global__ void __launch_bounds__(WARPS * 32)
    dilate_chunks(const __grid_constant__ struct vxk_index_dilate_chunks_args args, uint32_t n)
{
    vxk_kernel_begin();
    __shared__ ulonglong2 tiles[WARPS][32 * 5]; /* four a leaf, and one for the banks */
    const struct vxk_index_morph &a = args.op;
    ulonglong2 *tile = tiles[threadIdx.x >> 5];
    uint32_t lane = threadIdx.x & 31;
    for (uint32_t first = (blockIdx.x * WARPS + (threadIdx.x >> 5)) * 32; first < n;
         first += gridDim.x * WARPS * 32) {
        uint32_t i = first + lane, place, reach, to;
        uint64_t mask[8];
        bool begins;
        __syncwarp();
#pragma unroll
        for (uint32_t k = 0; k < 4; k++) {
            uint32_t q = k * 32 + lane;
            if (first + q / 4 < n)
                tile[q / 4 * 5 + q % 4] = load2(a.g.masks + (uint64_t)first * 8 + 2 * q);
        }
        __syncwarp();
        if (i >= n)
            continue;
        place = a.g.place[i];
        begins = i == 0 || a.g.place[i - 1] >> 12 != place >> 12;
#pragma unroll
        for (uint32_t k = 0; k < 4; k++) {
            ulonglong2 v = tile[lane * 5 + k];
            mask[2 * k] = v.x;
            mask[2 * k + 1] = v.y;
        }
        reach = a.radius == 1 ? vxk_morph_reach_of(mask, a.shape, 1)
                              : vxk_morph_reach_of(mask, a.shape, a.radius);
        a.reach[i] = reach;
        to = vxk_morph_chunks(reach, place);
        if (begins || to != 1u << 13)
            vxk_morph_add_chunks(&a, place >> 12, to);
    }
}

/* Cells moved by d = -1, 0, 1 along an axis: those that stay in the word, those that come to the next one. */
struct moved {
    uint64_t stay, leave;
};
/* step: of the axis in a cell's number; first: the cells whose coordinate on the axis is 0. */
__device__ __forceinline__ struct moved move_cells(uint64_t cells, int d, int step, uint64_t first)
{
    struct moved m = {cells, 0};
    if (d > 0) {
        uint64_t last = first << (3 * step);
        m.stay = (cells & ~last) << step;
        m.leave = (cells & last) >> (3 * step);
    } else if (d < 0) {
        m.stay = (cells & ~first) >> step;
        m.leave = (cells & first) << (3 * step);
    }
    return m;
}

/* A matrix of 32 x 32 bits, one row a lane, the other way round. */
__device__ __forceinline__ uint32_t transpose(uint32_t x, uint32_t lane)
{
    uint32_t low = 0x0000ffff;
#pragma unroll
    for (uint32_t j = 16; j; j >>= 1, low ^= low << j) {
        uint32_t y = __shfl_xor_sync(~0u, x, j);
        x = lane & j ? (x & ~low) | (y >> j & low) : (x & low) | (y & low) << j;
    }
    return x;
}

__device__ __forceinline__ void add_bits(uint32_t at[2], uint64_t bits)
{
    if ((uint32_t)bits)
        atomicOr(&at[0], (uint32_t)bits);
    if (bits >> 32)
        atomicOr(&at[1], (uint32_t)(bits >> 32));
}

__device__ __forceinline__ uint32_t reach_of_cell(const struct vxk_index_morph &a, ulonglong2 word,
                                                  uint32_t cell)
{
    return word.x >> cell & 1 ? a.reach[(uint32_t)word.y + vxk_popc64(word.x & ((1ull << cell) - 1))] : 0;
}

/* A warp a word: lane d takes the leaves that reach in direction d. */
__global__ void __launch_bounds__(WARPS * 32)
    dilate_words(const __grid_constant__ struct vxk_index_dilate_words_args args)
{
    vxk_kernel_begin();
    __shared__ uint32_t shared[WARPS][27][2]; /* cells of the words round this one */
    const struct vxk_index_morph &a = args.op;
    uint32_t(*cells)[2] = shared[threadIdx.x >> 5], lane = threadIdx.x & 31, n = a.g.n_chunks * 64;
    int dx = (int)lane / 9 - 1, dy = (int)lane / 3 % 3 - 1, dz = (int)lane % 3 - 1;
    for (uint32_t i = blockIdx.x * WARPS + (threadIdx.x >> 5); i < n; i += gridDim.x * WARPS) {
        ulonglong2 word = load2((const uint64_t *)&a.g.words[i]);
        uint32_t low, high;
        uint64_t mine;
        if (!word.x)
            continue;
        low = transpose(reach_of_cell(a, word, lane), lane);
        high = transpose(reach_of_cell(a, word, lane + 32), lane);
        mine = (uint64_t)high << 32 | low;
        __syncwarp();
        if (lane < 27)
            cells[lane][0] = cells[lane][1] = 0;
        __syncwarp();
        if (lane < 27 && mine) {
            struct moved x = move_cells(mine, dx, 16, 0xffffull);
            for (int k = 0; k < 2; k++) {
                struct moved y = move_cells(k ? x.leave : x.stay, dy, 4, 0x000f000f000f000full);
                for (int j = 0; j < 2; j++) {
                    struct moved z = move_cells(j ? y.leave : y.stay, dz, 1, 0x1111111111111111ull);
                    int d = 13 + k * dx * 9 + j * dy * 3;
                    add_bits(cells[d], z.stay);
                    add_bits(cells[d + dz], z.leave);
                }
            }
        }
        __syncwarp();
        if (lane < 27 && (cells[lane][0] | cells[lane][1]))
            vxk_morph_add_cells(&a.b, a.g.keys[i >> 6], (int)(i >> 4 & 3) + dx, (int)(i >> 2 & 3) + dy,
                                (int)(i & 3) + dz, (uint64_t)cells[lane][1] << 32 | cells[lane][0]);
    }
}

struct keep_op {
    const struct vxk_index_prune &a;
    uint64_t kept;
    __device__ __forceinline__ void begin(const struct word_at &, uint32_t)
    {
        kept = 0;
    }
    __device__ __forceinline__ void leaf(const struct word_at &, uint32_t cell, uint32_t from, uint32_t e,
                                         bool ok)
    {
        ulonglong2 m = load_pair(a.g.masks, ok ? from : VXK_NONE, e),
                   keep = load_pair(a.keep, ok ? from : VXK_NONE, e);
        if ((m.x & keep.x) | (m.y & keep.y))
            kept |= 1ull << cell;
    }
    __device__ __forceinline__ void end(const struct word_at &w, uint32_t lane)
    {
        uint64_t cells = (uint64_t)vxk_warp_or((uint32_t)(kept >> 32)) << 32 | vxk_warp_or((uint32_t)kept);
        if (lane || !cells)
            return;
        atomicOr((unsigned long long *)&a.cells[(uint64_t)w.chunk * 64 + w.word], (unsigned long long)cells);
        if (!vxk_relaxed32(&a.stays[w.chunk]) && !atomicOr(&a.stays[w.chunk], 1))
            vxk_index_add_key(&a.b, w.key);
    }
};
__global__ void __launch_bounds__(WARPS * 32)
    prune_chunks(const __grid_constant__ struct vxk_index_prune_chunks_args a, uint32_t parts)
{
    vxk_kernel_begin();
    keep_op op = {a.op, 0};
    over_words(op, a.op.g.words, a.op.g.keys, a.op.g.n_chunks * 64, parts);
}

} // namespace

extern "C" cudaError_t vxk_cuda_tuned_index_dilate_chunks(const struct vxk_cuda_launch *l)
{
    return vxk_launch_begun(l, dilate_chunks, vxk_blocks_for(l, l->n, WARPS * 32, 64), WARPS * 32,
                            *(const struct vxk_index_dilate_chunks_args *)l->args, l->n);
}
extern "C" cudaError_t vxk_cuda_tuned_index_dilate_words(const struct vxk_cuda_launch *l)
{
    return vxk_launch_begun(l, dilate_words, vxk_blocks_for(l, l->n, WARPS, 96), WARPS * 32,
                            *(const struct vxk_index_dilate_words_args *)l->args);
}
extern "C" cudaError_t vxk_cuda_tuned_index_prune_chunks(const struct vxk_cuda_launch *l)
{
    const struct vxk_index_prune_chunks_args *a = (const struct vxk_index_prune_chunks_args *)l->args;
    struct shape s = shape_for(l, a->op.g.n_chunks, 12);
    return vxk_launch_begun(l, prune_chunks, s.blocks, WARPS * 32, *a, s.parts);
}
