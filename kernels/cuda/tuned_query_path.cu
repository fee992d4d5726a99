/*
 * Whole paths of a robot: a block a path.
 *
 * Segments go in groups.  For each, threads make the legs, gather what the cells around have (the field's
 * outlines) into shared memory, decide the ways at a glance and list the others; then they march along those
 * and hold them against unknown space, each lane taking the next when it is done.  What a path touches in one
 * group ends it.
 */
#include "tuned_query_path.cuh"

/* A piece of a way, by its number in the group. */
struct piece {
    uint32_t segment, sphere;
    int32_t at, of; /* its number on the way, and how many that has; not less than `of`: there is none */
};
static __device__ __forceinline__ void take_piece(const struct work *w, uint32_t number, struct vxk_way *out,
                                                  struct piece *p)
{
    uint32_t way = number / w->s->n_pieces, n = way / w->a->n_spheres, i = way - n * w->a->n_spheres;
    const struct leg *l = &w->s->leg[n];
    const struct sphere *s = &w->s->sphere[i];
    *out = l->way;
    for (int k = 0; k < 3; k++)
        out->c[k] = s->c[k];
    out->radius = s->radius;
    out->length = vxk_way_length(l->middle.moved, l->middle.turned, s->off);
    p->segment = w->first + n;
    p->sphere = i;
    p->at = (int32_t)(number - way * w->s->n_pieces);
    p->of = vxk_path_pieces(out->length);
}
static __device__ __forceinline__ float place_at(const struct piece *p, int32_t at)
{
    return (float)at / (float)p->of;
}

static __device__ __forceinline__ void put(uint16_t *list, uint32_t *n, uint32_t entry, int listed)
{
    uint32_t m = __ballot_sync(VXK_FULL, listed), lane = threadIdx.x & (VXK_WARP - 1), at = 0;
    if (!m)
        return;
    if (lane == 0)
        at = atomicAdd(n, (uint32_t)__popc(m));
    at = __shfl_sync(VXK_FULL, at, 0) + (uint32_t)__popc(m & ((1u << lane) - 1));
    if (listed)
        list[at] = (uint16_t)entry;
}
/* What is around a piece of several: vxk_path_around_piece. */
APART uint32_t around_piece(const struct work *w, uint32_t number, uint32_t all)
{
    struct vxk_way l;
    struct vxk_spot spot;
    struct piece p;
    take_piece(w, number, &l, &p);
    if (!vxk_way_at(&l, ((float)p.at + 0.5f) / (float)p.of, &spot))
        return all;
    return around_spot(w, &spot, 0.5f * l.length / (float)p.of, l.radius, all);
}
/* Decides the pieces of a group, and lists what is to be looked at. */
static __device__ void glance(const struct work *w)
{
    const struct vxk_query_path_args *a = w->a;
    struct block *s = w->s;
    uint32_t n = w->n_legs * a->n_spheres * s->n_pieces;
    uint32_t all = a->unknown == VXK_UNKNOWN_FREE ? VXK_NEAR | VXK_HAS_OCCUPIED : VXK_AROUND_ALL;
    for (uint32_t base = 0; base < n; base += THREADS) {
        uint32_t number = base + threadIdx.x, around = 0;
        int meet = 0;
        if (number < n) {
            uint32_t way = number / s->n_pieces, segment = way / a->n_spheres;
            const struct leg *l = &s->leg[segment];
            const struct sphere *b = &s->sphere[way - segment * a->n_spheres];
            int32_t at = (int32_t)(number - way * s->n_pieces), of = 1;
            float place = (float)(w->first + segment);
            struct vxk_path_glance g;
            if (!vxk_path_short(&l->middle, b->c, b->off, b->radius, &g))
                vxk_path_least(&s->o.outside, vxk_place_bits(place));
            else if ((of = vxk_path_pieces(g.length)) == 1 && at == 0)
                around = around_spot(w, &g.middle, 0.5f * g.length, g.radius, all);
            else if (at < of)
                around = around_piece(w, number, all);
            meet = (around & VXK_HAS_UNKNOWN) && !behind_unknown(s, place + (float)at / (float)of);
        }
        put(s->list.march, &s->n_march, number << 3 | around, (around & (VXK_NEAR | VXK_HAS_OCCUPIED)) != 0);
        put(s->list.meet, &s->n_meet, number << 3 | around, meet);
    }
}

/* True when an unknown voxel's cube is within r of a spot: vxk_path_unknown. */
APART int unknown_near(const struct work *w, const struct vxk_spot *spot, float r)
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
                outline_at(w, base, &key, &o);
                cells = vxk_ball_cells(&b, &o, &box, base);
                if (cells)
                    vxk_ball_look(&w->a->q, &b,
                                  key == VXK_NO_KEY ? (const struct vxk_chunk *)0 : map_chunk(w, key), cells,
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
static __device__ __forceinline__ int slab_meets(const struct work *w, struct vxk_ball *b,
                                                 const int32_t at[3], int32_t x)
{
    const struct vxk_query *q = &w->a->q;
    const struct vxk_chunk *map;
    struct vxk_extent box;
    uint64_t key;
    int32_t v[3];
    for (int a = 0; a < 3; a++)
        v[a] = b->at.v[a] + at[a];
    if (!vxk_cell_key(v[0] >> 3, v[1] >> 3, v[2] >> 3, &key) || !(map = map_chunk(w, key)))
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
APART uint32_t balls_meet(const struct work *w, int any, const struct vxk_spot *spot, float r)
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
        if (!unknown_cells(&w->s->region, &box, first, &cells))
            met = unknown_near(w, spot, r);
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
                hit = slab_meets(w, &of, cell, (int32_t)(lane % SHARE));
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
static __device__ __forceinline__ int surely_unknown(const struct work *w, const struct vxk_spot *spot)
{
    const struct vxk_chunk *map;
    uint32_t value = 0;
    uint64_t key;
    struct vxk_extent one;
    int32_t from[3], to[3];
    for (int a = 0; a < 3; a++)
        one.lo[a] = one.hi[a] = spot->v[a];
    if (in_region(&w->s->region, &one, from, to) && !any_of(&w->s->region, w->s->region.unknown, from, to))
        return 0;
    if (!vxk_cell_key(spot->v[0] >> 3, spot->v[1] >> 3, spot->v[2] >> 3, &key))
        return 0;
    map = map_chunk(w, key);
    return vxk_chunk_voxel(&w->a->q.grid, map, (uint32_t)spot->v[0] & 127, (uint32_t)spot->v[1] & 127,
                           (uint32_t)spot->v[2] & 127, &value) == VXK_UNKNOWN;
}

/* Place k of the n + 1 at which a way is held against unknown space. */
static __device__ __forceinline__ float part_of(uint32_t k, uint32_t n)
{
    return n ? (float)k / (float)n : 0.0f;
}
/* How far from such a place an unknown voxel counts as met. */
static __device__ __forceinline__ float reach_at(const struct vxk_way *l, uint32_t n)
{
    return l->radius + 0.5f * (n ? l->length / (float)n : 0.0f);
}
/* A sphere meets unknown space. */
static __device__ __forceinline__ void note_unknown(const struct work *w, float place, uint32_t sphere)
{
    vxk_path_least(&w->s->o.unknown, vxk_place_bits(place));
    if (w->a->unknown == VXK_UNKNOWN_OCCUPIED)
        vxk_path_contact(&w->s->o, place, sphere);
}
/* Holds places `from` .. `to` of SHARES pieces against unknown space, a lane each; any: there is one for this
 * lane's share.  Returns the lanes at whose places it was met or that can't be judged, and notes the first of
 * each piece. */
static __device__ uint32_t meet_places(const struct work *w, int any, uint32_t number, uint32_t from,
                                       uint32_t to)
{
    struct block *s = w->s;
    struct vxk_way l;
    struct vxk_spot spot;
    struct piece p = {};
    uint32_t n = 0, lane = threadIdx.x & (VXK_WARP - 1), k = from + lane % SHARE;
    float reach = 0.0f;
    int met, good = 0, bad = 0;
    if (any && k <= to) {
        take_piece(w, number, &l, &p);
        n = (uint32_t)vxk_ceil(l.length);
        reach = reach_at(&l, n);
        good = vxk_way_at(&l, part_of(k, n), &spot);
        bad = !good;
    }
    met = balls_meet(w, good, &spot, reach) >> lane & 1;
    uint32_t ends = __ballot_sync(VXK_FULL, met || bad);
    if ((met || bad) && !(ends >> (lane & ~(SHARE - 1u)) & ((1u << lane % SHARE) - 1))) {
        float place = (float)p.segment + part_of(k, n);
        if (bad)
            vxk_path_least(&s->o.outside, vxk_place_bits(place));
        else
            note_unknown(w, place, p.sphere);
    }
    return ends;
}
/* Holds the listed ways against unknown space: vxk_path_meet.  A ball around SHARE places first, a lane a
 * way; where it meets something, a lane a place. */
static __device__ void meet(const struct work *w)
{
    struct block *s = w->s;
    uint32_t lane = threadIdx.x & (VXK_WARP - 1), n_listed = s->n_meet, number = 0;
    int32_t from = 0, end = 0; /* places that are left */
    int busy = 0;
    for (;;) {
        struct vxk_way l;
        struct vxk_spot spot;
        struct piece p;
        uint32_t hits, at;
        int32_t to = 0;
        float reach = 0.0f;
        int hit = 0, ball = 0, begin = 0;
        if (!busy && (at = atomicAdd(&s->next_meet, 1)) < n_listed) {
            number = s->list.meet[at] >> 3;
            busy = begin = 1;
        }
        if (!__any_sync(VXK_FULL, busy))
            return;
        if (busy) {
            take_piece(w, number, &l, &p);
            int32_t n = (int32_t)vxk_ceil(l.length);
            if (begin) {
                from = p.at * n / p.of;
                end = ((p.at + 1) * n + p.of - 1) / p.of;
            }
            to = min(from + SHARE - 1, end);
            float part = part_of((uint32_t)from, (uint32_t)n), place = (float)p.segment + part;
            if (over(s, place) || behind_unknown(s, place)) {
                busy = 0;
            } else if (vxk_way_at(&l, part, &spot) && surely_unknown(w, &spot)) {
                note_unknown(w, place, p.sphere);
                busy = 0;
            } else {
                ball = to > from && vxk_way_at(&l, 0.5f * (float)(from + to) / (float)n, &spot);
                reach = reach_at(&l, (uint32_t)n) + 0.5f * (float)(to - from) * (l.length / (float)n) + 0.05f;
                hit = 1;
            }
        }
        uint32_t balls = balls_meet(w, ball, &spot, reach);
        if (ball && !(balls >> lane & 1))
            hit = 0;
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
        from = to + 1;
        if (from > end)
            busy = 0;
    }
}

APART const uint16_t *leaf_of(const struct work *w, int32_t x, int32_t y, int32_t z)
{
    uint64_t key;
    if (!vxk_cell_key(x, y, z, &key))
        return (const uint16_t *)0;
    return vxk_esdf_leaf_of(&w->a->q.esdf, field_chunk(w, key), x, y, z);
}
/* The distance at a spot whose voxel has one; leaf: of that voxel. */
static __device__ __forceinline__ float distance_at(const struct work *w, const struct vxk_spot *spot,
                                                    const uint16_t *leaf, uint32_t stored)
{
    float f[3], d[8], g[3], unit = 1.0f / (256.0f * (float)w->a->q.esdf.scale);
    int32_t b[3];
    uint32_t all = 1;
    vxk_spot_corner(spot, b, f);
    for (uint32_t k = 0; k < 8; k++) {
        int32_t x = b[0] + (int32_t)(k >> 2), y = b[1] + (int32_t)(k >> 1 & 1), z = b[2] + (int32_t)(k & 1);
        const uint16_t *l = leaf;
        if (((x ^ spot->v[0]) | (y ^ spot->v[1]) | (z ^ spot->v[2])) & ~7)
            l = leaf_of(w, x >> 3, y >> 3, z >> 3);
        uint32_t v = l ? l[vxk_voxel_of((uint32_t)x, (uint32_t)y, (uint32_t)z)] : (uint32_t)VXK_ESDF_FAR;
        all &= (uint32_t)(vxk_esdf_has_distance(v) & vxk_esdf_has_state(v));
        d[k] = vxk_esdf_signed(v);
    }
    return (all ? vxk_trilinear(d, f, g) : vxk_esdf_signed(stored)) * unit;
}
/* vxk_path_look.  Of a voxel that has no leaf the map is asked only where the outline says it matters. */
static __device__ __forceinline__ void look(const struct work *w, const struct vxk_way *l,
                                            const struct vxk_spot *spot, int states, int careful,
                                            struct vxk_esdf_cursor *c, struct vxk_path_sample *out)
{
    const struct vxk_query *q = &w->a->q;
    int32_t x = spot->v[0] >> 3, y = spot->v[1] >> 3, z = spot->v[2] >> 3;
    uint64_t key;
    float d;
    if (!(c->known && c->x == x && c->y == y && c->z == z)) {
        if (vxk_cell_key(x, y, z, &key) && key != c->key) {
            c->key = key;
            c->chunk = field_chunk(w, key);
        }
        vxk_esdf_seek(&q->esdf, c, x, y, z);
    }
    if (states && !c->leaf && c->chunk != VXK_NONE) {
        uint32_t place = vxk_place(x, y, z);
        const struct vxk_outline *o = &q->esdf.outline[(uint64_t)c->chunk << 6 | place >> 6];
        states = ((o->occupied | (careful ? o->unknown : 0)) >> (place & 63) & 1) != 0;
    }
    if (states && !c->leaf) { /* nothing is within R: its state alone is asked for */
        uint32_t value = 0;
        int kind = VXK_UNKNOWN;
        if (vxk_cell_key(x, y, z, &key))
            kind = vxk_chunk_voxel(&q->grid, map_chunk(w, key), (uint32_t)spot->v[0] & 127,
                                   (uint32_t)spot->v[1] & 127, (uint32_t)spot->v[2] & 127, &value);
        out->state = vxk_evidence(kind, value, q->occupancy);
        out->has = 0;
        d = 0.0f;
    } else {
        uint32_t stored =
            c->leaf ? c->leaf[vxk_voxel_of((uint32_t)spot->v[0], (uint32_t)spot->v[1], (uint32_t)spot->v[2])]
                    : (uint32_t)VXK_ESDF_FAR;
        out->state = c->leaf ? stored >> 14 : (uint32_t)VXK_STATE_FREE;
        out->has = vxk_esdf_has_distance(stored);
        d = out->has ? distance_at(w, spot, c->leaf, stored) : 0.0f;
    }
    out->clear = (out->has ? vxk_min(d, (float)q->esdf.radius) : (float)q->esdf.radius) - l->radius;
    out->touches = (out->has && d <= l->radius) || out->state == VXK_STATE_OCCUPIED;
}
/* Marches along the listed ways, a lane a way: vxk_path_march. */
static __device__ void march(const struct work *w)
{
    struct block *s = w->s;
    struct vxk_path_sample now, last = {};
    struct vxk_esdf_cursor cursor;
    struct vxk_way l;
    struct piece p = {};
    uint32_t n_listed = s->n_march;
    float at = 0.0f, begin = 0.0f, end = 0.0f, gone = 0.0f, least = 1e30f;
    int busy = 0, states = 0, careful = 0;
    vxk_esdf_cursor_init(&cursor);
    for (;;) {
        struct vxk_spot spot;
        if (!busy) {
            uint32_t k = atomicAdd(&s->next_march, 1);
            if (k < n_listed) {
                uint32_t entry = s->list.march[k];
                take_piece(w, entry >> 3, &l, &p);
                at = begin = place_at(&p, p.at);
                end = place_at(&p, p.at + 1);
                states = (entry & VXK_HAS_OCCUPIED) != 0;
                careful = states && (entry & VXK_HAS_UNKNOWN) && w->a->unknown == VXK_UNKNOWN_REPORT;
                gone = 0.0f;
                least = 1e30f;
                last.has = 0;
                last.clear = 0.0f;
                busy = 1;
            }
        }
        if (!__any_sync(VXK_FULL, busy))
            return;
        if (!busy)
            continue;
        float place = (float)p.segment + at;
        if (over(s, place)) {
            busy = 0;
        } else if (!vxk_way_at(&l, at, &spot)) {
            vxk_path_least(&s->o.outside, vxk_place_bits(place));
            busy = 0;
        } else {
            look(w, &l, &spot, states, careful, &cursor, &now);
            if (now.has)
                least = vxk_min(least, now.clear);
            if (at > begin && (now.has || last.has))
                least = vxk_min(least, 0.5f * (last.clear + now.clear - gone));
            if (now.touches)
                vxk_path_contact(&s->o, place, p.sphere);
            busy = !(now.touches || at >= end || l.length <= 0.0f);
            if (busy) {
                float next = vxk_min(at + vxk_path_step(&now, careful) / l.length, end);
                gone = (next - at) * l.length;
                at = next;
                last = now;
            }
        }
        if (!busy && least < 1e29f)
            vxk_path_least(&s->o.clearance, vxk_order_of(least));
    }
}

APART void touch(const struct work *w, uint32_t path, uint32_t sphere)
{
    vxk_path_touch(w->a, path, sphere, &w->s->o);
}
/* All of a path. */
static __device__ void walk(struct work *w, uint32_t path)
{
    const struct vxk_query_path_args *a = w->a;
    struct block *s = w->s;
    uint32_t most = min((uint32_t)LEGS, LISTED / a->n_spheres);
    for (w->first = 0; w->first < a->n_segments; w->first += w->n_legs) {
        begin_group(w, path,
                    min(a->n_segments - w->first, w->first ? most : min(most, (uint32_t)FIRST_LEGS)));
        uint32_t end = s->long_from;
        if (end < w->first + w->n_legs)
            w->n_legs = end - w->first;
        glance(w);
        __syncthreads();
        meet(w);
        march(w);
        __syncthreads();
        if (over(s, (float)(w->first + w->n_legs)) || end == w->first + w->n_legs)
            break;
    }
}

static __global__ void __launch_bounds__(THREADS, 3)
    whole(const __grid_constant__ struct vxk_query_path_args a, uint32_t n, const uint32_t *n_dev,
          uint32_t per)
{
    vxk_kernel_begin();
    __shared__ struct block s;
    struct work w;
    uint32_t end = vxk_launch_end(n, n_dev, per);
    w.a = &a;
    w.s = &s;
    if (threadIdx.x < CHUNKS)
        s.chunk[threadIdx.x].key = VXK_NO_KEY;
    if (threadIdx.x == 0)
        s.radius_bits = 0;
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < a.n_spheres; i += THREADS) {
        union vxk_bits radius;
        s.sphere[i].off = vxk_path_sphere(&a, i, s.sphere[i].c, &s.sphere[i].radius);
        radius.f = s.sphere[i].radius;
        atomicMax(&s.radius_bits, radius.u);
    }
    for (uint32_t path = blockIdx.x; path < end; path += gridDim.x) {
        if (threadIdx.x == 0) {
            vxk_path_begin(&s.o);
            s.long_from = VXK_NONE;
        }
        __syncthreads();
        walk(&w, path);
        if (threadIdx.x == 0) {
            if (s.long_from != VXK_NONE && !over(&s, (float)s.long_from)) {
                vxk_path_begin(&s.o);
                s.o.status = (uint32_t)VXK_PATH_WHOLE_LEFT;
            } else {
                s.long_from = VXK_NONE;
                vxk_path_cut(&a, &s.o);
            }
        }
        __syncthreads();
        for (uint32_t i = threadIdx.x; s.long_from == VXK_NONE && i < a.n_spheres; i += THREADS)
            touch(&w, path, i);
        __syncthreads();
        if (threadIdx.x == 0) {
            if (s.long_from == VXK_NONE)
                vxk_path_end(&a, &s.o);
            a.out[path] = s.o;
        }
        __syncthreads();
    }
}
VXK_TUNED_LAUNCH_IF(query_path_whole, whole, THREADS, 1, 64, a->n_spheres <= VXK_PATH_WHOLE_SPHERES)
