/*
 * tuned_query_path.cuh - what a block knows of a path: its legs, the chunks and cells around them.
 */
#ifndef VXK_CUDA_TUNED_QUERY_PATH_CUH
#define VXK_CUDA_TUNED_QUERY_PATH_CUH

#include "../body/query.h"
#include "tuned.cuh"

enum {
    THREADS = 256,
    BLOCKS = 3,             /* a multiprocessor */
    LEGS = 31,              /* of a group: a warp makes them, with one more pose */
    LISTED = 2048,          /* ways of a group */
    WINDOW = 4,             /* pieces of a way at once, where one has more */
    CHUNKS = 64,            /* 4^3 of them, by the lowest bits of their coordinates */
    COLUMNS = 80,           /* words of a region along x and y together */
    DEEP = 8,               /* words of a region along z */
    PATIENT = 16,           /* lanes that wait for each other until they interpolate */
    SHARE = VXK_PATH_GROUP, /* lanes that share the places of a way, or the slabs of a cell */
    SHARES = VXK_WARP / SHARE
};
/* An entry of the list: piece of the group << 3, and these. */
enum { MARCHES = 1, HAS_STATES = 2, IS_CAREFUL = 4 };

struct sphere {
    float c[3], radius, off; /* voxels; off: from the robot's origin */
};
struct leg {
    struct vxk_way way; /* without a sphere */
    struct vxk_path_leg middle;
    float half[3]; /* of what the robot's origin goes on each axis */
    /* What a group needs of it lies within `around` voxels of this voxel; negative: nothing. */
    int32_t v[3];
    float around;
};
/* A leg at a glance, in the region's cells: where a sphere is half-way (turn and add), and how far from there
 * it gets on each axis. */
struct sight {
    float turn[9], at[3], half[3], off;
};
struct chunk {
    uint64_t key;
    uint32_t field, map; /* number in the field, version in the map, or VXK_NONE */
};
/* The cells around the legs of a group: what they have, a bit a cell along z. */
struct region {
    int32_t first[3], n[3];    /* cells, a multiple of 4; n 0: there is none */
    uint2 known[COLUMNS * 16]; /* [x][y]: near or occupied, and occupied */
    uint32_t unknown[COLUMNS * 16];
};
struct block {
    struct vxk_query_path_args a; /* of the launch */
    struct vxk_path_answer o;
    uint32_t n_meet, n_march; /* entries at the front of the list, and at its end */
    uint32_t next_meet, next_march;
    uint32_t n_legs;      /* of this group */
    uint32_t long_from;   /* first segment with which the path is left */
    uint32_t n_pieces;    /* a way of this group has at most */
    float per_way;        /* 1 / n_pieces */
    uint32_t n_windows;   /* a group of one long leg is gone along in so many */
    uint32_t radius_bits; /* of the largest sphere */
    struct chunk chunk[CHUNKS];
    struct sphere sphere[VXK_PATH_WHOLE_SPHERES];
    struct leg leg[LEGS];
    struct sight sight[LEGS];
    struct region region;
    union {
        struct {
            uint64_t near[COLUMNS * DEEP], unknown[COLUMNS * DEEP], occupied[COLUMNS * DEEP];
        } word; /* of the region, while it is gathered */
        /* From the front what is held against unknown space, and perhaps marched; from the end what is only
         * marched. */
        uint16_t list[LISTED];
    };
};
/* Of the block: named here, so that the compiler knows where it lies wherever it is used. */
__shared__ struct block shared;

/* What a thread works with. */
struct work {
    uint32_t first, n_legs; /* of the group */
    uint32_t window, n_windows;
    float per_leg; /* 1 / spheres */
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
/* What is needed seldom stands apart: the rest stays in the instruction cache. */
#define APART static __device__ __attribute__((noinline))
APART uint32_t find_field(const struct vxk_esdf *e, uint64_t key)
{
    return vxk_esdf_find(e, key);
}
APART const struct vxk_chunk *find_map(const struct vxk_grid *g, uint64_t key)
{
    return vxk_find_chunk(g, key);
}
static __device__ __forceinline__ uint32_t field_chunk(uint64_t key)
{
    const struct chunk *c = place_of(&shared, key);
    return c->key == key ? c->field : find_field(&shared.a.q.esdf, key);
}
static __device__ __forceinline__ const struct vxk_chunk *map_chunk(uint64_t key)
{
    const struct chunk *c = place_of(&shared, key);
    if (c->key != key)
        return find_map(&shared.a.q.grid, key);
    return c->map == VXK_NONE ? (const struct vxk_chunk *)0 : &shared.a.q.grid.chunks[c->map];
}
/* Looks up the chunks at the corners of what a robot needs of a leg: corner 0 .. 7. */
static __device__ void know_chunk(const struct leg *l, uint32_t corner)
{
    float reach = l->around + (float)shared.a.q.esdf.radius;
    int32_t at[3];
    uint64_t key;
    if (l->around < 0.0f || !(reach < 1000.0f))
        return;
    for (int k = 0; k < 3; k++)
        at[k] = l->v[k] + (corner >> k & 1 ? (int32_t)reach : -(int32_t)reach);
    if (!vxk_cell_key(at[0] >> 3, at[1] >> 3, at[2] >> 3, &key))
        return;
    struct chunk *c = place_of(&shared, key);
    if (vxk_atomic_cas64(&c->key, VXK_NO_KEY, key) == VXK_NO_KEY) {
        const struct vxk_chunk *map = find_map(&shared.a.q.grid, key);
        c->field = find_field(&shared.a.q.esdf, key);
        c->map = map ? (uint32_t)(map - shared.a.q.grid.chunks) : (uint32_t)VXK_NONE;
    }
}

/* vxk_outline_at */
static __device__ __forceinline__ void outline_at(const int32_t base[3], uint64_t *key,
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
    uint32_t c = field_chunk(*key);
    if (c != VXK_NONE) {
        const ulonglong2 *from = (const ulonglong2 *)&shared.a.q.esdf.outline[(uint64_t)c << 6 | word];
        ulonglong2 low = from[0], high = from[1];
        out->near = low.x;
        out->unknown = low.y;
        out->occupied = high.x;
        return;
    }
    const struct vxk_chunk *map = map_chunk(*key);
    if (map)
        out->unknown = ~map->word[word].tile;
}
/* Gathers what the cells of the region have. */
static __device__ void gather(void)
{
    struct block *s = &shared;
    struct region *r = &s->region;
    uint32_t ny = (uint32_t)r->n[1] / 4, nz = (uint32_t)r->n[2] / 4, n = (uint32_t)r->n[0] / 4 * ny * nz;
    for (uint32_t i = threadIdx.x; i < n; i += THREADS) {
        struct vxk_outline o;
        uint64_t key;
        int32_t base[3];
        base[0] = (r->first[0] + (int32_t)(i / (ny * nz)) * 4) * 8;
        base[1] = (r->first[1] + (int32_t)(i / nz % ny) * 4) * 8;
        base[2] = (r->first[2] + (int32_t)(i % nz) * 4) * 8;
        outline_at(base, &key, &o);
        s->word.near[i] = o.near;
        s->word.unknown[i] = o.unknown;
        s->word.occupied[i] = o.occupied;
    }
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < (uint32_t)(r->n[0] * r->n[1]); i += THREADS) {
        uint32_t x = i / (uint32_t)r->n[1], y = i - x * (uint32_t)r->n[1], near = 0, unknown = 0,
                 occupied = 0;
        uint32_t from = (x / 4 * ny + y / 4) * nz, shift = (x & 3) << 4 | (y & 3) << 2;
        for (uint32_t k = 0; k < nz; k++) {
            near |= (uint32_t)(s->word.near[from + k] >> shift & 15) << (4 * k);
            unknown |= (uint32_t)(s->word.unknown[from + k] >> shift & 15) << (4 * k);
            occupied |= (uint32_t)(s->word.occupied[from + k] >> shift & 15) << (4 * k);
        }
        r->known[i] = make_uint2(near | occupied, occupied);
        r->unknown[i] = unknown;
    }
    __syncthreads();
}
/* The cells of an extent, from the region's first; false when the region does not hold them all. */
static __device__ __forceinline__ int in_region(const struct region *r, const struct vxk_extent *e,
                                                int32_t from[3], int32_t to[3])
{
    int ok = 1;
    for (int a = 0; a < 3; a++) {
        from[a] = (e->lo[a] >> 3) - r->first[a];
        to[a] = (e->hi[a] >> 3) - r->first[a];
        ok &= from[a] >= 0 && to[a] < r->n[a];
    }
    return ok;
}
/* Bits from .. to. */
static __device__ __forceinline__ uint32_t bits_of(int32_t from, int32_t to)
{
    return (~0u << from) & (~0u >> (31 - to));
}
/* What the cells around have, by the outlines: near and occupied ones of `inner`, unknown ones of `outer`. */
APART uint32_t around_words(const struct vxk_extent *inner, const struct vxk_extent *outer)
{
    uint32_t found = 0;
    int32_t base[3];
    for (base[0] = outer->lo[0] & ~31; base[0] <= outer->hi[0]; base[0] += 32)
        for (base[1] = outer->lo[1] & ~31; base[1] <= outer->hi[1]; base[1] += 32)
            for (base[2] = outer->lo[2] & ~31; base[2] <= outer->hi[2]; base[2] += 32) {
                struct vxk_outline o;
                uint64_t key, cells = vxk_extent_cells(inner, base);
                outline_at(base, &key, &o);
                found |= o.unknown & vxk_extent_cells(outer, base) ? VXK_HAS_UNKNOWN : 0;
                found |= (o.near & cells ? VXK_NEAR : 0) | (o.occupied & cells ? VXK_HAS_OCCUPIED : 0);
            }
    return found;
}
/* The same (vxk_around), by the region where that holds all of it; occupied ones are near too.  Without
 * unknown space outer is inner. */
static __device__ __forceinline__ uint32_t around_extents(const struct vxk_extent *inner,
                                                          const struct vxk_extent *outer)
{
    const struct region *r = &shared.region;
    uint32_t near = 0, occupied = 0, unknown = 0, mask;
    int32_t from[3], to[3];
    if (!in_region(r, outer, from, to))
        return around_words(inner, outer);
    if (shared.a.unknown != VXK_UNKNOWN_FREE) {
        mask = bits_of(from[2], to[2]);
        for (int32_t x = from[0]; x <= to[0]; x++)
            for (int32_t y = from[1]; y <= to[1]; y++)
                unknown |= r->unknown[x * r->n[1] + y] & mask;
        in_region(r, inner, from, to);
    }
    mask = bits_of(from[2], to[2]);
    for (int32_t x = from[0]; x <= to[0]; x++)
        for (int32_t y = from[1]; y <= to[1]; y++) {
            near |= r->known[x * r->n[1] + y].x & mask;
            occupied |= r->known[x * r->n[1] + y].y & mask;
        }
    return (near ? VXK_NEAR : 0) | (occupied ? VXK_HAS_OCCUPIED : 0) | (unknown ? VXK_HAS_UNKNOWN : 0);
}
/* vxk_path_around */
APART uint32_t around_spot(const struct vxk_spot *m, float half, float radius)
{
    struct vxk_extent inner, outer;
    if (!vxk_path_extents(m, half, radius, &inner, &outer))
        return VXK_AROUND_ALL;
    return around_extents(&inner, shared.a.unknown == VXK_UNKNOWN_FREE ? &inner : &outer);
}
/* Whole numbers around x, |x| < 2^21: floor(x) or the one below; floor(x) or the one above. */
static __device__ __forceinline__ int32_t below(float x)
{
    union vxk_bits b;
    b.f = (x - 0.5f) + 12582912.0f;
    return (int32_t)(b.u - 0x4b400000u);
}
static __device__ __forceinline__ int32_t above(float x)
{
    union vxk_bits b;
    b.f = (x - 0.4375f) + 12582912.0f;
    return (int32_t)(b.u - 0x4b400000u);
}
/* What is around a piece that goes no further than half[] from a spot on each axis: no more than
 * around_spot finds, and all that matters of it. */
static __device__ __forceinline__ uint32_t around_piece(const struct vxk_spot *m, const float half[3],
                                                        float radius)
{
    struct vxk_extent inner, outer;
    for (int k = 0; k < 3; k++) { /* as vxk_path_extents */
        float h = half[k] + 0.1f, reach = h + radius + 0.5f;
        if (!(m->f[k] > -1e5f && m->f[k] < 1e5f) || m->v[k] < -134000000 || m->v[k] > 134000000)
            return VXK_AROUND_ALL;
        inner.lo[k] = m->v[k] + below(m->f[k] - h) - 1;
        inner.hi[k] = m->v[k] + above(m->f[k] + h) + 1;
        outer.lo[k] = min(m->v[k] + below(m->f[k] - reach) - 1, inner.lo[k]);
        outer.hi[k] = max(m->v[k] + above(m->f[k] + reach) + 1, inner.hi[k]);
    }
    return around_extents(&inner, shared.a.unknown == VXK_UNKNOWN_FREE ? &inner : &outer);
}

/* How many pieces the longest way of a leg has at most. */
static __device__ __forceinline__ int32_t pieces_of(const struct leg *l)
{
    float length = 1.001f * vxk_way_length(l->middle.moved, l->middle.turned, shared.a.reach);
    return length < (float)VXK_PATH_MOST ? vxk_path_pieces(length) : VXK_PATH_MOST / VXK_PATH_WIDE;
}
/* What a group needs of a leg: of all of it, or of one window of several. */
static __device__ void surround(const struct work *w, struct leg *l, int32_t windows)
{
    float length = vxk_way_length(l->middle.moved, l->middle.turned, shared.a.reach), f;
    union vxk_bits radius;
    radius.u = shared.radius_bits;
    l->around = -1.0f;
    if (l->middle.moved < 0.0f || vxk_path_leave(&shared.a, &l->middle))
        return;
    for (int k = 0; k < 3; k++)
        l->v[k] = l->middle.v[k];
    if (windows > 1) {
        double s = ((double)w->window + 0.5) / (double)windows;
        length = length / (float)windows + 3.0f * (float)VXK_PATH_WIDE; /* pieces begin where they do */
        for (int k = 0; k < 3; k++)
            if (!vxk_split(l->way.from[k] + s * l->way.step[k], &l->v[k], &f))
                return;
    }
    l->around = shared.a.reach + 0.5f * length + radius.f + 4.0f;
}
/* The cells that lanes' legs need (a lane a leg, of the first n): the region of as many of the first as fit,
 * at most.  Returns how many. */
static __device__ uint32_t choose_region(uint32_t n, const struct leg *leg, int32_t pieces)
{
    struct region *r = &shared.region;
    uint32_t lane = threadIdx.x & (VXK_WARP - 1);
    int32_t lo[3], hi[3], size[3], fits, listed;
    for (int a = 0; a < 3; a++) {
        lo[a] = 1 << 30;
        hi[a] = -(1 << 30);
    }
    if (lane < n && leg->around >= 0.0f && leg->around < 1000.0f)
        for (int a = 0; a < 3; a++) {
            lo[a] = (leg->v[a] - (int32_t)leg->around) >> 5;
            hi[a] = (leg->v[a] + (int32_t)leg->around) >> 5;
        }
    for (uint32_t d = 1; d < VXK_WARP; d *= 2) {
        int32_t p = __shfl_up_sync(VXK_FULL, pieces, d);
        if (lane >= d)
            pieces = max(pieces, p);
        for (int a = 0; a < 3; a++) {
            int32_t l = __shfl_up_sync(VXK_FULL, lo[a], d), h = __shfl_up_sync(VXK_FULL, hi[a], d);
            if (lane >= d) {
                lo[a] = min(lo[a], l);
                hi[a] = max(hi[a], h);
            }
        }
    }
    for (int a = 0; a < 3; a++)
        size[a] = max(hi[a] - lo[a] + 1, 0);
    listed = lane < n && pieces <= WINDOW && (lane + 1) * shared.a.n_spheres * (uint32_t)pieces <= LISTED;
    fits = size[0] <= COLUMNS && size[1] <= COLUMNS && size[0] * size[1] <= COLUMNS && size[2] <= DEEP;
    uint32_t in_lists = __ballot_sync(VXK_FULL, listed), all = __ballot_sync(VXK_FULL, fits && listed), last;
    int none = !(__ballot_sync(VXK_FULL, fits) & 1); /* not even the first leg has a region */
    last = none ? in_lists : all;
    last = last == VXK_FULL ? VXK_WARP : max((uint32_t)vxk_ctz32(~last), 1u);
    if (lane == last - 1) {
        shared.n_pieces = (uint32_t)min(pieces, (int32_t)WINDOW);
        shared.per_way = 1.0f / (float)shared.n_pieces;
        for (int a = 0; a < 3; a++) {
            r->n[a] = none ? 0 : size[a] * 4;
            r->first[a] = r->n[a] ? lo[a] * 4 : 0;
        }
    }
    return last;
}
/* What the glance needs of a leg.  A twentieth of a voxel is for what rounding may add, and a tenth as
 * vxk_path_extents has it; distances come from the voxels around a place's own. */
static __device__ void see(const struct leg *l, struct sight *out)
{
    const float *q = l->middle.q;
    for (int k = 0; k < 3; k++) {
        int x = (k + 1) % 3, y = (k + 2) % 3;
        out->turn[4 * k] = 0.125f - 0.25f * (q[x] * q[x] + q[y] * q[y]);
        out->turn[3 * k + x] = 0.25f * (q[k] * q[x] - q[3] * q[y]);
        out->turn[3 * k + y] = 0.25f * (q[k] * q[y] + q[3] * q[x]);
        out->at[k] = 0.125f * ((float)(l->v[k] - 8 * shared.region.first[k]) + l->middle.f[k]);
        if (!(l->around >= 0.0f && l->around < 1000.0f)) /* the region isn't made for it */
            out->at[k] = -1e5f;
        out->half[k] = 0.125f * (l->half[k] + 1.15f);
    }
    out->off = 0.125f * 1.415f * l->middle.turned;
}
/* Legs first .. of a path, a lane a leg (and one more for the last one's end), of `most`. */
static __device__ void make_legs(uint32_t path, uint32_t first, uint32_t most, struct leg *l)
{
    const struct vxk_query_path_args *a = &shared.a;
    uint32_t lane = threadIdx.x, at = min(first + lane, a->n_waypoints - 1);
    float q[4], moved, turned;
    struct vxk_way way;
    double to[3];
    int good = lane <= most &&
               vxk_pose(&a->q, a->poses + ((uint64_t)path * a->n_waypoints + at) * 7, way.from, way.q),
        ends = a->n_waypoints > 1;
    for (int k = 0; k < 3; k++)
        to[k] = __shfl_down_sync(VXK_FULL, way.from[k], ends);
    for (int k = 0; k < 4; k++)
        q[k] = __shfl_down_sync(VXK_FULL, way.q[k], ends);
    good &= __shfl_down_sync(VXK_FULL, good, ends);
    if (lane >= most)
        return;
    l->middle.moved = -1.0f;
    if (!good)
        return;
    vxk_way_to(&way, to, q, &moved, &turned);
    l->way = way;
    vxk_path_middle(&way, moved, turned, &l->middle);
    for (int k = 0; k < 3; k++)
        l->half[k] = 0.5f * vxk_abs((float)way.step[k]);
    if (vxk_path_leave(a, &l->middle))
        atomicMin(&shared.long_from, first + lane);
}
/* The legs of a group, and the chunks and cells around them; or the next window of the one that it has. */
static __device__ void begin_group(struct work *w, uint32_t path, uint32_t most)
{
    struct block *s = &shared;
    if (threadIdx.x < VXK_WARP) {
        struct leg *l = &s->leg[min(threadIdx.x, LEGS - 1u)];
        uint32_t n;
        int32_t pieces = 1, windows;
        if (w->window == 0)
            make_legs(path, w->first, most, l);
        if (threadIdx.x < most && l->middle.moved >= 0.0f)
            pieces = pieces_of(l);
        windows = threadIdx.x == 0 && pieces > WINDOW ? (pieces + WINDOW - 1) / WINDOW : 1;
        if (threadIdx.x < most)
            surround(w, l, windows);
        n = choose_region(most, l, pieces);
        if (threadIdx.x == 0) {
            s->n_legs = n;
            s->n_windows = (uint32_t)windows;
            s->n_march = s->n_meet = s->next_march = s->next_meet = 0;
        }
    }
    __syncthreads();
    w->n_legs = s->n_legs;
    w->n_windows = s->n_windows;
    for (uint32_t k = threadIdx.x; k < w->n_legs * 8; k += THREADS)
        know_chunk(&s->leg[k >> 3], k & 7);
    for (uint32_t k = THREADS - 1 - threadIdx.x; k < w->n_legs; k += THREADS)
        see(&s->leg[k], &s->sight[k]);
    __syncthreads();
    gather();
}
#endif
