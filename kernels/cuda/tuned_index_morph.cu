/*
 * Tuned variants of dilation and erosion, by words of the result: the leaves round a word are looked up once,
 * then four lanes make a leaf, two slices each.
 */
#include "../body/index_morph.h"
#include "tuned_index.cuh"

namespace
{

/* What a warp knows of the leaves round a word: the masks of the source leaf at each of 6^3 cells, one cell
 * of halo all round; of no leaf, zeros. */
struct neighbours {
    ulonglong2 words[27];
    const uint64_t *masks[216];
};
__device__ const uint64_t no_leaf[8] __attribute__((aligned(64))) = {0};

/* For each of the 6^3 cells: its word among the 27, its cell there. */
__device__ __forceinline__ void make_cells(uint16_t cells[216])
{
    for (uint32_t q = threadIdx.x; q < 216; q += blockDim.x) {
        uint32_t x = q / 36 + 3, y = q / 6 % 6 + 3, z = q % 6 + 3; /* cell + 4, each 3..8 */
        cells[q] =
            (uint16_t)(((x >> 2) * 9 + (y >> 2) * 3 + (z >> 2)) << 6 | (x & 3) << 4 | (y & 3) << 2 | (z & 3));
    }
    __syncthreads();
}

/* reach: directions that count (vxk_morph_reach); the words in others are taken as empty. */
__device__ __forceinline__ void find_neighbours(const struct vxk_index_grid &g, struct neighbours *nb,
                                                const uint16_t *cells, const struct word_at &w, uint32_t lane,
                                                uint32_t reach)
{
    if (lane < 27) {
        int32_t x = (int32_t)(w.word >> 4) + (int32_t)(lane / 9) - 1;
        int32_t y = (int32_t)(w.word >> 2 & 3) + (int32_t)(lane / 3 % 3) - 1;
        int32_t z = (int32_t)(w.word & 3) + (int32_t)(lane % 3) - 1, kx, ky, kz;
        uint32_t chunk = VXK_NONE;
        vxk_key_xyz(w.key, &kx, &ky, &kz);
        if (reach >> lane & 1)
            chunk = vxk_index_chunk_at(&g, kx + (x >> 2), ky + (y >> 2), kz + (z >> 2));
        nb->words[lane] = load_word(g, chunk, (uint32_t)((x & 3) << 4 | (y & 3) << 2 | (z & 3)));
    }
    __syncwarp();
#pragma unroll
    for (uint32_t k = 0; k < 7; k++) {
        uint32_t q = k * 32 + lane;
        if (q < 216) {
            uint32_t leaf = leaf_in(nb->words[cells[q] >> 6], cells[q] & 63);
            nb->masks[q] = leaf == VXK_NONE ? no_leaf : g.masks + (uint64_t)leaf * 8;
        }
    }
}

/* ---------------------------------------------------------------- radius 1 */

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
__device__ __forceinline__ ulonglong2 morph(const struct neighbours *nb, uint32_t cell, uint32_t e,
                                            uint64_t flip)
{
    /* of the lowest corner */
    const uint64_t *const *at = nb->masks + (cell >> 4) * 36 + (cell >> 2 & 3) * 6 + (cell & 3);
    uint64_t m0[9], m1[9], c0, c1, s0, s1, beyond = 0, up, down;
#pragma unroll
    for (int k = 0; k < 9; k++) {
        ulonglong2 v = make_ulonglong2(0, 0);
        if (needs(SHAPE, false, k))
            v = load2(at[36 + k / 3 * 6 + k % 3] + 2 * e);
        m0[k] = v.x ^ flip;
        m1[k] = v.y ^ flip;
    }
    if (e == 0 || e == 3) { /* the slice beyond the leaf's face */
        const uint64_t *const *far = e == 0 ? at : at + 72;
        uint32_t slice = e == 0 ? 7 : 0;
        uint64_t h[9];
#pragma unroll
        for (int k = 0; k < 9; k++)
            h[k] = (needs(SHAPE, true, k) ? far[k / 3 * 6 + k % 3][slice] : 0) ^ flip;
        beyond = side_of<SHAPE>(h);
    }
    reach_of<SHAPE>(m0, &c0, &s0);
    reach_of<SHAPE>(m1, &c1, &s1);
    up = __shfl_up_sync(~0u, s1, 1, 4);
    down = __shfl_down_sync(~0u, s0, 1, 4);
    return make_ulonglong2(c0 | s1 | (e == 0 ? beyond : up), c1 | s0 | (e == 3 ? beyond : down));
}

/* ---------------------------------------------------------------- boxes of radius 2 to 8 */

/* Steps that widen by r bits in all: one, two, up to four at once. */
__device__ constexpr int second(int r)
{
    return r - 1 < 2 ? r - 1 : 2;
}
__device__ constexpr int third(int r)
{
    return r > 3 ? r - 3 : 0;
}
/* Bits to higher (lower) z by 0..R, R <= 7, within their byte. */
template <int R> __device__ __forceinline__ uint64_t up_z(uint64_t s)
{
    if (R >= 1)
        s |= s << 1 & VXK_EVERY_BYTE * 0xfe;
    if (R >= 2)
        s |= s << second(R) & VXK_EVERY_BYTE * (0xff << second(R) & 0xff);
    if (R >= 4)
        s |= s << third(R) & VXK_EVERY_BYTE * (0xff << third(R) & 0xff);
    return s;
}
template <int R> __device__ __forceinline__ uint64_t down_z(uint64_t s)
{
    if (R >= 1)
        s |= s >> 1 & VXK_EVERY_BYTE * 0x7f;
    if (R >= 2)
        s |= s >> second(R) & VXK_EVERY_BYTE * (0xff >> second(R));
    if (R >= 4)
        s |= s >> third(R) & VXK_EVERY_BYTE * (0xff >> third(R));
    return s;
}
/* The same along y, within the word. */
template <int R> __device__ __forceinline__ uint64_t up_y(uint64_t s)
{
    if (R >= 1)
        s |= s << 8;
    if (R >= 2)
        s |= s << 8 * second(R);
    if (R >= 4)
        s |= s << 8 * third(R);
    return s;
}
template <int R> __device__ __forceinline__ uint64_t down_y(uint64_t s)
{
    if (R >= 1)
        s |= s >> 8;
    if (R >= 2)
        s |= s >> 8 * second(R);
    if (R >= 4)
        s |= s >> 8 * third(R);
    return s;
}
/* vxk_morph_z, vxk_morph_y: what comes from a neighbour is moved in first, then widened by what is left. */
template <int R> __device__ __forceinline__ uint64_t box_z(uint64_t c, uint64_t m, uint64_t p)
{
    constexpr int in = R < 8 ? R : 7;
    return up_z<in>(c) | down_z<in>(c) | down_z<R - 1>(m >> (8 - R) & VXK_EVERY_BYTE * (0xff >> (8 - R))) |
           up_z<R - 1>(p << (8 - R) & VXK_EVERY_BYTE * (0xff << (8 - R) & 0xff));
}
template <int R> __device__ __forceinline__ uint64_t box_y(uint64_t c, uint64_t m, uint64_t p)
{
    constexpr int in = R < 8 ? R : 7;
    return up_y<in>(c) | down_y<in>(c) | down_y<R - 1>(m >> (64 - 8 * R)) | up_y<R - 1>(p << (64 - 8 * R));
}

enum { SLICES = 25 /* 24 along x over three leaves; one more for the banks */ };

/* Slices 2 e and 2 e + 1 of the leaf at at[0] (of its neighbours' lowest corner), widened along y and z. */
template <int R>
__device__ __forceinline__ void box_slices(const uint64_t *const *at, uint32_t e, uint64_t flip,
                                           uint64_t out[2])
{
    uint64_t m0[9], m1[9];
#pragma unroll
    for (int k = 0; k < 9; k++) {
        ulonglong2 v = load2(at[k / 3 * 6 + k % 3] + 2 * e);
        m0[k] = v.x ^ flip;
        m1[k] = v.y ^ flip;
    }
    out[0] =
        box_y<R>(box_z<R>(m0[4], m0[3], m0[5]), box_z<R>(m0[1], m0[0], m0[2]), box_z<R>(m0[7], m0[6], m0[8]));
    out[1] =
        box_y<R>(box_z<R>(m1[4], m1[3], m1[5]), box_z<R>(m1[1], m1[0], m1[2]), box_z<R>(m1[7], m1[6], m1[8]));
}

/* Two mask words of the leaf at `cell`, by four lanes that share `slices`. */
template <int R>
__device__ __forceinline__ ulonglong2 box(const struct neighbours *nb, uint64_t *slices, uint32_t cell,
                                          uint32_t e, uint64_t flip)
{
    const uint64_t *const *at = nb->masks + (cell >> 4) * 36 + (cell >> 2 & 3) * 6 + (cell & 3);
    uint64_t s[2], common = 0;
    int first = 8 + 2 * (int)e - R;
    __syncwarp(); /* the last leaf's slices were read */
    box_slices<R>(at + 36, e, flip, s);
    slices[8 + 2 * e] = s[0];
    slices[9 + 2 * e] = s[1];
    if (R <= 4) { /* the near halves of both neighbours are one leaf's work */
        uint32_t to = e < 2 ? 16 + 2 * e : 2 * e;
        box_slices<R>(e < 2 ? at + 72 : at, e, flip, s);
        slices[to] = s[0];
        slices[to + 1] = s[1];
    } else {
        box_slices<R>(at, e, flip, s);
        slices[2 * e] = s[0];
        slices[2 * e + 1] = s[1];
        box_slices<R>(at + 72, e, flip, s);
        slices[16 + 2 * e] = s[0];
        slices[17 + 2 * e] = s[1];
    }
    __syncwarp();
#pragma unroll
    for (int k = 1; k <= 2 * R; k++)
        common |= slices[first + k];
    return make_ulonglong2(common | slices[first], common | slices[first + 2 * R + 1]);
}

/* ---------------------------------------------------------------- the kernels */

/* One of the neighbourhoods: RADIUS 1 with a shape, or a box. */
template <int SHAPE, int RADIUS> struct shape_of {
    struct neighbours nb;
    uint64_t slices[RADIUS > 1 ? 8 * SLICES : 1]; /* for each of the leaves that a warp makes at once */
    __device__ __forceinline__ ulonglong2 make(uint32_t cell, uint32_t e, uint64_t flip)
    {
        if constexpr (RADIUS > 1)
            return box<RADIUS>(&nb, slices + (threadIdx.x >> 2 & 7) * SLICES, cell, e, flip);
        else
            return morph<SHAPE>(&nb, cell, e, flip);
    }
};

template <int SHAPE, int RADIUS> struct dilate_op {
    const struct vxk_index_morph &a;
    struct shape_of<SHAPE, RADIUS> *shape;
    const uint16_t *cells;
    __device__ __forceinline__ void begin(const struct word_at &w, uint32_t lane)
    {
        find_neighbours(a.g, &shape->nb, cells, w, lane, vxk_morph_reach(SHAPE));
    }
    __device__ __forceinline__ void leaf(const struct word_at &, uint32_t cell, uint32_t to, uint32_t e,
                                         bool ok)
    {
        put(a.b, to, shape->make(cell, e, 0), e, ok);
    }
    __device__ __forceinline__ void end(const struct word_at &, uint32_t)
    {
    }
};
template <int SHAPE, int RADIUS>
__global__ void __launch_bounds__(WARPS * 32, 8)
    dilate_leaves(const __grid_constant__ struct vxk_index_dilate_leaves_args a, uint32_t parts)
{
    vxk_kernel_begin();
    __shared__ struct shape_of<SHAPE, RADIUS> shapes[WARPS];
    __shared__ uint16_t cells[216];
    dilate_op<SHAPE, RADIUS> op = {a.op, &shapes[threadIdx.x >> 5], cells};
    make_cells(cells);
    over_words(op, a.op.b.words, a.op.b.keys, a.op.b.counts->made_chunks * 64, parts);
}

template <int SHAPE, int RADIUS> struct erode_op {
    const struct vxk_index_erode_args &a;
    struct shape_of<SHAPE, RADIUS> *shape;
    const uint16_t *cells;
    __device__ __forceinline__ void begin(const struct word_at &w, uint32_t lane)
    {
        find_neighbours(a.g, &shape->nb, cells, w, lane, vxk_morph_reach(SHAPE));
    }
    __device__ __forceinline__ void leaf(const struct word_at &, uint32_t cell, uint32_t to, uint32_t e,
                                         bool ok)
    {
        ulonglong2 m = shape->make(cell, e, ~0ull);
        if (ok)
            *(ulonglong2 *)(void *)(a.keep + (uint64_t)to * 8 + 2 * e) = make_ulonglong2(~m.x, ~m.y);
    }
    __device__ __forceinline__ void end(const struct word_at &, uint32_t)
    {
    }
};
template <int SHAPE, int RADIUS>
__global__ void __launch_bounds__(WARPS * 32, 8)
    erode(const __grid_constant__ struct vxk_index_erode_args a, uint32_t parts)
{
    vxk_kernel_begin();
    __shared__ struct shape_of<SHAPE, RADIUS> shapes[WARPS];
    __shared__ uint16_t cells[216];
    erode_op<SHAPE, RADIUS> op = {a, &shapes[threadIdx.x >> 5], cells};
    make_cells(cells);
    over_words(op, a.g.words, a.g.keys, a.g.n_chunks * 64, parts);
}

/* Both operators for one neighbourhood. */
template <int SHAPE, int RADIUS> struct run {
    static cudaError_t on(const struct vxk_cuda_launch *l, const struct vxk_index_dilate_leaves_args &a,
                          struct shape s)
    {
        return vxk_launch_begun(l, dilate_leaves<SHAPE, RADIUS>, s.blocks, WARPS * 32, a, s.parts);
    }
    static cudaError_t on(const struct vxk_cuda_launch *l, const struct vxk_index_erode_args &a,
                          struct shape s)
    {
        return vxk_launch_begun(l, erode<SHAPE, RADIUS>, s.blocks, WARPS * 32, a, s.parts);
    }
};
template <class Args>
cudaError_t pick(const struct vxk_cuda_launch *l, const Args &a, uint32_t shape, uint32_t radius,
                 struct shape s)
{
    if (shape == VXK_MORPH_FACES)
        return run<VXK_MORPH_FACES, 1>::on(l, a, s);
    if (shape == VXK_MORPH_EDGES)
        return run<VXK_MORPH_EDGES, 1>::on(l, a, s);
    switch (radius) {
    case 1:
        return run<VXK_MORPH_BOX, 1>::on(l, a, s);
    case 2:
        return run<VXK_MORPH_BOX, 2>::on(l, a, s);
    case 3:
        return run<VXK_MORPH_BOX, 3>::on(l, a, s);
    case 4:
        return run<VXK_MORPH_BOX, 4>::on(l, a, s);
    case 5:
        return run<VXK_MORPH_BOX, 5>::on(l, a, s);
    case 6:
        return run<VXK_MORPH_BOX, 6>::on(l, a, s);
    case 7:
        return run<VXK_MORPH_BOX, 7>::on(l, a, s);
    case 8:
        return run<VXK_MORPH_BOX, 8>::on(l, a, s);
    default:
        return cudaErrorNotSupported;
    }
}

} // namespace

extern "C" cudaError_t vxk_cuda_tuned_index_dilate_leaves(const struct vxk_cuda_launch *l)
{
    const struct vxk_index_dilate_leaves_args *a = (const struct vxk_index_dilate_leaves_args *)l->args;
    return pick(l, *a, a->op.shape, a->op.radius, shape_for(l, a->op.b.chunk_room, 8));
}

extern "C" cudaError_t vxk_cuda_tuned_index_erode(const struct vxk_cuda_launch *l)
{
    const struct vxk_index_erode_args *a = (const struct vxk_index_erode_args *)l->args;
    return pick(l, *a, a->shape, a->radius, shape_for(l, a->g.n_chunks, 8));
}
