/*
 * tuned_vbm_convolve.cu - variant of vbm_convolve (body/stencil.h): a warp a leaf in dense chunks, a thread a
 * voxel in sparse ones.
 *
 * Leaf by leaf: a lane holds the columns along x of two voxel rows (y & 3, z) of the leaf.  The neighbours
 * along x are in its registers; plane after plane goes through shared memory for those along y and z.  The
 * sums of a plane serve the planes beside it too, so that edges and corners cost two more sums a plane and
 * no more loads than their halo.
 *
 * Voxel by voxel: the block's jump map gives a thread its voxel, and each looks up the at most three (faces,
 * axes), six (edges) or seven (box) leaves that its neighbours are in.
 */
#include "tuned_vbm.cuh"

enum {
    WARPS = 8,
    ROW = 24 /* floats a row of a plane: the four rows that a warp reads at once are in different banks */
};

/* The address as one number.  (Else the compiler adds base and rank in 64 bits first, five operations an
 * access in place of one.) */
template <typename T> static __device__ __forceinline__ T *whole(T *p)
{
    return vxk_opaque(p);
}

static __device__ __forceinline__ uint64_t below64(uint32_t bit)
{
    return (1ull << bit) - 1;
}

/* ------------------------------------------------------------------ leaf by leaf */

/* The leaves that a warp took and those round them: direction 9 dx + 3 dy + dz + 13. */
struct surroundings {
    uint64_t first[MOST_AT_ONCE][27]; /* first voxel */
    uint32_t leaf[MOST_AT_ONCE][27];  /* VXK_NONE: none */
    uint32_t taken[MOST_AT_ONCE];
};

/* Looks all of them up at once, a lane each. */
template <int KIND, bool ONE>
static __device__ __forceinline__ void look_round(const struct vxk_vbm *v, uint32_t n, uint32_t lane,
                                                  struct surroundings *s)
{
    const bool few = KIND == VXK_SUM_FACES || KIND == VXK_SUM_AXES;
    const uint32_t n_directions = few ? 7 : 27;
    for (uint32_t task = lane; task < n * n_directions; task += 32) {
        const uint32_t k = task / n_directions, q = task - k * n_directions;
        const uint32_t d = few ? (uint32_t)(0x16100e0d0c0a04ull >> 8 * q) & 255 : q;
        const int dx = (int)(d / 9) - 1, dy = (int)(d / 3 % 3) - 1, dz = (int)(d % 3) - 1;
        const struct vxk_vbm_grid *vg = grid_of_leaf<ONE>(v, s->taken[k]);
        const uint32_t own = s->taken[k] - vg->leaf;
        if (KIND == VXK_SUM_EDGES && dx && dy && dz)
            continue;
        const uint32_t leaf = d == 13 ? own : vxk_index_beside(&vg->g, vg->g.place[own], dx, dy, dz);
        s->leaf[k][d] = leaf;
        s->first[k][d] = leaf == VXK_NONE ? 0 : vg->voxel + vxk_index_first(&vg->g, leaf);
    }
    __syncwarp();
}

struct source {
    const float *in;
    float missing;
};
/* Value of a bit of a mask word whose first voxel is `base`. */
static __device__ __forceinline__ float value(const struct source *s, uint64_t mask, uint32_t bit,
                                              uint64_t base)
{
    return mask >> bit & 1 ? __ldg(whole(s->in + base) + __popcll(mask & below64(bit))) : s->missing;
}
/* The two values of a whole plane that a lane holds. */
static __device__ __forceinline__ void plane_values(const struct source *s, uint64_t mask, uint64_t base,
                                                    uint32_t lane, float v[2])
{
    const uint32_t lo = (uint32_t)mask, hi = (uint32_t)(mask >> 32), below = below32(lane);
    const float *p = whole(s->in + base);
    v[0] = lo >> lane & 1 ? __ldg(p + __popc(lo & below)) : s->missing;
    v[1] = hi >> lane & 1 ? __ldg(p + (__popc(lo) + __popc(hi & below))) : s->missing;
}

enum { ABSENT = 0xffff };
template <int KIND> struct leaf_work {
    static const int REACH = KIND == VXK_SUM_AXES ? 3 : 1;
    static const bool WIDE = KIND == VXK_SUM_EDGES || KIND == VXK_SUM_BOX; /* planes beside have sums too */
    static const int FIRST = WIDE ? -1 : 0, END = WIDE ? 9 : 8;            /* planes whose sums are made */
    static const int ROWS = 8 + 2 * REACH;

    float v[8 + 2 * REACH][2]; /* planes -REACH .. 7 + REACH */
    float ring[10][REACH];     /* planes -1 .. 8: the lane's cells beside a plane */
    /* The lane's two voxels of a plane: rank in the leaf (9 bits) and whether they are there, in 16 bits each
     */
    uint32_t rank[8];
    uint32_t busy; /* bit 2 x + h: half h of plane x has voxels */
};

/* A plane with the cells round it, in shared memory; twice, in turns. */
template <int KIND> struct warp_planes {
    float cell[2][leaf_work<KIND>::ROWS * ROW];
    float corner[10][4]; /* the diagonal ones of planes -1 .. 8 */
};

/* Lane l holds cells of side l >> 3 (y-, y+, z-, z+) of each plane, number l & 7 along it, h steps away. */
static __device__ __forceinline__ uint32_t ring_bit(uint32_t lane, int h)
{
    const uint32_t side = lane >> 3, k = lane & 7;
    return side == 0 ? 56 - 8 * h + k : side == 1 ? 8 * h + k : side == 2 ? 8 * k + 7 - h : 8 * k + h;
}
template <int KIND> static __device__ __forceinline__ uint32_t ring_cell(uint32_t lane, int h)
{
    const int R = leaf_work<KIND>::REACH;
    const uint32_t side = lane >> 3, k = lane & 7;
    return side == 0   ? (uint32_t)(R - 1 - h) * ROW + R + k
           : side == 1 ? (uint32_t)(R + 8 + h) * ROW + R + k
           : side == 2 ? (R + k) * ROW + R - 1 - h
                       : (R + k) * ROW + R + 8 + h;
}

/*
 * Mask words of a leaf and of those round it, all loaded before the first is used: the values that they lead
 * to are then loaded together too.  Where a leaf is missing its words are empty.
 */
template <int KIND> struct leaf_masks {
    ulonglong2 own[4];
    uint64_t own_prefix;
    /* the side of the lane: of 16 half words, those that it keeps for the 8 lanes of the side */
    uint32_t half[2];
    uint64_t side_prefix;
    uint64_t face[2][leaf_work<KIND>::REACH], face_prefix[2]; /* planes beside along x: below, above */
    uint64_t touch[2], touch_prefix;                          /* WIDE: the lane's side of the planes beside */
    uint64_t edge, edge_prefix;                               /* WIDE: the lane's diagonal cell */
    uint64_t corner, corner_prefix; /* the box's, of lanes whose number is one's direction */
};
static __device__ __forceinline__ uint64_t mask_of(const struct vxk_index_grid *g, uint32_t leaf,
                                                   uint32_t word)
{
    return leaf == VXK_NONE ? 0 : g->masks[(uint64_t)leaf * 8 + word];
}
static __device__ __forceinline__ uint64_t prefix_of(const struct vxk_index_grid *g, uint32_t leaf)
{
    return leaf == VXK_NONE ? 0 : g->prefix[leaf];
}
/* Direction of the lane's side, and of its diagonal. */
static __device__ __forceinline__ uint32_t side_direction(uint32_t lane)
{
    const uint32_t side = lane >> 3;
    return side == 0 ? 10 : side == 1 ? 16 : side == 2 ? 12 : 14;
}
static __device__ __forceinline__ uint32_t edge_direction(uint32_t lane)
{
    const uint32_t e = lane >> 3;
    return 9 + 2 * (e & 1) + 6 * (e >> 1);
}
static __device__ __forceinline__ bool is_corner(uint32_t lane)
{
    return lane < 27 && lane / 9 != 1 && lane / 3 % 3 != 1 && lane % 3 != 1;
}

template <int KIND>
static __device__ __forceinline__ void load_masks(const struct vxk_index_grid *g, const uint32_t *near,
                                                  uint32_t lane, struct leaf_masks<KIND> *m)
{
    const ulonglong2 *own = (const ulonglong2 *)(g->masks + (uint64_t)near[13] * 8);
    const uint32_t direction = side_direction(lane), side = near[direction];
    const uint32_t *halves = (const uint32_t *)(g->masks + (uint64_t)(side == VXK_NONE ? 0 : side) * 8);
#pragma unroll
    for (int k = 0; k < 4; k++)
        m->own[k] = own[k];
    m->own_prefix = g->prefix[near[13]];
    m->half[0] = side == VXK_NONE ? 0 : halves[lane & 7];
    m->half[1] = side == VXK_NONE ? 0 : halves[8 + (lane & 7)];
    m->side_prefix = prefix_of(g, side);
#pragma unroll
    for (int up = 0; up < 2; up++) {
        const uint32_t leaf = near[up ? 22 : 4];
#pragma unroll
        for (int h = 0; h < leaf_work<KIND>::REACH; h++)
            m->face[up][h] = mask_of(g, leaf, up ? h : 7 - h);
        m->face_prefix[up] = prefix_of(g, leaf);
    }
    if (leaf_work<KIND>::WIDE) {
        const uint32_t below = near[direction - 9], edge = near[edge_direction(lane)];
        m->touch[0] = mask_of(g, below, 7);
        m->touch[1] = mask_of(g, near[direction + 9], 0);
        m->touch_prefix = prefix_of(g, below);
        m->edge = mask_of(g, edge, lane & 7);
        m->edge_prefix = prefix_of(g, edge);
    }
    if (KIND == VXK_SUM_BOX) {
        const uint32_t corner = is_corner(lane) ? near[lane] : VXK_NONE;
        m->corner = mask_of(g, corner, lane < 9 ? 7 : 0);
        m->corner_prefix = prefix_of(g, corner);
    }
}

/* The leaf's own voxels. */
template <int KIND>
static __device__ __forceinline__ void load_own(const struct source *s, const struct leaf_masks<KIND> *m,
                                                uint64_t base, uint32_t lane, struct leaf_work<KIND> *w)
{
    const float *p = whole(s->in + base);
    const uint32_t below = below32(lane);
    w->busy = 0;
#pragma unroll
    for (int x = 0; x < 8; x++) {
        const uint64_t mask = x & 1 ? m->own[x / 2].y : m->own[x / 2].x;
        const uint32_t lo = (uint32_t)mask, hi = (uint32_t)(mask >> 32),
                       at = vxk_index_before(m->own_prefix, x);
        const uint32_t r0 = at + __popc(lo & below), r1 = at + __popc(lo) + __popc(hi & below);
        const bool in0 = lo >> lane & 1, in1 = hi >> lane & 1;
        float *v = w->v[x + leaf_work<KIND>::REACH];
        v[0] = in0 ? __ldg(p + r0) : s->missing;
        v[1] = in1 ? __ldg(p + r1) : s->missing;
        w->rank[x] = (in0 ? r0 : ABSENT) | (in1 ? r1 : ABSENT) << 16;
        if (leaf_work<KIND>::WIDE)
            w->busy |= (lo ? 1u : 0u) << 2 * x | (hi ? 2u : 0u) << 2 * x;
    }
}

/*
 * Cells round the planes.  A lane's bits are all in one half of a mask word, so it gets that half alone.  Its
 * rank is counted from the near end of the word: up from the voxels before the word for the lower half, down
 * from those before the next word for the upper one.
 */
template <int KIND>
static __device__ __forceinline__ void load_ring(const struct source *s, const struct leaf_masks<KIND> *m,
                                                 const uint64_t *first, uint32_t lane,
                                                 struct leaf_work<KIND> *w)
{
    const int R = leaf_work<KIND>::REACH;
    const uint32_t direction = side_direction(lane), up = ring_bit(lane, 0) >> 5;
    const float *p = whole(s->in + first[direction]);
    const uint64_t prefix = m->side_prefix;
    const uint32_t all = (uint32_t)(prefix >> 54) + __popc(__shfl_sync(ALL, m->half[1], (lane & 24) + 6)) +
                         __popc(__shfl_sync(ALL, m->half[1], (lane & 24) + 7));
    uint32_t mask[R], bit[R];
#pragma unroll
    for (int h = 0; h < R; h++) {
        const uint32_t n = ring_bit(lane, h) & 31;
        bit[h] = 1u << n;
        mask[h] = up ? ~below32(n) : below32(n);
    }
#pragma unroll
    for (int x = 0; x < 8; x++) {
        const uint32_t half = __shfl_sync(ALL, m->half[x / 4], (lane & 24) + 2 * (x % 4) + up);
        const uint32_t end = x < 7 ? vxk_index_before(prefix, x + 1) : all;
        const uint32_t from = up ? end : vxk_index_before(prefix, x);
#pragma unroll
        for (int h = 0; h < R; h++) {
            const uint32_t n = __popc(half & mask[h]);
            w->ring[x + 1][h] = half & bit[h] ? __ldg(p + (up ? from - n : from + n)) : s->missing;
        }
    }
    if (leaf_work<KIND>::WIDE) {
        const uint32_t n = ring_bit(lane, 0);
        w->ring[0][0] = value(s, m->touch[0], n, first[direction - 9] + vxk_index_before(m->touch_prefix, 7));
        w->ring[9][0] = value(s, m->touch[1], n, first[direction + 9]);
    }
}

/* Planes beside the leaf along x. */
template <int KIND>
static __device__ __forceinline__ void load_faces(const struct source *s, const struct leaf_masks<KIND> *m,
                                                  const uint64_t *first, uint32_t lane,
                                                  struct leaf_work<KIND> *w)
{
    const int R = leaf_work<KIND>::REACH;
#pragma unroll
    for (int up = 0; up < 2; up++)
#pragma unroll
        for (int h = 0; h < R; h++)
            plane_values(s, m->face[up][h],
                         first[up ? 22 : 4] + vxk_index_before(m->face_prefix[up], up ? h : 7 - h), lane,
                         w->v[up ? R + 8 + h : R - 1 - h]);
}

/* The diagonal cells of the planes: a lane has one of plane lane & 7, and for the box one beside the leaf. */
template <int KIND>
static __device__ __forceinline__ void load_corners(const struct source *s, const struct leaf_masks<KIND> *m,
                                                    const uint64_t *first, uint32_t lane,
                                                    struct warp_planes<KIND> *p)
{
    const uint32_t e = lane >> 3, x = lane & 7;
    const uint32_t before = (uint32_t)((x ? m->edge_prefix >> 9 * (x - 1) : 0) & 511);
    p->corner[x + 1][e] =
        value(s, m->edge, (e & 2 ? 0 : 56) + (e & 1 ? 0 : 7), first[edge_direction(lane)] + before);
    if (KIND == VXK_SUM_BOX && is_corner(lane)) {
        const uint32_t dy = lane / 3 % 3, dz = lane % 3;
        p->corner[lane < 9 ? 0 : 9][dy | dz >> 1] =
            value(s, m->corner, (dy ? 0 : 56) + (dz ? 0 : 7),
                  first[lane] + (lane < 9 ? vxk_index_before(m->corner_prefix, 7) : 0));
    }
    __syncwarp();
}

/* Sums of the last three planes, for the two voxels of a lane: [2] is the newest. */
struct sums {
    float cross[3], diagonal[3], far[2];
};
template <int KIND> static __device__ __forceinline__ void sum_plane(const float *c, struct sums *s)
{
    s->cross[2] = (c[-ROW] + c[ROW]) + (c[-1] + c[1]);
    if (leaf_work<KIND>::WIDE)
        s->diagonal[2] = (c[-ROW - 1] + c[-ROW + 1]) + (c[ROW - 1] + c[ROW + 1]);
    if (KIND == VXK_SUM_AXES) {
        s->far[0] = (c[-2 * ROW] + c[2 * ROW]) + (c[-2] + c[2]);
        s->far[1] = (c[-3 * ROW] + c[3 * ROW]) + (c[-3] + c[3]);
    }
}
/* The sum round a voxel of plane x of half `h`. */
template <int KIND>
static __device__ __forceinline__ float sum_voxel(const float weight[4], const struct leaf_work<KIND> *w,
                                                  int x, int h, const struct sums *s)
{
    const int at = x + leaf_work<KIND>::REACH, now = leaf_work<KIND>::WIDE ? 1 : 2;
    float r = weight[0] * w->v[at][h] + weight[1] * (s->cross[now] + (w->v[at - 1][h] + w->v[at + 1][h]));
    if (KIND == VXK_SUM_AXES) {
        r = r + weight[2] * (s->far[0] + (w->v[at - 2][h] + w->v[at + 2][h]));
        r = r + weight[3] * (s->far[1] + (w->v[at - 3][h] + w->v[at + 3][h]));
    }
    if (leaf_work<KIND>::WIDE)
        r = r + weight[2] * (s->diagonal[1] + (s->cross[0] + s->cross[2]));
    if (KIND == VXK_SUM_BOX)
        r = r + weight[3] * (s->diagonal[0] + s->diagonal[2]);
    return r;
}

template <int KIND>
static __device__ __forceinline__ void
convolve_leaf(const struct vxk_vbm_convolve_args *a, const struct vxk_index_grid *g, const uint32_t *near,
              const uint64_t *first, uint32_t lane, struct warp_planes<KIND> *p)
{
    typedef struct leaf_work<KIND> work;
    const int R = work::REACH;
    const struct source s = {a->in, a->missing};
    const uint64_t base = first[13];
    const uint32_t here = ((lane >> 3) + R) * ROW + (lane & 7) + R;
    float *out = whole(a->out + base);
    struct sums sums[2];
    struct leaf_masks<KIND> m;
    work w;
    load_masks<KIND>(g, near, lane, &m);
    load_own<KIND>(&s, &m, base, lane, &w);
    load_ring<KIND>(&s, &m, first, lane, &w);
    load_faces<KIND>(&s, &m, first, lane, &w);
    if (work::WIDE)
        load_corners<KIND>(&s, &m, first, lane, p);
#pragma unroll
    for (int x = work::FIRST; x < work::END; x++) {
        const int done = work::WIDE ? x - 1 : x; /* the plane whose sums are complete */
        float *cell = p->cell[x & 1];
        cell[here] = w.v[x + R][0];
        cell[here + 4 * ROW] = w.v[x + R][1];
#pragma unroll
        for (int h = 0; h < R; h++)
            cell[ring_cell<KIND>(lane, h)] = w.ring[x + 1][h];
        if (work::WIDE && lane < 4 && (KIND == VXK_SUM_BOX || (x >= 0 && x < 8)))
            cell[(lane & 2 ? 9 : 0) * ROW + (lane & 1 ? 9 : 0)] = p->corner[x + 1][lane];
        __syncwarp();
#pragma unroll
        for (int h = 0; h < 2; h++) {
            struct sums *sum = &sums[h];
            if (work::WIDE) {
                uint32_t users = 0; /* planes whose voxels need the sums of this one */
                for (int k = -1; k <= 1; k++)
                    users |= x + k >= 0 && x + k < 8 ? 1u << (2 * (x + k) + h) : 0;
                for (int k = 0; k < 2; k++) {
                    sum->cross[k] = sum->cross[k + 1];
                    sum->diagonal[k] = sum->diagonal[k + 1];
                }
                if (w.busy & users)
                    sum_plane<KIND>(cell + here + 4 * h * ROW, sum);
            }
            if (done < 0)
                continue;
            const uint32_t rank = w.rank[done] >> 16 * h & 0xffff;
            if (!__any_sync(ALL, rank != ABSENT))
                continue;
            if (!work::WIDE)
                sum_plane<KIND>(cell + here + 4 * h * ROW, sum);
            const float r = sum_voxel<KIND>(a->w, &w, done, h, sum);
            if (rank != ABSENT)
                __stcs(out + rank, r);
        }
    }
    __syncwarp(); /* the next leaf's corners must not overtake this one's */
}

template <int KIND, bool ONE>
static __global__ void __launch_bounds__(32 * WARPS, KIND == VXK_SUM_AXES || KIND == VXK_SUM_BOX ? 2 : 3)
    convolve_leaves(const __grid_constant__ struct vxk_vbm_convolve_args a, uint32_t n_at_once)
{
    __shared__ struct warp_planes<KIND> planes[WARPS];
    __shared__ struct surroundings around[WARPS];
    const uint32_t lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const uint64_t first = ((uint64_t)blockIdx.x * WARPS + warp) * n_at_once;
    struct surroundings *s = &around[warp];
    const uint32_t n = take_leaves<ONE>(&a.v, first, n_at_once, lane, s->taken);
    look_round<KIND, ONE>(&a.v, n, lane, s);
    for (uint32_t k = 0; k < n; k++)
        convolve_leaf<KIND>(&a, &grid_of_leaf<ONE>(&a.v, s->taken[k])->g, s->leaf[k], s->first[k], lane,
                            &planes[warp]);
}

/* ------------------------------------------------------------------ voxel by voxel */

/* A thread's voxel: the leaves beside its own that its neighbours may be in, by the axes along which they
 * are beside it (bits 4, 2, 1 for x, y, z). */
struct lone {
    const struct vxk_vbm_grid *vg;
    const float *in;
    float missing;
    int x, y, z;
    const uint32_t (*leaf)[VXK_VBM_WIDTH]; /* [8][threads], shared memory */

    __device__ float operator()(int dx, int dy, int dz) const
    {
        int X = x + dx, Y = y + dy, Z = z + dz;
        uint32_t e = (X >> 3 ? 4u : 0u) | (Y >> 3 ? 2u : 0u) | (Z >> 3 ? 1u : 0u);
        uint32_t l = leaf[e][threadIdx.x], rank = VXK_NONE;
        if (l != VXK_NONE)
            rank = vxk_leaf_rank_of(&vg->g, l, vxk_voxel_of((uint32_t)X, (uint32_t)Y, (uint32_t)Z));
        return rank == VXK_NONE ? missing : in[vg->voxel + vxk_index_first(&vg->g, l) + rank];
    }
    __device__ float cross(int dx, int k) const
    {
        return ((*this)(dx, -k, 0) + (*this)(dx, k, 0)) + ((*this)(dx, 0, -k) + (*this)(dx, 0, k));
    }
    __device__ float diagonals(int dx) const
    {
        return ((*this)(dx, -1, -1) + (*this)(dx, -1, 1)) + ((*this)(dx, 1, -1) + (*this)(dx, 1, 1));
    }
};

template <int KIND>
static __device__ __forceinline__ void look_beside(const struct vxk_index_grid *g, uint32_t leaf, int x,
                                                   int y, int z, uint32_t (*near)[VXK_VBM_WIDTH])
{
    const int R = KIND == VXK_SUM_AXES ? 3 : 1;
    int sx = x < R ? -1 : x > 7 - R, sy = y < R ? -1 : y > 7 - R, sz = z < R ? -1 : z > 7 - R;
    near[0][threadIdx.x] = leaf;
#pragma unroll
    for (uint32_t e = 1; e < 8; e++) {
        const int axes = (e & 1) + (e >> 1 & 1) + (e >> 2);
        if (axes > (KIND == VXK_SUM_BOX ? 3 : KIND == VXK_SUM_EDGES ? 2 : 1))
            continue;
        if ((e & 4 && !sx) || (e & 2 && !sy) || (e & 1 && !sz))
            continue;
        near[e][threadIdx.x] =
            vxk_index_beside(g, g->place[leaf], e & 4 ? sx : 0, e & 2 ? sy : 0, e & 1 ? sz : 0);
    }
}

template <int KIND>
static __device__ __forceinline__ void
convolve_voxel(const struct vxk_vbm_convolve_args *a, const struct vxk_vbm_grid *vg,
               const struct vxk_vbm_block *b, uint32_t t, uint32_t (*near)[VXK_VBM_WIDTH])
{
    uint32_t rank, leaf = vxk_vbm_leaf(b, t, &rank), n = vxk_leaf_select(&vg->g, leaf, rank);
    const struct lone tap = {vg, a->in, a->missing, (int)(n >> 6), (int)(n >> 3 & 7), (int)(n & 7), near};
    look_beside<KIND>(&vg->g, leaf, tap.x, tap.y, tap.z, near);
    float r = a->w[0] * a->in[b->voxel + t] + a->w[1] * (tap.cross(0, 1) + (tap(-1, 0, 0) + tap(1, 0, 0)));
    if (KIND == VXK_SUM_AXES) {
        r = r + a->w[2] * (tap.cross(0, 2) + (tap(-2, 0, 0) + tap(2, 0, 0)));
        r = r + a->w[3] * (tap.cross(0, 3) + (tap(-3, 0, 0) + tap(3, 0, 0)));
    } else if (KIND != VXK_SUM_FACES) {
        r = r + a->w[2] * (tap.diagonals(0) + (tap.cross(-1, 1) + tap.cross(1, 1)));
    }
    if (KIND == VXK_SUM_BOX)
        r = r + a->w[3] * (tap.diagonals(-1) + tap.diagonals(1));
    a->out[b->voxel + t] = r;
}

template <int KIND, bool ONE>
static __global__ void __launch_bounds__(VXK_VBM_WIDTH)
    convolve_voxels(const __grid_constant__ struct vxk_vbm_convolve_args a)
{
    __shared__ uint32_t near[8][VXK_VBM_WIDTH];
    const struct vxk_vbm_grid *vg;
    uint32_t first;
    const uint32_t n = sparse_blocks<ONE>(&a.v, blockIdx.x, &vg, &first);
    for (uint32_t i = blockIdx.y; i < n; i += gridDim.y) {
        const struct vxk_vbm_block b = a.v.blocks[first + i];
        if (threadIdx.x < vxk_vbm_count(&b))
            convolve_voxel<KIND>(&a, vg, &b, threadIdx.x, near);
    }
}

/* ------------------------------------------------------------------ launch */

template <int KIND, bool ONE>
static cudaError_t launch(const struct vxk_cuda_launch *l, const struct vxk_vbm_convolve_args *a)
{
    const uint32_t at_once = leaves_at_once(a->v.n_leaves, l->n_multiprocessors * 3 * WARPS),
                   per_block = WARPS * at_once;
    const dim3 chunks = {a->v.n_chunks, SPARSE_PARTS, 1};
    const uint32_t blocks = (a->v.n_leaves + per_block - 1) / per_block;
    cudaError_t e = vxk_launch_plain(l, convolve_leaves<KIND, ONE>, blocks, 32 * WARPS, 0, *a, at_once);
    return e == cudaSuccess ? vxk_launch_plain(l, convolve_voxels<KIND, ONE>, chunks, VXK_VBM_WIDTH, 0, *a)
                            : e;
}

template <int KIND>
static cudaError_t launch_any(const struct vxk_cuda_launch *l, const struct vxk_vbm_convolve_args *a)
{
    return a->v.n_grids == 1 ? launch<KIND, true>(l, a) : launch<KIND, false>(l, a);
}

/* Always launched over all blocks: the work is found by leaf and by chunk. */
extern "C" cudaError_t vxk_cuda_tuned_vbm_convolve(const struct vxk_cuda_launch *l)
{
    const struct vxk_vbm_convolve_args *a = (const struct vxk_vbm_convolve_args *)l->args;
    if (l->n_dev || l->n != a->v.n_blocks)
        return cudaErrorInvalidValue;
    switch (a->kind) {
    case VXK_SUM_FACES:
        return launch_any<VXK_SUM_FACES>(l, a);
    case VXK_SUM_EDGES:
        return launch_any<VXK_SUM_EDGES>(l, a);
    case VXK_SUM_AXES:
        return launch_any<VXK_SUM_AXES>(l, a);
    default:
        return launch_any<VXK_SUM_BOX>(l, a);
    }
}
