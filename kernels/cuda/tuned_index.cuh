/*
 * tuned_index.cuh - index grids by warps.
 *
 * A warp takes a word (32^3 voxels) at a time: what the word's leaves share is looked up once, then four
 * lanes do a leaf, two mask words each.  The leaves of a word are neighbours in memory, so that loads and
 * stores are whole lines.
 */
#ifndef VXK_CUDA_TUNED_INDEX_CUH
#define VXK_CUDA_TUNED_INDEX_CUH

#include "../body/index_build.h"
#include "tuned.cuh"

namespace
{

enum { WARPS = 4 /* a block */ };

/* A word that has leaves, as the lanes of its warp see it. */
struct word_at {
    uint64_t mask, key;
    uint32_t first, chunk, word;
};

__device__ __forceinline__ ulonglong2 load2(const uint64_t *p)
{
    return *(const ulonglong2 *)(const void *)p;
}

/* Mask words 2 e and 2 e + 1 of leaf i, none: 0. */
__device__ __forceinline__ ulonglong2 load_pair(const uint64_t *masks, uint32_t i, uint32_t e)
{
    return i == VXK_NONE ? make_ulonglong2(0, 0) : load2(masks + (uint64_t)i * 8 + 2 * e);
}

/* Word w of chunk `chunk`, as (mask, first leaf); none: empty. */
__device__ __forceinline__ ulonglong2 load_word(const struct vxk_index_grid &g, uint32_t chunk, uint32_t w)
{
    return chunk == VXK_NONE ? make_ulonglong2(0, 0)
                             : load2((const uint64_t *)&g.words[(uint64_t)chunk * 64 + w]);
}

__device__ __forceinline__ uint32_t leaf_in(ulonglong2 word, uint32_t cell)
{
    return word.x >> cell & 1 ? (uint32_t)word.y + vxk_popc64(word.x & ((1ull << cell) - 1)) : VXK_NONE;
}

/* vxk_index_put by four lanes: this one has mask words 2 e and 2 e + 1. */
__device__ __forceinline__ void put(const struct vxk_index_build &b, uint32_t leaf, ulonglong2 m, uint32_t e,
                                    bool ok)
{
    uint32_t own = vxk_popc64(m.x), both = own + vxk_popc64(m.y), upto = both, y;
    uint64_t fields;
    y = __shfl_up_sync(~0u, upto, 1, 4);
    upto += e >= 1 ? y : 0;
    y = __shfl_up_sync(~0u, upto, 2, 4);
    upto += e >= 2 ? y : 0;
    fields = (uint64_t)(upto - both + own) << (18 * e);
    if (e)
        fields |= (uint64_t)(upto - both) << (18 * e - 9);
    fields |= __shfl_xor_sync(~0u, fields, 1);
    fields |= __shfl_xor_sync(~0u, fields, 2);
    if (!ok)
        return;
    *(ulonglong2 *)(void *)(b.masks + (uint64_t)leaf * 8 + 2 * e) = m;
    if (e == 0)
        b.prefix[leaf] = fields;
    if (e == 3)
        b.first[leaf] = upto;
}

/* How the words of a grid are dealt to warps: `parts` warps a word, each every parts-th group of eight
 * leaves. */
struct shape {
    uint32_t blocks, parts;
};
/* For a grid of at most so many chunks; in_multiprocessor: blocks that fit one.  There are several times more
 * blocks than fit, so that multiprocessors that got light words take more of them. */
inline struct shape shape_for(const struct vxk_cuda_launch *l, uint32_t n_chunks, uint32_t in_multiprocessor)
{
    uint64_t most = (uint64_t)l->n_multiprocessors * in_multiprocessor, words = n_chunks * 64ull, blocks;
    struct shape s = {1, 8};
    while (s.parts > 1 && words * s.parts > most * WARPS)
        s.parts /= 2;
    blocks = (words * s.parts + WARPS - 1) / WARPS;
    s.blocks = (uint32_t)(blocks < 1 ? 1 : blocks < most * 8 ? blocks : most * 8);
    return s;
}

/* Runs op over the words of a grid: op.begin once a word (and part), op.leaf for each leaf of it, op.end. */
template <class Op>
__device__ __forceinline__ void over_words(Op &op, const struct vxk_index_word *words, const uint64_t *keys,
                                           uint32_t n_words, uint32_t parts)
{
    __shared__ uint8_t lists[WARPS][64];
    uint8_t *list = lists[threadIdx.x >> 5];
    uint32_t lane = threadIdx.x & 31, e = lane & 3, warp = blockIdx.x * WARPS + (threadIdx.x >> 5);
    uint32_t part = warp % parts, step = gridDim.x * WARPS / parts;
    /* Each lane looks at one of 32 words that are the warp's, far apart: dense regions are spread over all
     * warps. */
    for (uint64_t base = warp / parts; base < n_words; base += 32ull * step) {
        uint64_t i = base + lane * (uint64_t)step;
        ulonglong2 mine = i < n_words ? load2((const uint64_t *)&words[i]) : make_ulonglong2(0, 0);
        for (uint32_t left = __ballot_sync(~0u, mine.x != 0); left; left &= left - 1) {
            int from = __ffs((int)left) - 1;
            struct word_at w;
            uint32_t n;
            w.mask = __shfl_sync(~0u, mine.x, from);
            n = vxk_popc64(w.mask);
            if (part * 8 >= n)
                continue;
            w.first = (uint32_t)__shfl_sync(~0u, mine.y, from);
            w.chunk = (uint32_t)((base + (uint32_t)from * (uint64_t)step) >> 6);
            w.word = (uint32_t)(base + (uint32_t)from * (uint64_t)step) & 63;
            w.key = keys[w.chunk];
            __syncwarp();
            if (w.mask >> lane & 1)
                list[vxk_popc64(w.mask & ((1ull << lane) - 1))] = (uint8_t)lane;
            if (w.mask >> (lane + 32) & 1)
                list[vxk_popc64(w.mask & ((1ull << (lane + 32)) - 1))] = (uint8_t)(lane + 32);
            op.begin(w, lane);
            __syncwarp();
            for (uint32_t j0 = part * 8; j0 < n; j0 += parts * 8) {
                uint32_t j = j0 + (lane >> 2);
                op.leaf(w, list[j < n ? j : 0], w.first + j, e, j < n);
            }
            op.end(w, lane);
        }
    }
}

} // namespace

#endif
