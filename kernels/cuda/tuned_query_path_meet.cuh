/*
 * tuned_query_path_meet.cuh - pieces of ways, and where they meet unknown space.
 */
#ifndef VXK_CUDA_TUNED_QUERY_PATH_MEET_CUH
#define VXK_CUDA_TUNED_QUERY_PATH_MEET_CUH

#include "tuned_query_path.cuh"

/* A piece of a way, by its number in the group. */
struct piece {
    const struct leg *leg;
    const struct sphere *sphere;
    uint32_t segment, number; /* of the sphere */
    int32_t at, of;           /* its number on the way, and how many that has */
    float length;             /* of the way */
};
/* n / by of whole numbers below 2^14, inverse = 1 / by. */
static __device__ __forceinline__ uint32_t divided(uint32_t n, float inverse)
{
    return (uint32_t)(((float)n + 0.5f) * inverse);
}
/* False when the way has no such piece in this window. */
static __device__ __forceinline__ int take_piece(const struct work *w, uint32_t number, struct piece *p)
{
    const struct block *s = &shared;
    uint32_t way = divided(number, s->per_way), n = divided(way, w->per_leg), windows = w->n_windows;
    int32_t end;
    p->number = way - n * shared.a.n_spheres;
    p->segment = w->first + n;
    p->leg = &s->leg[n];
    p->sphere = &s->sphere[p->number];
    p->length = vxk_way_length(p->leg->middle.moved, p->leg->middle.turned, p->sphere->off);
    p->at = (int32_t)(number - way * s->n_pieces);
    p->of = end = p->length <= (float)VXK_PATH_MOST ? vxk_path_pieces(p->length) : 1;
    if (windows > 1) {
        p->at += (int32_t)(w->window * (uint32_t)p->of / windows);
        end = (int32_t)((w->window + 1) * (uint32_t)p->of / windows);
    }
    return p->at < end;
}
static __device__ __forceinline__ float place_at(const struct piece *p, int32_t at)
{
    return (float)at / (float)p->of;
}
/* vxk_way_at, of a leg and a sphere.  The divisor lies between 0.7 and 1. */
static __device__ __forceinline__ int spot_at(const struct piece *p, float s, struct vxk_spot *out)
{
    const struct vxk_way *way = &p->leg->way;
    float q[4], n = 0.0f, v[3];
    int ok = 1;
    for (int k = 0; k < 4; k++) {
        q[k] = way->q[k] + s * way->turn[k];
        n = n + q[k] * q[k];
    }
    n = vxk_sqrt(n);
    for (int k = 0; k < 4; k++)
        q[k] = vxk_quotient(q[k], n);
    vxk_turn(q, p->sphere->c, v);
    for (int k = 0; k < 3; k++)
        ok &= vxk_split(way->from[k] + (double)s * way->step[k] + (double)v[k], &out->v[k], &out->f[k]);
    return ok;
}
/* Half of what a way goes on an axis, at most. */
static __device__ __forceinline__ float way_half(const struct piece *p, int axis)
{
    return p->leg->half[axis] + 1.415f * p->sphere->off * p->leg->middle.turned;
}

/* True when an unknown voxel's cube is within r of a spot: vxk_path_unknown. */
APART int unknown_near(const struct vxk_spot *spot, float r)
{
    struct vxk_ball b;
    struct vxk_extent box;
    struct vxk_outline o;
    int32_t base[3];
    b.at = *spot;
    b.r = r;
    b.status = VXK_Q_COLLIDES;
    vxk_ball_begin(&b, &box);
    for (base[0] = box.lo[0] & ~31; base[0] <= box.hi[0]; base[0] += 32)
        for (base[1] = box.lo[1] & ~31; base[1] <= box.hi[1]; base[1] += 32)
            for (base[2] = box.lo[2] & ~31; base[2] <= box.hi[2]; base[2] += 32) {
                uint64_t key, cells;
                if (b.status == VXK_BALL_ALL)
                    return 1;
                outline_at(base, &key, &o);
                cells = vxk_ball_cells(&b, &o, &box, base);
                if (cells)
                    vxk_ball_look(&shared.a.q, &b,
                                  key == VXK_NO_KEY ? (const struct vxk_chunk *)0 : map_chunk(key), cells,
                                  base);
            }
    return b.status == VXK_BALL_ALL;
}

/* The cells in the region that hold unknown voxels and that a ball's box meets: 4 x 4 x 4 bits from cell
 * `first` on (of the map).  False when they are more or not all in the region. */
static __device__ __forceinline__ int unknown_cells(const struct region *r, const struct vxk_extent *box,
                                                    int32_t first[3], uint64_t *cells)
{
    int32_t from[3], to[3];
    *cells = 0;
    if (!in_region(r, box, from, to))
        return 0;
    for (int a = 0; a < 3; a++) {
        first[a] = from[a] + r->first[a];
        if (to[a] - from[a] > 3)
            return 0;
    }
    uint32_t mask = bits_of(from[2], to[2]);
    for (int32_t x = from[0]; x <= to[0]; x++)
        for (int32_t y = from[1]; y <= to[1]; y++)
            *cells |= (uint64_t)((r->unknown[x * r->n[1] + y] & mask) >> from[2])
                      << ((x - from[0]) * 16 + (y - from[1]) * 4);
    return 1;
}
/* True when slab x of a cell has an unknown voxel whose cube the ball meets; `at`: the cell's first voxel,
 * from the ball's.  The ball meets the cell. */
static __device__ __forceinline__ int slab_meets(struct vxk_ball *b, const int32_t at[3], int32_t x)
{
    const struct vxk_query *q = &shared.a.q;
    const struct vxk_chunk *map;
    struct vxk_extent box;
    uint64_t key;
    int32_t v[3];
    for (int a = 0; a < 3; a++)
        v[a] = b->at.v[a] + at[a];
    if (!vxk_cell_key(v[0] >> 3, v[1] >> 3, v[2] >> 3, &key) || !(map = map_chunk(key)))
        return 1;
    const struct vxk_word *word =
        &map->word[vxk_word_of((uint32_t)v[0] & 127, (uint32_t)v[1] & 127, (uint32_t)v[2] & 127)];
    uint32_t cell = vxk_cell_of((uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2]);
    if (!(word->leaf >> cell & 1))
        return !(word->tile >> cell & 1);
    vxk_ball_begin(b, &box);
    if (at[0] + x < b->lo[0] || at[0] + x > b->hi[0])
        return 0;
    vxk_ball_leaf_slab(q, b, vxk_leaf_at(&q->grid, word, cell), at, x);
    return b->status == VXK_BALL_ALL;
}
/* The lanes whose ball meets an unknown voxel's cube, as unknown_near; every lane of the warp calls, those
 * with `any` have one.  SHARE lanes go through the slabs of a cell, SHARES cells at a time. */
APART uint32_t balls_meet(int any, const struct vxk_spot *spot, float r)
{
    uint32_t lane = threadIdx.x & (VXK_WARP - 1), have;
    int32_t first[3] = {0, 0, 0}, at[3] = {0, 0, 0};
    uint64_t cells = 0;
    int met = 0;
    struct vxk_ball b = {};
    if (any) {
        struct vxk_extent box;
        b.at = *spot;
        b.r = r;
        vxk_ball_begin(&b, &box);
        if (!unknown_cells(&shared.region, &box, first, &cells))
            met = unknown_near(spot, r);
    }
    for (;;) {
        int has = 0;
        while (cells && !met && !has) {
            uint32_t cell = vxk_ctz64(cells);
            cells &= cells - 1;
            at[0] = (first[0] + (int32_t)(cell >> 4)) * 8 - b.at.v[0];
            at[1] = (first[1] + (int32_t)(cell >> 2 & 3)) * 8 - b.at.v[1];
            at[2] = (first[2] + (int32_t)(cell & 3)) * 8 - b.at.v[2];
            has = vxk_ball_box(&b, at, 8) <= b.r * b.r;
        }
        have = __ballot_sync(VXK_FULL, has);
        if (!have)
            break;
        while (have) {
            struct vxk_ball of;
            uint32_t mine = have, rank = (uint32_t)__popc(have & ((1u << lane) - 1));
            int32_t cell[3];
            int hit = 0, src;
            for (uint32_t k = lane / SHARE; k; k--)
                mine &= mine - 1;
            src = mine ? (int)vxk_ctz32(mine) : 0;
            for (int a = 0; a < 3; a++) {
                of.at.v[a] = __shfl_sync(VXK_FULL, b.at.v[a], src);
                of.at.f[a] = __shfl_sync(VXK_FULL, b.at.f[a], src);
                cell[a] = __shfl_sync(VXK_FULL, at[a], src);
            }
            of.r = __shfl_sync(VXK_FULL, b.r, src);
            of.status = VXK_Q_COLLIDES;
            if (mine)
                hit = slab_meets(&of, cell, (int32_t)(lane % SHARE));
            uint32_t hits = __ballot_sync(VXK_FULL, hit);
            if (have >> lane & 1 && rank < SHARES && (hits >> (rank * SHARE) & ((1u << SHARE) - 1)))
                met = 1;
            for (int k = 0; k < SHARES; k++)
                have &= have - 1;
        }
    }
    return __ballot_sync(VXK_FULL, met);
}
/* True when the voxel at a spot is unknown: quickly, and only where that is sure. */
static __device__ __forceinline__ int surely_unknown(const struct vxk_spot *spot)
{
    const struct region *r = &shared.region;
    const struct vxk_chunk *map;
    uint32_t value = 0;
    uint64_t key;
    struct vxk_extent one;
    int32_t from[3], to[3];
    for (int a = 0; a < 3; a++)
        one.lo[a] = one.hi[a] = spot->v[a];
    if (in_region(r, &one, from, to) && !(r->unknown[from[0] * r->n[1] + from[1]] >> from[2] & 1))
        return 0;
    if (!vxk_cell_key(spot->v[0] >> 3, spot->v[1] >> 3, spot->v[2] >> 3, &key))
        return 0;
    map = map_chunk(key);
    return vxk_chunk_voxel(&shared.a.q.grid, map, (uint32_t)spot->v[0] & 127, (uint32_t)spot->v[1] & 127,
                           (uint32_t)spot->v[2] & 127, &value) == VXK_UNKNOWN;
}

/* A ball, and the box of voxels that is looked at of it. */
struct bounds {
    struct vxk_spot at;
    float r;
    struct vxk_extent box;
};
/* All that lies within `reach` of what goes no further from a spot than half[] on each axis, and than `far`.
 * A twentieth of a voxel is for what rounding may add. */
static __device__ __forceinline__ void bound(struct bounds *b, const float half[3], float far, float reach)
{
    b->r = far + reach + 0.05f;
    for (int a = 0; a < 3; a++) {
        float h = vxk_min(half[a], far) + reach + 0.05f;
        b->box.lo[a] = b->at.v[a] + below(b->at.f[a] - h);
        b->box.hi[a] = b->at.v[a] + above(b->at.f[a] + h);
    }
}
/* False when nothing within such bounds is unknown: quick, and sure only then. */
APART int may_meet(struct bounds b)
{
    const struct vxk_query *q = &shared.a.q;
    const struct region *r = &shared.region;
    int32_t from[3], to[3], x, y;
    uint32_t cells = 0, mask;
    if (!in_region(r, &b.box, from, to))
        return 1;
    mask = bits_of(from[2], to[2]);
    x = from[0];
    y = from[1];
    for (;;) {
        const struct vxk_chunk *map;
        const struct vxk_word *word;
        const struct vxk_leaf *l;
        int32_t v[3], lo, hi;
        uint32_t place;
        uint64_t key;
        while (!cells) {
            if (y > to[1]) {
                y = from[1];
                x++;
            }
            if (x > to[0])
                return 0;
            cells = r->unknown[x * r->n[1] + y++] & mask;
        }
        v[0] = r->first[0] + x;
        v[1] = r->first[1] + y - 1;
        v[2] = r->first[2] + (int32_t)vxk_ctz32(cells);
        cells &= cells - 1;
        if (!vxk_cell_key(v[0], v[1], v[2], &key) || !(map = map_chunk(key)))
            return 1;
        place = vxk_place(v[0], v[1], v[2]);
        word = &map->word[place >> 6];
        for (int a = 0; a < 3; a++)
            v[a] = v[a] * 8 - b.at.v[a]; /* the cell's first voxel, from the spot's */
        if (!(word->leaf >> (place & 63) & 1)) {
            float sum = 0.0f;
            for (int a = 0; a < 3; a++) {
                float gap = vxk_max(vxk_max((float)v[a] - b.at.f[a], b.at.f[a] - (float)(v[a] + 8)), 0.0f);
                sum = sum + gap * gap;
            }
            if (sum <= b.r * b.r)
                return 1;
            continue;
        }
        l = vxk_leaf_at(&q->grid, word, place & 63);
        lo = max(b.box.lo[0] - b.at.v[0] - v[0], 0);
        hi = min(b.box.hi[0] - b.at.v[0] - v[0], 7);
        for (; lo <= hi; lo++) { /* a slab: where the ball is in it */
            float gap = vxk_max(vxk_max((float)(v[0] + lo) - b.at.f[0], b.at.f[0] - (float)(v[0] + lo + 1)),
                                0.0f),
                  left = b.r * b.r - gap * gap, s = left > 0.0f ? vxk_sqrt(left) + 0.01f : 0.0f;
            int32_t y0 = max(max(below(b.at.f[1] - s), b.box.lo[1] - b.at.v[1]) - v[1], 0),
                    y1 = min(min(above(b.at.f[1] + s), b.box.hi[1] - b.at.v[1]) - v[1], 7),
                    z0 = max(max(below(b.at.f[2] - s), b.box.lo[2] - b.at.v[2]) - v[2], 0),
                    z1 = min(min(above(b.at.f[2] + s), b.box.hi[2] - b.at.v[2]) - v[2], 7);
            uint64_t rows = ~(q->occupancy ? l->free[lo] : l->active[lo] | l->free[lo]);
            if (left < 0.0f || y0 > y1 || z0 > z1)
                continue;
            rows &= (uint64_t)((0xffu >> (7 - z1)) & (0xffu << z0)) * 0x0101010101010101ull;
            if (rows & (~0ull >> (8 * (7 - y1))) & (~0ull << (8 * y0)))
                return 1;
        }
    }
}

/* Place k of the n + 1 at which a way is held against unknown space. */
static __device__ __forceinline__ float part_of(uint32_t k, uint32_t n)
{
    return n ? (float)k / (float)n : 0.0f;
}
/* How far from such a place an unknown voxel counts as met. */
static __device__ __forceinline__ float reach_at(const struct piece *p, uint32_t n)
{
    return p->sphere->radius + 0.5f * (n ? p->length / (float)n : 0.0f);
}
/* A sphere meets unknown space. */
static __device__ __forceinline__ void note_unknown(float place, uint32_t sphere)
{
    vxk_path_least(&shared.o.unknown, vxk_place_bits(place));
    if (shared.a.unknown == VXK_UNKNOWN_OCCUPIED)
        vxk_path_contact(&shared.o, place, sphere);
}
/* Holds places `from` .. `to` of SHARES pieces against unknown space, a lane each; any: there is one for this
 * lane's share.  Returns the lanes at whose places it was met or that can't be judged, and notes the first of
 * each piece. */
static __device__ uint32_t meet_places(const struct work *w, int any, uint32_t number, uint32_t from,
                                       uint32_t to)
{
    struct block *s = &shared;
    const float none[3] = {0.0f, 0.0f, 0.0f};
    struct bounds b = {};
    struct piece p = {};
    uint32_t n = 0, lane = threadIdx.x & (VXK_WARP - 1), k = from + lane % SHARE;
    float reach = 0.0f;
    int met, good = 0, bad = 0;
    if (any && k <= to) {
        take_piece(w, number, &p);
        n = (uint32_t)vxk_ceil(p.length);
        reach = reach_at(&p, n);
        bad = !spot_at(&p, part_of(k, n), &b.at);
        bound(&b, none, 0.0f, reach);
        good = !bad && may_meet(b);
    }
    met = balls_meet(good, &b.at, reach) >> lane & 1;
    uint32_t ends = __ballot_sync(VXK_FULL, met || bad);
    if ((met || bad) && !(ends >> (lane & ~(SHARE - 1u)) & ((1u << lane % SHARE) - 1))) {
        float place = (float)p.segment + part_of(k, n);
        if (bad)
            vxk_path_least(&s->o.outside, vxk_place_bits(place));
        else
            note_unknown(place, p.number);
    }
    return ends;
}
/* Holds the listed pieces against unknown space: vxk_path_meet.  A lane a piece: its first place, then SHARE
 * places together; where those may meet something, a lane a place. */
static __device__ void meet(const struct work *w)
{
    struct block *s = &shared;
    uint32_t lane = threadIdx.x & (VXK_WARP - 1), n_listed = s->n_meet, number = 0;
    int32_t from = 0, end = 0; /* places that are left */
    int busy = 0, more = 1;
    for (;;) {
        uint32_t hits;
        int32_t to = 0;
        int hit = 0, first = 0;
        if (!busy && more) {
            uint32_t at = atomicAdd(&s->next_meet, 1);
            busy = first = more = at < n_listed;
            number = more ? s->list[at] >> 3 : 0;
        }
        if (!__any_sync(VXK_FULL, busy))
            return;
        if (busy) {
            struct bounds b;
            struct piece p;
            take_piece(w, number, &p);
            int32_t n = (int32_t)vxk_ceil(p.length);
            if (first) {
                from = p.at * n / p.of;
                end = ((p.at + 1) * n + p.of - 1) / p.of;
            }
            to = min(from + SHARE - 1, end);
            float part = part_of((uint32_t)from, (uint32_t)n), place = (float)p.segment + part;
            if (over(s, place) || behind_unknown(s, place)) {
                busy = 0;
            } else {
                int inside =
                    spot_at(&p, first || to == from ? part : 0.5f * (float)(from + to) / (float)n, &b.at);
                if (first && inside && surely_unknown(&b.at)) {
                    note_unknown(place, p.number);
                    busy = 0;
                } else if (!first) {
                    float half[3], of = n ? (float)(to - from) / (float)n : 0.0f;
                    for (int k = 0; k < 3; k++)
                        half[k] = way_half(&p, k) * of;
                    bound(&b, half, 0.5f * p.length * of, reach_at(&p, (uint32_t)n));
                    hit = !inside || may_meet(b);
                }
            }
        }
        for (hits = __ballot_sync(VXK_FULL, hit); hits;) {
            uint32_t mine = hits, rank = (uint32_t)__popc(hits & ((1u << lane) - 1));
            for (uint32_t k = lane / SHARE; k; k--)
                mine &= mine - 1;
            int src = mine ? (int)vxk_ctz32(mine) : 0;
            uint32_t ends = meet_places(w, mine != 0, __shfl_sync(VXK_FULL, number, src),
                                        (uint32_t)__shfl_sync(VXK_FULL, from, src),
                                        (uint32_t)__shfl_sync(VXK_FULL, to, src));
            if (hit && (hits >> lane & 1) && rank < SHARES && (ends >> (rank * SHARE) & ((1u << SHARE) - 1)))
                busy = 0;
            for (int k = 0; k < SHARES; k++)
                hits &= hits - 1;
        }
        if (!first)
            from = to + 1;
        if (from > end)
            busy = 0;
    }
}
#endif
