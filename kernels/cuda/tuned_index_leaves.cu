/* Tuned variants of the kernels that make the leaves of an index grid, by words of the result. */
#include "../body/index_morph.h"
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
    refine_op op = {a.op, {0, 0}, 0};
    over_words(op, a.op.b.words, a.op.b.keys, a.op.b.counts->made_chunks * 64, parts);
}

/* ---------------------------------------------------------------- dilate, erode (radius 1) */

/* What a warp knows of the leaves round a word: the source leaf at each of 6^3 cells, one cell of halo all
 * round. */
struct neighbours {
    ulonglong2 words[27];
    uint32_t leaf[216];
};

__device__ __forceinline__ void find_neighbours(const struct vxk_index_grid &g, struct neighbours *nb,
                                                const struct word_at &w, uint32_t lane)
{
    if (lane < 27) {
        int32_t x = (int32_t)(w.word >> 4) + (int32_t)(lane / 9) - 1;
        int32_t y = (int32_t)(w.word >> 2 & 3) + (int32_t)(lane / 3 % 3) - 1;
        int32_t z = (int32_t)(w.word & 3) + (int32_t)(lane % 3) - 1, kx, ky, kz;
        vxk_key_xyz(w.key, &kx, &ky, &kz);
        nb->words[lane] = load_word(g, vxk_index_chunk_at(&g, kx + (x >> 2), ky + (y >> 2), kz + (z >> 2)),
                                    (uint32_t)((x & 3) << 4 | (y & 3) << 2 | (z & 3)));
    }
    __syncwarp();
    for (uint32_t q = lane; q < 216; q += 32) {
        uint32_t x = q / 36 + 3, y = q / 6 % 6 + 3, z = q % 6 + 3; /* cell + 4, each 3..8 */
        nb->leaf[q] =
            leaf_in(nb->words[(x >> 2) * 9 + (y >> 2) * 3 + (z >> 2)], (x & 3) << 4 | (y & 3) << 2 | (z & 3));
    }
}

/* Bytes for the rows beyond a slice: byte 0 the last row of `low`, byte 1 the first row of `high`. */
__device__ __forceinline__ uint32_t rows_beyond(uint64_t low, uint64_t high)
{
    return __byte_perm((uint32_t)(low >> 32), (uint32_t)high, 0x4343);
}
__device__ __forceinline__ uint64_t widen_z(uint64_t c, uint64_t m, uint64_t p)
{
    return c | (c << 1 & 0xfefefefefefefefeull) | (c >> 1 & 0x7f7f7f7f7f7f7f7full) |
           (m >> 7 & VXK_EVERY_BYTE) | (p << 7 & 0x8080808080808080ull);
}
__device__ __forceinline__ uint32_t widen_z32(uint32_t c, uint32_t m, uint32_t p)
{
    return c | (c << 1 & 0xfefefefeu) | (c >> 1 & 0x7f7f7f7fu) | (m >> 7 & 0x01010101u) |
           (p << 7 & 0x80808080u);
}
/* c with its rows moved up and down by one; beyond: rows_beyond of the neighbours. */
__device__ __forceinline__ uint64_t move_y(uint64_t c, uint32_t beyond)
{
    return c << 8 | c >> 8 | (beyond & 0xff) | (uint64_t)(beyond << 16 & 0xff000000u) << 32;
}

/* From the nine source words at one x, m[(dy + 1) * 3 + dz + 1]: what they reach at the same x, and one
 * beside. */
template <int SHAPE>
__device__ __forceinline__ void reach_of(const uint64_t m[9], uint64_t *centre, uint64_t *side)
{
    uint64_t along_z = widen_z(m[4], m[3], m[5]);
    uint64_t cross = along_z | move_y(m[4], rows_beyond(m[1], m[7]));
    if (SHAPE == VXK_MORPH_FACES) {
        *centre = cross;
        *side = m[4];
        return;
    }
    *centre = along_z | move_y(along_z, widen_z32(rows_beyond(m[1], m[7]), rows_beyond(m[0], m[6]),
                                                  rows_beyond(m[2], m[8])));
    *side = SHAPE == VXK_MORPH_EDGES ? cross : *centre;
}
/* The same for a slice of which only the side is wanted. */
template <int SHAPE> __device__ __forceinline__ uint64_t side_of(const uint64_t m[9])
{
    uint64_t centre, side;
    reach_of<SHAPE>(m, &centre, &side);
    return side;
}
/* Which of nine neighbours along y and z a slice needs: for itself, for the slices beside. */
__device__ constexpr bool needs(int shape, bool side, int k)
{
    int moved = (k / 3 != 1) + (k % 3 != 1);
    return shape == VXK_MORPH_BOX     ? true
           : shape == VXK_MORPH_EDGES ? !side || moved <= 1
                                      : moved <= (side ? 0 : 1);
}

/* Two mask words of the leaf at `cell`, by four lanes; flip: as in vxk_morph_mask. */
template <int SHAPE>
__device__ __forceinline__ ulonglong2 morph(const uint64_t *masks, const struct neighbours *nb, uint32_t cell,
                                            uint32_t e, bool ok, uint64_t flip)
{
    const uint32_t *at =
        nb->leaf + (cell >> 4) * 36 + (cell >> 2 & 3) * 6 + (cell & 3); /* of the lowest corner */
    uint64_t m0[9], m1[9], c0, c1, s0, s1, beyond = 0, up, down;
#pragma unroll
    for (int k = 0; k < 9; k++) {
        ulonglong2 v = make_ulonglong2(0, 0);
        if (needs(SHAPE, false, k))
            v = load_pair(masks, ok ? at[36 + k / 3 * 6 + k % 3] : VXK_NONE, e);
        m0[k] = v.x ^ flip;
        m1[k] = v.y ^ flip;
    }
    if (e == 0 || e == 3) { /* the slice beyond the leaf's face */
        const uint32_t *far = e == 0 ? at : at + 72;
        uint64_t h[9];
#pragma unroll
        for (int k = 0; k < 9; k++) {
            uint32_t leaf = needs(SHAPE, true, k) && ok ? far[k / 3 * 6 + k % 3] : VXK_NONE;
            h[k] = (leaf == VXK_NONE ? 0 : masks[(uint64_t)leaf * 8 + (e == 0 ? 7 : 0)]) ^ flip;
        }
        beyond = side_of<SHAPE>(h);
    }
    reach_of<SHAPE>(m0, &c0, &s0);
    reach_of<SHAPE>(m1, &c1, &s1);
    up = __shfl_up_sync(~0u, s1, 1, 4);
    down = __shfl_down_sync(~0u, s0, 1, 4);
    return make_ulonglong2(c0 | s1 | (e == 0 ? beyond : up), c1 | s0 | (e == 3 ? beyond : down));
}

template <int SHAPE> struct dilate_op {
    const struct vxk_index_morph &a;
    struct neighbours *nb;
    __device__ __forceinline__ void begin(const struct word_at &w, uint32_t lane)
    {
        find_neighbours(a.g, nb, w, lane);
    }
    __device__ __forceinline__ void leaf(const struct word_at &, uint32_t cell, uint32_t to, uint32_t e,
                                         bool ok)
    {
        put(a.b, to, morph<SHAPE>(a.g.masks, nb, cell, e, ok, 0), e, ok);
    }
    __device__ __forceinline__ void end(const struct word_at &, uint32_t)
    {
    }
};
template <int SHAPE>
__global__ void __launch_bounds__(WARPS * 32, 4)
    dilate_leaves(const __grid_constant__ struct vxk_index_dilate_leaves_args a, uint32_t parts)
{
    __shared__ struct neighbours nb[WARPS];
    dilate_op<SHAPE> op = {a.op, &nb[threadIdx.x >> 5]};
    over_words(op, a.op.b.words, a.op.b.keys, a.op.b.counts->made_chunks * 64, parts);
}

template <int SHAPE> struct erode_op {
    const struct vxk_index_erode_args &a;
    struct neighbours *nb;
    __device__ __forceinline__ void begin(const struct word_at &w, uint32_t lane)
    {
        find_neighbours(a.g, nb, w, lane);
    }
    __device__ __forceinline__ void leaf(const struct word_at &, uint32_t cell, uint32_t to, uint32_t e,
                                         bool ok)
    {
        ulonglong2 m = morph<SHAPE>(a.g.masks, nb, cell, e, ok, ~0ull);
        if (ok)
            *(ulonglong2 *)(void *)(a.keep + (uint64_t)to * 8 + 2 * e) = make_ulonglong2(~m.x, ~m.y);
    }
    __device__ __forceinline__ void end(const struct word_at &, uint32_t)
    {
    }
};
template <int SHAPE>
__global__ void __launch_bounds__(WARPS * 32, 4)
    erode(const __grid_constant__ struct vxk_index_erode_args a, uint32_t parts)
{
    __shared__ struct neighbours nb[WARPS];
    erode_op<SHAPE> op = {a, &nb[threadIdx.x >> 5]};
    over_words(op, a.g.words, a.g.keys, a.g.n_chunks * 64, parts);
}

} // namespace

/* Launches `kernel` over the words of the result. */
#define VXK_LEAVES(name, in_multiprocessor)                                                                  \
    extern "C" cudaError_t vxk_cuda_tuned_index_##name##_leaves(const struct vxk_cuda_launch *l)             \
    {                                                                                                        \
        const struct vxk_index_##name##_leaves_args *a =                                                     \
            (const struct vxk_index_##name##_leaves_args *)l->args;                                          \
        struct shape s = shape_for(l, a->op.b.chunk_room, in_multiprocessor);                                \
        name##_leaves<<<s.blocks, WARPS * 32, 0, l->stream>>>(*a, s.parts);                                  \
        return cudaGetLastError();                                                                           \
    }
VXK_LEAVES(merge, 6)
VXK_LEAVES(prune, 6)
VXK_LEAVES(coarsen, 5)
VXK_LEAVES(refine, 6)

extern "C" cudaError_t vxk_cuda_tuned_index_dilate_leaves(const struct vxk_cuda_launch *l)
{
    const struct vxk_index_dilate_leaves_args *a = (const struct vxk_index_dilate_leaves_args *)l->args;
    struct shape s = shape_for(l, a->op.b.chunk_room, 4);
    if (a->op.radius != 1)
        return cudaErrorNotSupported;
    if (a->op.shape == VXK_MORPH_FACES)
        dilate_leaves<VXK_MORPH_FACES><<<s.blocks, WARPS * 32, 0, l->stream>>>(*a, s.parts);
    else if (a->op.shape == VXK_MORPH_EDGES)
        dilate_leaves<VXK_MORPH_EDGES><<<s.blocks, WARPS * 32, 0, l->stream>>>(*a, s.parts);
    else
        dilate_leaves<VXK_MORPH_BOX><<<s.blocks, WARPS * 32, 0, l->stream>>>(*a, s.parts);
    return cudaGetLastError();
}

extern "C" cudaError_t vxk_cuda_tuned_index_erode(const struct vxk_cuda_launch *l)
{
    const struct vxk_index_erode_args *a = (const struct vxk_index_erode_args *)l->args;
    struct shape s = shape_for(l, a->g.n_chunks, 4);
    if (a->radius != 1)
        return cudaErrorNotSupported;
    if (a->shape == VXK_MORPH_FACES)
        erode<VXK_MORPH_FACES><<<s.blocks, WARPS * 32, 0, l->stream>>>(*a, s.parts);
    else if (a->shape == VXK_MORPH_EDGES)
        erode<VXK_MORPH_EDGES><<<s.blocks, WARPS * 32, 0, l->stream>>>(*a, s.parts);
    else
        erode<VXK_MORPH_BOX><<<s.blocks, WARPS * 32, 0, l->stream>>>(*a, s.parts);
    return cudaGetLastError();
}
