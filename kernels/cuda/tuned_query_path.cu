/*
 * Whole paths of a robot: a block a path.
 *
 * Segments go in groups.  For each, threads make the legs, decide the ways at a glance and list the others in
 * shared memory; then they march along those and hold them against unknown space, each lane taking the next
 * when it is done.  What a path touches in one group ends it.  Chunks around the legs are looked up once.
 */
#include "../body/query.h"
#include "tuned.cuh"

enum {
    THREADS = 256,
    FIRST_LEGS = 8, /* in the first group: many paths touch something soon */
    LEGS = 24,
    LISTED = 2048, /* ways of a group */
    CHUNKS = 64,   /* 4^3 of them, by the lowest bits of their coordinates */
    PIECE = 16,    /* voxels: long ways are decided by pieces of at most this length */
    SHARE = VXK_PATH_GROUP,
    SHARES = VXK_WARP / SHARE
};

struct sphere {
    float c[3], radius, off; /* voxels; off: from the robot's origin */
};
struct leg {
    struct vxk_way way; /* without a sphere */
    struct vxk_path_leg middle;
};
struct chunk {
    uint64_t key;
    uint32_t field, map; /* number in the field, version in the map, or VXK_NONE */
};
struct block {
    struct vxk_path_answer o;
    uint32_t n_march, n_meet, next_march, next_meet;
    uint32_t long_from; /* first segment that is too long */
    struct chunk chunk[CHUNKS];
    struct sphere sphere[VXK_PATH_WHOLE_SPHERES];
    struct leg leg[LEGS];
    uint16_t march[LISTED], meet[LISTED]; /* way of the group << 3 | what is around, as vxk_around */
};
/* What a thread works with. */
struct work {
    const struct vxk_query_path_args *a;
    struct block *s;
    uint32_t first, n_legs; /* of the group */
};

static __device__ __forceinline__ int over(const struct block *s, float place)
{
    uint64_t first = *(const volatile uint64_t *)&s->o.first;
    return vxk_place_bits(place) > (uint32_t)(first >> 32);
}
/* What lies there can't be where unknown space is first met. */
static __device__ __forceinline__ int behind_unknown(const struct block *s, float place)
{
    return vxk_place_bits(place) > *(const volatile uint32_t *)&s->o.unknown;
}

static __device__ __forceinline__ struct chunk *place_of(struct block *s, uint64_t key)
{
    return &s->chunk[(key >> 42 & 3) << 4 | (key >> 21 & 3) << 2 | (key & 3)];
}
static __device__ __forceinline__ uint32_t field_chunk(const struct work *w, uint64_t key)
{
    const struct chunk *c = place_of(w->s, key);
    return c->key == key ? c->field : vxk_esdf_find(&w->a->q.esdf, key);
}
static __device__ __forceinline__ const struct vxk_chunk *map_chunk(const struct work *w, uint64_t key)
{
    const struct chunk *c = place_of(w->s, key);
    if (c->key != key)
        return vxk_find_chunk(&w->a->q.grid, key);
    return c->map == VXK_NONE ? (const struct vxk_chunk *)0 : &w->a->q.grid.chunks[c->map];
}
/* Looks up the chunks at the corners of what a robot needs of a leg: corner 0 .. 7. */
static __device__ void know_chunk(const struct work *w, const struct leg *l, uint32_t corner)
{
    const struct vxk_path_leg *m = &l->middle;
    float reach = 0.5f * vxk_way_length(m->moved, m->turned, w->a->reach) + w->a->reach +
                  (float)w->a->q.esdf.radius + 2.0f;
    int32_t at[3];
    uint64_t key;
    if (m->moved < 0.0f || !(reach < 1000.0f))
        return;
    for (int k = 0; k < 3; k++)
        at[k] = m->v[k] + (corner >> k & 1 ? (int32_t)reach : -(int32_t)reach);
    if (!vxk_cell_key(at[0] >> 3, at[1] >> 3, at[2] >> 3, &key))
        return;
    struct chunk *c = place_of(w->s, key);
    if (vxk_atomic_cas64(&c->key, VXK_NO_KEY, key) == VXK_NO_KEY) {
        const struct vxk_chunk *map = vxk_find_chunk(&w->a->q.grid, key);
        c->field = vxk_esdf_find(&w->a->q.esdf, key);
        c->map = map ? (uint32_t)(map - w->a->q.grid.chunks) : (uint32_t)VXK_NONE;
    }
}

/* vxk_outline_at */
static __device__ __forceinline__ void outline_at(const struct work *w, const int32_t base[3], uint64_t *key,
                                                  struct vxk_outline *out)
{
    uint32_t word =
        (uint32_t)(base[0] >> 5 & 3) << 4 | (uint32_t)(base[1] >> 5 & 3) << 2 | (uint32_t)(base[2] >> 5 & 3);
    out->near = out->occupied = 0;
    out->unknown = ~0ull;
    if (!vxk_cell_key(base[0] >> 3, base[1] >> 3, base[2] >> 3, key)) {
        *key = VXK_NO_KEY;
        return;
    }
    uint32_t c = field_chunk(w, *key);
    if (c != VXK_NONE) {
        const ulonglong2 *from = (const ulonglong2 *)&w->a->q.esdf.outline[(uint64_t)c << 6 | word];
        ulonglong2 low = from[0], high = from[1];
        out->near = low.x;
        out->unknown = low.y;
        out->occupied = high.x;
        return;
    }
    const struct vxk_chunk *map = map_chunk(w, *key);
    if (map)
        out->unknown = ~map->word[word].tile;
}
/* vxk_around */
static __device__ __forceinline__ uint32_t around_extents(const struct work *w,
                                                          const struct vxk_extent *inner,
                                                          const struct vxk_extent *outer)
{
    uint32_t found = 0;
    int32_t base[3];
    for (base[0] = outer->lo[0] & ~31; base[0] <= outer->hi[0]; base[0] += 32)
        for (base[1] = outer->lo[1] & ~31; base[1] <= outer->hi[1]; base[1] += 32)
            for (base[2] = outer->lo[2] & ~31; base[2] <= outer->hi[2]; base[2] += 32) {
                struct vxk_outline o;
                uint64_t key, cells = vxk_extent_cells(inner, base);
                outline_at(w, base, &key, &o);
                found |= o.unknown & vxk_extent_cells(outer, base) ? VXK_HAS_UNKNOWN : 0;
                found |= (o.near & cells ? VXK_NEAR : 0) | (o.occupied & cells ? VXK_HAS_OCCUPIED : 0);
            }
    return found;
}
static __device__ __forceinline__ uint32_t around_glance(const struct work *w,
                                                         const struct vxk_path_glance *g, uint32_t all)
{
    struct vxk_extent inner, outer;
    if (!vxk_path_extents(g, &inner, &outer))
        return all;
    return around_extents(w, &inner, w->a->unknown == VXK_UNKNOWN_FREE ? &inner : &outer) & all;
}

/* A listed way. */
static __device__ __forceinline__ void take_way(const struct work *w, uint32_t way, struct vxk_way *out,
                                                uint32_t *segment, uint32_t *sphere)
{
    uint32_t n = way / w->a->n_spheres, i = way - n * w->a->n_spheres;
    const struct leg *l = &w->s->leg[n];
    const struct sphere *s = &w->s->sphere[i];
    *out = l->way;
    for (int k = 0; k < 3; k++)
        out->c[k] = s->c[k];
    out->radius = s->radius;
    out->length = vxk_way_length(l->middle.moved, l->middle.turned, s->off);
    *segment = w->first + n;
    *sphere = i;
}

/* What is around a long way, piece by piece: no place of a piece is further from its middle than half of its
 * length. */
static __device__ uint32_t around_pieces(const struct work *w, uint32_t way, uint32_t all)
{
    struct vxk_way l;
    struct vxk_path_glance g;
    uint32_t segment, sphere, found = 0;
    take_way(w, way, &l, &segment, &sphere);
    float n = vxk_ceil(l.length * (1.0f / PIECE));
    g.length = l.length / n;
    g.radius = l.radius;
    for (float k = 0.5f; k < n && found != all; k += 1.0f)
        found |= vxk_way_at(&l, k / n, &g.middle) ? around_glance(w, &g, all) : all;
    return found;
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
/* Decides the ways of a group, and lists what is to be looked at. */
static __device__ void glance(const struct work *w)
{
    const struct vxk_query_path_args *a = w->a;
    struct block *s = w->s;
    uint32_t n = w->n_legs * a->n_spheres;
    uint32_t all = a->unknown == VXK_UNKNOWN_FREE ? VXK_NEAR | VXK_HAS_OCCUPIED : VXK_AROUND_ALL;
    for (uint32_t base = 0; base < n; base += THREADS) {
        uint32_t way = base + threadIdx.x, march = 0, meet = 0;
        if (way < n) {
            const struct leg *l = &s->leg[way / a->n_spheres];
            const struct sphere *b = &s->sphere[way % a->n_spheres];
            float place = (float)(w->first + way / a->n_spheres);
            struct vxk_path_glance g;
            if (!vxk_path_short(&l->middle, b->c, b->off, b->radius, &g)) {
                vxk_path_least(&s->o.outside, vxk_place_bits(place));
            } else if (g.length > (float)VXK_PATH_WIDE) { /* by its definition all is around it */
                uint32_t found = around_pieces(w, way, all);
                march = found & (VXK_NEAR | VXK_HAS_OCCUPIED) ? all : 0;
                meet = found & VXK_HAS_UNKNOWN;
            } else {
                march = around_glance(w, &g, all);
                meet = march & VXK_HAS_UNKNOWN;
                if (!(march & (VXK_NEAR | VXK_HAS_OCCUPIED)))
                    march = 0;
            }
            if (behind_unknown(s, place))
                meet = 0;
        }
        put(s->march, &s->n_march, way << 3 | march, march != 0);
        put(s->meet, &s->n_meet, way << 3 | meet, meet != 0);
    }
}

/* True when an unknown voxel's cube is within r of a spot: vxk_path_unknown. */
static __device__ int unknown_near(const struct work *w, const struct vxk_spot *spot, float r)
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
/* Holds SHARE places of SHARES ways against unknown space, a lane each.  mine: the lane whose ways's places
 * `from` .. `to` this lane shares in.  Returns the lanes at whose places it was met or that can't be judged,
 * and notes the first of each way. */
static __device__ uint32_t meet_places(const struct work *w, int any, uint32_t way, uint32_t from,
                                       uint32_t to)
{
    struct block *s = w->s;
    struct vxk_way l;
    struct vxk_spot spot;
    uint32_t segment = 0, sphere = 0, n = 0, lane = threadIdx.x & (VXK_WARP - 1), k = from + lane % SHARE;
    int met = 0, bad = 0;
    if (any && k <= to) {
        take_way(w, way, &l, &segment, &sphere);
        n = (uint32_t)vxk_ceil(l.length);
        if (vxk_way_at(&l, part_of(k, n), &spot))
            met = unknown_near(w, &spot, reach_at(&l, n));
        else
            bad = 1;
    }
    uint32_t ends = __ballot_sync(VXK_FULL, met || bad);
    if ((met || bad) && !(ends >> (lane & ~(SHARE - 1u)) & ((1u << lane % SHARE) - 1))) {
        float place = (float)segment + part_of(k, n);
        if (bad) {
            vxk_path_least(&s->o.outside, vxk_place_bits(place));
        } else {
            vxk_path_least(&s->o.unknown, vxk_place_bits(place));
            if (w->a->unknown == VXK_UNKNOWN_OCCUPIED)
                vxk_path_contact(&s->o, place, sphere);
        }
    }
    return ends;
}
/* Holds the listed ways against unknown space: vxk_path_meet.  A ball around SHARE places first, a lane a
 * way; where it meets something, a lane a place. */
static __device__ void meet(const struct work *w)
{
    struct block *s = w->s;
    uint32_t lane = threadIdx.x & (VXK_WARP - 1), n_listed = s->n_meet, way = 0, from = 0, n = 0;
    int busy = 0;
    for (;;) {
        struct vxk_way l;
        struct vxk_spot spot;
        uint32_t segment, sphere, to = 0, hits, at;
        int hit = 0;
        if (!busy && (at = atomicAdd(&s->next_meet, 1)) < n_listed) {
            way = s->meet[at] >> 3;
            from = 0;
            busy = 1;
        }
        if (!__any_sync(VXK_FULL, busy))
            return;
        if (busy) {
            take_way(w, way, &l, &segment, &sphere);
            n = (uint32_t)vxk_ceil(l.length);
            to = min(from + SHARE - 1, n);
            float place = (float)segment + part_of(from, n);
            if (over(s, place) || behind_unknown(s, place))
                busy = 0;
            else
                hit = !(to > from && vxk_way_at(&l, 0.5f * (float)(from + to) / (float)n, &spot) &&
                        !unknown_near(w, &spot,
                                      reach_at(&l, n) + 0.5f * (float)(to - from) * (l.length / (float)n) +
                                          0.05f));
        }
        for (hits = __ballot_sync(VXK_FULL, hit); hits;) {
            uint32_t mine = hits, rank = (uint32_t)__popc(hits & ((1u << lane) - 1));
            for (uint32_t k = lane / SHARE; k; k--)
                mine &= mine - 1;
            int src = mine ? (int)vxk_ctz32(mine) : 0;
            uint32_t ends = meet_places(w, mine != 0, __shfl_sync(VXK_FULL, way, src),
                                        __shfl_sync(VXK_FULL, from, src), __shfl_sync(VXK_FULL, to, src));
            if (hit && (hits >> lane & 1) && rank < SHARES && (ends >> (rank * SHARE) & ((1u << SHARE) - 1)))
                busy = 0;
            for (int k = 0; k < SHARES; k++)
                hits &= hits - 1;
        }
        from = to + 1;
        if (from > n)
            busy = 0;
    }
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
    out->has = vxk_probe_distance(q, c, spot, states, &d, &out->state);
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
    uint32_t n_listed = s->n_march, segment = 0, sphere = 0;
    float at = 0.0f, gone = 0.0f, least = 1e30f;
    int busy = 0, states = 0, careful = 0;
    vxk_esdf_cursor_init(&cursor);
    for (;;) {
        struct vxk_spot spot;
        if (!busy) {
            uint32_t k = atomicAdd(&s->next_march, 1);
            if (k < n_listed) {
                uint32_t entry = s->march[k];
                take_way(w, entry >> 3, &l, &segment, &sphere);
                states = (entry & VXK_HAS_OCCUPIED) != 0;
                careful = states && (entry & VXK_HAS_UNKNOWN) && w->a->unknown == VXK_UNKNOWN_REPORT;
                at = gone = 0.0f;
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
        float place = (float)segment + at;
        if (over(s, place)) {
            busy = 0;
        } else if (!vxk_way_at(&l, at, &spot)) {
            vxk_path_least(&s->o.outside, vxk_place_bits(place));
            busy = 0;
        } else {
            look(w, &l, &spot, states, careful, &cursor, &now);
            if (now.has)
                least = vxk_min(least, now.clear);
            if (at > 0.0f && (now.has || last.has))
                least = vxk_min(least, 0.5f * (last.clear + now.clear - gone));
            if (now.touches)
                vxk_path_contact(&s->o, place, sphere);
            busy = !(now.touches || at >= 1.0f || l.length <= 0.0f);
            if (busy) {
                float next = vxk_min(at + vxk_path_step(&now, careful) / l.length, 1.0f);
                gone = (next - at) * l.length;
                at = next;
                last = now;
            }
        }
        if (!busy && least < 1e29f)
            vxk_path_least(&s->o.clearance, vxk_order_of(least));
    }
}

/* The legs of a group, and the chunks around them. */
static __device__ void begin_group(const struct work *w, uint32_t path)
{
    struct block *s = w->s;
    if (threadIdx.x < w->n_legs) {
        struct leg *l = &s->leg[threadIdx.x];
        float moved, turned;
        uint32_t segment = w->first + threadIdx.x;
        l->middle.moved = -1.0f;
        if (vxk_way_ends(w->a, path, segment, &l->way, &moved, &turned)) {
            vxk_path_middle(&l->way, moved, turned, &l->middle);
            if (vxk_path_too_long(w->a, moved, turned))
                atomicMin(&s->long_from, segment);
        }
    }
    if (threadIdx.x == 0)
        s->n_march = s->n_meet = s->next_march = s->next_meet = 0;
    __syncthreads();
    for (uint32_t k = threadIdx.x; k < w->n_legs * 8; k += THREADS)
        know_chunk(w, &s->leg[k >> 3], k & 7);
    __syncthreads();
}
/* All of a path. */
static __device__ void walk(struct work *w, uint32_t path)
{
    const struct vxk_query_path_args *a = w->a;
    struct block *s = w->s;
    uint32_t most = min((uint32_t)LEGS, LISTED / a->n_spheres);
    for (w->first = 0; w->first < a->n_segments; w->first += w->n_legs) {
        w->n_legs = min(a->n_segments - w->first, w->first ? most : min(most, (uint32_t)FIRST_LEGS));
        begin_group(w, path);
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
    for (uint32_t i = threadIdx.x; i < a.n_spheres; i += THREADS)
        s.sphere[i].off = vxk_path_sphere(&a, i, s.sphere[i].c, &s.sphere[i].radius);
    if (threadIdx.x < CHUNKS)
        s.chunk[threadIdx.x].key = VXK_NO_KEY;
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
            vxk_path_touch(&a, path, i, &s.o);
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
