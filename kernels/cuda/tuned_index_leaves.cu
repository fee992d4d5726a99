/* Tuned variants of the kernels that make the leaves of an index grid, by words of the result. */
#include "../body/index_ops.h"
#include "tuned_index.cuh"

namespace
{

/* ---------------------------------------------------------------- merge */

struct merge_op {
    const struct vxk_index_merge &a;
    ulonglong2 *words; /* [n], shared by the warp */
    __device__ __forceinline__ void begin(const struct word_at &w, uint32_t lane)
    {
        if (lane < a.n)
            words[lane] = load_word(a.g[lane], vxk_index_chunk(&a.g[lane], w.key), w.word);
    }
    __device__ __forceinline__ void leaf(const struct word_at &, uint32_t cell, uint32_t to, uint32_t e,
                                         bool ok)
    {
        ulonglong2 m = make_ulonglong2(0, 0);
        for (uint32_t k = 0; k < a.n; k++) {
            ulonglong2 v = load_pair(a.g[k].masks, ok ? leaf_in(words[k], cell) : VXK_NONE, e);
            m.x |= v.x;
            m.y |= v.y;
        }
        put(a.b, to, m, e, ok);
    }
    __device__ __forceinline__ void end(const struct word_at &, uint32_t)
    {
    }
};
__global__ void __launch_bounds__(WARPS * 32)
    merge_leaves(const __grid_constant__ struct vxk_index_merge_leaves_args a, uint32_t parts)
{
    vxk_kernel_begin();
    __shared__ ulonglong2 words[WARPS][VXK_INDEX_MAX_MERGE];
    merge_op op = {a.op, words[threadIdx.x >> 5]};
    over_words(op, a.op.b.words, a.op.b.keys, a.op.b.counts->made_chunks * 64, parts);
}

/* ---------------------------------------------------------------- prune */

struct prune_op {
    const struct vxk_index_prune &a;
    ulonglong2 word;
    __device__ __forceinline__ void begin(const struct word_at &w, uint32_t)
    {
        word = load_word(a.g, vxk_index_chunk(&a.g, w.key), w.word);
    }
    __device__ __forceinline__ void leaf(const struct word_at &, uint32_t cell, uint32_t to, uint32_t e,
                                         bool ok)
    {
        uint32_t from = ok ? leaf_in(word, cell) : VXK_NONE;
        ulonglong2 m = load_pair(a.g.masks, from, e), keep = load_pair(a.keep, from, e);
        m.x &= keep.x;
        m.y &= keep.y;
        put(a.b, to, m, e, ok);
    }
    __device__ __forceinline__ void end(const struct word_at &, uint32_t)
    {
    }
};
__global__ void __launch_bounds__(WARPS * 32)
    prune_leaves(const __grid_constant__ struct vxk_index_prune_leaves_args a, uint32_t parts)
{
    vxk_kernel_begin();
    prune_op op = {a.op, {0, 0}};
    over_words(op, a.op.b.words, a.op.b.keys, a.op.b.counts->made_chunks * 64, parts);
}

/* ---------------------------------------------------------------- coarsen, refine */

struct coarsen_op {
    const struct vxk_index_coarsen &a;
    ulonglong2 *words; /* [8], shared by the warp */
    __device__ __forceinline__ void begin(const struct word_at &w, uint32_t lane)
    {
        uint32_t x = w.word >> 4, y = w.word >> 2 & 3, z = w.word & 3;
        if (lane < 8)
            words[lane] = load_word(a.g, vxk_index_child_chunk(&a.g, w.key, x >> 1, y >> 1, z >> 1),
                                    ((x & 1) * 2 + (lane >> 2)) << 4 | ((y & 1) * 2 + (lane >> 1 & 1)) << 2 |
                                        ((z & 1) * 2 + (lane & 1)));
    }
    /* This lane's two words are of the leaves with x = e >> 1 among the eight, and their slices 4 (e & 1) ..
     * + 3. */
    __device__ __forceinline__ void leaf(const struct word_at &, uint32_t cell, uint32_t to, uint32_t e,
                                         bool ok)
    {
        uint32_t x = cell >> 4, y = cell >> 2 & 3, z = cell & 3;
        ulonglong2 word = words[(x >> 1) << 2 | (y >> 1) << 1 | (z >> 1)], m = make_ulonglong2(0, 0);
        uint32_t base = ((x & 1) * 2 + (e >> 1)) << 4 | (y & 1) << 3 | (z & 1) << 1;
#pragma unroll
        for (uint32_t k = 0; k < 4; k++) {
            uint32_t from = ok ? leaf_in(word, base | (k >> 1) << 2 | (k & 1)) : VXK_NONE;
            ulonglong2 u = load_pair(a.g.masks, from, 2 * (e & 1)),
                       v = load_pair(a.g.masks, from, 2 * (e & 1) + 1);
            m.x |= vxk_index_half_slices(u.x | u.y) << (32 * (k >> 1) + 4 * (k & 1));
            m.y |= vxk_index_half_slices(v.x | v.y) << (32 * (k >> 1) + 4 * (k & 1));
        }
        put(a.b, to, m, e, ok);
    }
    __device__ __forceinline__ void end(const struct word_at &, uint32_t)
    {
    }
};
__global__ void __launch_bounds__(WARPS * 32)
    coarsen_leaves(const __grid_constant__ struct vxk_index_coarsen_leaves_args a, uint32_t parts)
{
    vxk_kernel_begin();
    __shared__ ulonglong2 words[WARPS][8];
    coarsen_op op = {a.op, words[threadIdx.x >> 5]};
    over_words(op, a.op.b.words, a.op.b.keys, a.op.b.counts->made_chunks * 64, parts);
}

struct refine_op {
    const struct vxk_index_refine &a;
    ulonglong2 word;
    uint32_t corner; /* cell of the source word where this word begins */
    __device__ __forceinline__ void begin(const struct word_at &w, uint32_t)
    {
        uint32_t at[3], chunk = vxk_index_parent_chunk(&a.g, w.key, at), place;
        place = vxk_index_cell_place(at[0] + (w.word >> 4) * 2, at[1] + (w.word >> 2 & 3) * 2,
                                     at[2] + (w.word & 3) * 2);
        word = load_word(a.g, chunk, place >> 6);
        corner = place & 63;
    }
    __device__ __forceinline__ void leaf(const struct word_at &, uint32_t cell, uint32_t to, uint32_t e,
                                         bool ok)
    {
        uint32_t x = cell >> 4, y = cell >> 2 & 3, z = cell & 3;
        uint64_t m = 0;
        if (ok) {
            uint32_t from = leaf_in(word, corner + ((x >> 1) << 4 | (y >> 1) << 2 | z >> 1));
            m = vxk_index_double_slice(a.g.masks[(uint64_t)from * 8 + 4 * (x & 1) + e], y & 1, z & 1);
        }
        put(a.b, to, make_ulonglong2(m, m), e, ok);
    }
    __device__ __forceinline__ void end(const struct word_at &, uint32_t)
    {
    }
};
__global__ void __launch_bounds__(WARPS * 32)
    refine_leaves(const __grid_constant__ struct vxk_index_refine_leaves_args a, uint32_t parts)
{
    vxk_kernel_begin();
    refine_op op = {a.op, {0, 0}, 0};
    over_words(op, a.op.b.words, a.op.b.keys, a.op.b.counts->made_chunks * 64, parts);
}

} // namespace

/* Launches `kernel` over the words of the result. */
#define VXK_LEAVES(name, in_multiprocessor)                                                                  \
    extern "C" cudaError_t vxk_cuda_tuned_index_##name##_leaves(const struct vxk_cuda_launch *l)             \
    {                                                                                                        \
        const struct vxk_index_##name##_leaves_args *a =                                                     \
            (const struct vxk_index_##name##_leaves_args *)l->args;                                          \
        struct shape s = shape_for(l, a->op.b.chunk_room, in_multiprocessor);                                \
        if (l->n < a->op.b.chunk_room * 64) /* less than one leaf a word: a thread a leaf is faster */       \
            return cudaErrorNotSupported;                                                                    \
        return vxk_launch_begun(l, name##_leaves, s.blocks, WARPS * 32, *a, s.parts);                        \
    }
VXK_LEAVES(merge, 12)
VXK_LEAVES(prune, 12)
VXK_LEAVES(coarsen, 10)
VXK_LEAVES(refine, 12)
