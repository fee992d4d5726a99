/* Tuned variants of the kernels that find the chunks and cells of a dilated or pruned index grid. */
#include "../body/index_morph.h"
#include "../body/index_ops.h"
#include "tuned_index.cuh"

namespace
{

/* A thread a leaf, its masks in four loads; most leaves lie inside their chunk and reach no other. */
__global__ void __launch_bounds__(256)
    dilate_chunks(const __grid_constant__ struct vxk_index_dilate_chunks_args args, uint32_t n)
{
    const struct vxk_index_morph &a = args.op;
    for (uint32_t i = blockIdx.x * 256 + threadIdx.x; i < n; i += gridDim.x * 256) {
        uint64_t mask[8];
        uint32_t place = a.g.place[i], reach, to;
        bool first = i == 0 || a.g.place[i - 1] >> 12 != place >> 12;
#pragma unroll
        for (uint32_t k = 0; k < 4; k++) {
            ulonglong2 v = load_pair(a.g.masks, i, k);
            mask[2 * k] = v.x;
            mask[2 * k + 1] = v.y;
        }
        reach = a.radius == 1 ? vxk_morph_reach_of(mask, a.shape, 1)
                              : vxk_morph_reach_of(mask, a.shape, a.radius);
        a.reach[i] = reach;
        to = vxk_morph_chunks(reach, place);
        if (first || to != 1u << 13)
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

struct grow_op {
    const struct vxk_index_morph &a;
    uint32_t (*cells)[2]; /* [27] of the words round this one, shared by the warp */
    __device__ __forceinline__ void leaf(const struct word_at &, uint32_t, uint32_t, uint32_t, bool)
    {
    }
    __device__ __forceinline__ void add(int d, uint64_t bits)
    {
        if ((uint32_t)bits)
            atomicOr(&cells[d][0], (uint32_t)bits);
        if (bits >> 32)
            atomicOr(&cells[d][1], (uint32_t)(bits >> 32));
    }
    __device__ __forceinline__ uint32_t reach_of_cell(const struct word_at &w, uint32_t cell)
    {
        return w.mask >> cell & 1 ? a.reach[w.first + vxk_popc64(w.mask & ((1ull << cell) - 1))] : 0;
    }
    /* Lane d takes the leaves that reach in direction d. */
    __device__ __forceinline__ void begin(const struct word_at &w, uint32_t lane)
    {
        uint32_t low = reach_of_cell(w, lane), high = reach_of_cell(w, lane + 32);
        uint64_t mine = 0;
        int dx = (int)lane / 9 - 1, dy = (int)lane / 3 % 3 - 1, dz = (int)lane % 3 - 1;
        if (lane < 27)
            cells[lane][0] = cells[lane][1] = 0;
        for (uint32_t left = __reduce_or_sync(~0u, low | high); left; left &= left - 1) {
            uint32_t d = (uint32_t)__ffs((int)left) - 1;
            uint32_t l = __ballot_sync(~0u, low >> d & 1), h = __ballot_sync(~0u, high >> d & 1);
            if (lane == d)
                mine = (uint64_t)h << 32 | l;
        }
        __syncwarp();
        if (lane < 27 && mine) {
            struct moved x = move_cells(mine, dx, 16, 0xffffull);
            for (int i = 0; i < 2; i++) {
                struct moved y = move_cells(i ? x.leave : x.stay, dy, 4, 0x000f000f000f000full);
                for (int j = 0; j < 2; j++) {
                    struct moved z = move_cells(j ? y.leave : y.stay, dz, 1, 0x1111111111111111ull);
                    int d = 13 + i * dx * 9 + j * dy * 3;
                    add(d, z.stay);
                    add(d + dz, z.leave);
                }
            }
        }
        __syncwarp();
        if (lane < 27 && (cells[lane][0] | cells[lane][1]))
            vxk_morph_add_cells(&a.b, w.key, (int)(w.word >> 4) + dx, (int)(w.word >> 2 & 3) + dy,
                                (int)(w.word & 3) + dz, (uint64_t)cells[lane][1] << 32 | cells[lane][0]);
    }
    __device__ __forceinline__ void end(const struct word_at &, uint32_t)
    {
    }
};
__global__ void __launch_bounds__(WARPS * 32)
    dilate_words(const __grid_constant__ struct vxk_index_dilate_words_args a)
{
    __shared__ uint32_t cells[WARPS][27][2];
    grow_op op = {a.op, cells[threadIdx.x >> 5]};
    over_words(op, a.op.g.words, a.op.g.keys, a.op.g.n_chunks * 64);
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
        uint64_t cells = (uint64_t)__reduce_or_sync(~0u, (uint32_t)(kept >> 32)) << 32 |
                         __reduce_or_sync(~0u, (uint32_t)kept);
        if (lane || !cells)
            return;
        a.cells[(uint64_t)w.chunk * 64 + w.word] = cells;
        if (!vxk_load32(&a.stays[w.chunk]) && !atomicOr(&a.stays[w.chunk], 1))
            vxk_index_add_key(&a.b, w.key);
    }
};
__global__ void __launch_bounds__(WARPS * 32)
    prune_chunks(const __grid_constant__ struct vxk_index_prune_chunks_args a)
{
    keep_op op = {a.op, 0};
    over_words(op, a.op.g.words, a.op.g.keys, a.op.g.n_chunks * 64);
}

} // namespace

extern "C" cudaError_t vxk_cuda_tuned_index_dilate_chunks(const struct vxk_cuda_launch *l)
{
    dilate_chunks<<<vxk_tuned_blocks(l, 256, 16), 256, 0, l->stream>>>(
        *(const struct vxk_index_dilate_chunks_args *)l->args, l->n);
    return cudaGetLastError();
}
extern "C" cudaError_t vxk_cuda_tuned_index_dilate_words(const struct vxk_cuda_launch *l)
{
    const struct vxk_index_dilate_words_args *a = (const struct vxk_index_dilate_words_args *)l->args;
    dilate_words<<<blocks_for(l, a->op.g.n_chunks), WARPS * 32, 0, l->stream>>>(*a);
    return cudaGetLastError();
}
extern "C" cudaError_t vxk_cuda_tuned_index_prune_chunks(const struct vxk_cuda_launch *l)
{
    const struct vxk_index_prune_chunks_args *a = (const struct vxk_index_prune_chunks_args *)l->args;
    prune_chunks<<<blocks_for(l, a->op.g.n_chunks), WARPS * 32, 0, l->stream>>>(*a);
    return cudaGetLastError();
}
