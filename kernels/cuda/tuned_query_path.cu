/*
 * Whole paths of a robot: a block a path.
 *
 * Segments go in groups.  For each, threads make the legs, gather what the cells around have (the field's
 * outlines) into shared memory, decide the ways at a glance and list the others; then they march along those
 * and hold them against unknown space, each lane taking the next when it is done.  What a path touches in one
 * group ends it.  A leg whose ways have many pieces is a group of its own, and gone along in windows.
 */
#include "tuned_query_path_meet.cuh"

/* Entry k of those that may be marched. */
static __device__ __forceinline__ uint16_t *listed(uint32_t k)
{
    return &shared.list[k < shared.n_meet ? k : LISTED - 1 - (k - shared.n_meet)];
}
/* Lanes take places of the list. */
static __device__ __forceinline__ uint32_t place_in(uint32_t *n, int any)
{
    uint32_t m = __ballot_sync(VXK_FULL, any), lane = threadIdx.x & (VXK_WARP - 1), at = 0;
    if (m && lane == 0)
        at = atomicAdd(n, (uint32_t)__popc(m));
    return __shfl_sync(VXK_FULL, at, 0) + (uint32_t)__popc(m & ((1u << lane) - 1));
}
/* The middle of a piece: false when that is outside. */
static __device__ __forceinline__ int middle_of(const struct piece *p, struct vxk_spot *out)
{
    const struct vxk_path_leg *m = &p->leg->middle;
    float v[3];
    if (p->of > 1)
        return spot_at(p, ((float)p->at + 0.5f) / (float)p->of, out);
    vxk_turn(m->q, p->sphere->c, v);
    for (int k = 0; k < 3; k++) {
        out->v[k] = m->v[k];
        out->f[k] = m->f[k] + v[k];
    }
    return 1;
}
/* What of a piece is to be looked at: HAS_STATES for a march, *meets where there may be unknown space.
 * Returns whether there is a march. */
APART int decide(const struct piece *p, uint32_t *march, int *meets)
{
    uint32_t found = VXK_AROUND_ALL, unknown = shared.a.unknown;
    struct vxk_spot spot;
    if (middle_of(p, &spot)) {
        float half[3];
        for (int k = 0; k < 3; k++)
            half[k] = p->of > 1 ? way_half(p, k) / (float)p->of : way_half(p, k);
        found = around_piece(&spot, half, p->sphere->radius);
    }
    *meets = (found & VXK_HAS_UNKNOWN) && unknown != VXK_UNKNOWN_FREE;
    *march = found & VXK_HAS_OCCUPIED ? HAS_STATES : 0;
    if (!(found & (VXK_NEAR | VXK_HAS_OCCUPIED)))
        return 0;
    return 1;
}
/* The same of a way that is one piece, by its leg's sight. */
static __device__ __forceinline__ int glimpse(const struct work *w, uint32_t number, const struct sight *l,
                                              const struct sphere *b, uint32_t *march, int *meets)
{
    const struct region *r = &shared.region;
    int32_t from[3], to[3], outer_from[3], outer_to[3], outside = 0;
    uint32_t near = 0, occupied = 0, unknown = 0, mask, how = shared.a.unknown;
    float beyond = how == VXK_UNKNOWN_FREE ? 0.0f : 0.125f * (b->radius + 0.55f);
    for (int k = 0; k < 3; k++) {
        float half = __fmaf_rn(b->off, l->off, l->half[k]), at = l->at[k];
        for (int m = 0; m < 3; m++)
            at = __fmaf_rn(l->turn[3 * k + m], b->c[m], at);
        from[k] = below(at - half);
        to[k] = above(at + half);
        outer_from[k] = below(at - half - beyond);
        outer_to[k] = above(at + half + beyond);
        outside |= outer_from[k] | (r->n[k] - 1 - outer_to[k]);
    }
    if (outside < 0) {
        struct piece p;
        take_piece(w, number, &p);
        return decide(&p, march, meets);
    }
    if (how != VXK_UNKNOWN_FREE) {
        mask = bits_of(outer_from[2], outer_to[2]);
        for (int32_t x = outer_from[0]; x <= outer_to[0]; x++)
            for (int32_t y = outer_from[1]; y <= outer_to[1]; y++)
                unknown |= r->unknown[x * r->n[1] + y] & mask;
    }
    mask = bits_of(from[2], to[2]);
    for (int32_t x = from[0]; x <= to[0]; x++)
        for (int32_t y = from[1]; y <= to[1]; y++) {
            uint2 row = r->known[x * r->n[1] + y];
            near |= row.x & mask;
            occupied |= row.y & mask;
        }
    *meets = unknown != 0;
    *march = occupied ? HAS_STATES : 0;
    return near != 0;
}
/* Decides the pieces of a group, and lists what is to be looked at. */
static __device__ void glance(const struct work *w)
{
    struct block *s = &shared;
    uint32_t n_spheres = shared.a.n_spheres, n = w->n_legs * n_spheres * s->n_pieces;
    uint32_t leg = threadIdx.x / n_spheres, sphere = threadIdx.x % n_spheres; /* where a leg is one piece */
    uint32_t more_legs = THREADS / n_spheres, more_spheres = THREADS % n_spheres;
    int quick = s->n_pieces == 1 && s->region.n[0];
    for (uint32_t base = 0; base < n; base += THREADS) {
        uint32_t number = base + threadIdx.x, how = 0;
        float place = (float)(w->first + leg);
        int meets = 0, marches = 0;
        if (quick && number < n) {
            if (s->leg[leg].middle.moved < 0.0f)
                vxk_path_least(&s->o.outside, vxk_place_bits(place));
            else
                marches = glimpse(w, number, &s->sight[leg], &s->sphere[sphere], &how, &meets);
        } else if (number < n) {
            struct piece p;
            if (take_piece(w, number, &p)) {
                place = (float)p.segment;
                if (p.leg->middle.moved < 0.0f || !(p.length <= (float)VXK_PATH_MOST))
                    vxk_path_least(&s->o.outside, vxk_place_bits(place));
                else
                    marches = decide(&p, &how, &meets);
                place = place + place_at(&p, p.at);
            }
        }
        sphere += more_spheres;
        leg += more_legs + (sphere >= n_spheres);
        sphere -= sphere >= n_spheres ? n_spheres : 0;
        meets = meets && !behind_unknown(s, place);
        uint32_t entry = number << 3 | how | (marches ? MARCHES : 0), at;
        if (shared.a.unknown != VXK_UNKNOWN_FREE) {
            at = place_in(&s->n_meet, meets);
            if (meets)
                s->list[at] = (uint16_t)entry;
        }
        marches = marches && !meets;
        at = place_in(&s->n_march, marches);
        if (marches)
            s->list[LISTED - 1 - at] = (uint16_t)entry;
    }
}

/* Where unknown space is reported: finds the marches whose steps are short, by what vxk_path_around says. */
static __device__ void find_careful(const struct work *w)
{
    struct block *s = &shared;
    for (uint32_t k = threadIdx.x; k < s->n_meet + s->n_march; k += THREADS) {
        uint32_t entry = *listed(k), found = VXK_AROUND_ALL;
        struct vxk_spot spot;
        struct piece p;
        if (!(entry & MARCHES))
            continue;
        take_piece(w, entry >> 3, &p);
        if (middle_of(&p, &spot))
            found = around_spot(&spot, p.of > 1 ? 0.5f * p.length / (float)p.of : 0.5f * p.length,
                                p.sphere->radius);
        if ((found & VXK_HAS_OCCUPIED) && (found & VXK_HAS_UNKNOWN))
            *listed(k) = (uint16_t)(entry | HAS_STATES | IS_CAREFUL);
    }
}

/* The segment that a place lies on. */
static __device__ __forceinline__ uint32_t segment_at(float place)
{
    return min((uint32_t)place, shared.a.n_segments - 1);
}
/* The last cell of the field that a lane looked at. */
struct cell {
    uint64_t key;
    uint32_t place; /* in the chunk */
    uint32_t chunk; /* of the field */
    const uint16_t *leaf;
};
/* The field's leaf of another cell; c: in whose chunk it mostly lies. */
static __device__ __forceinline__ const uint16_t *leaf_of(const struct cell *c, int32_t x, int32_t y,
                                                          int32_t z)
{
    uint64_t key;
    if (!vxk_cell_key(x, y, z, &key))
        return (const uint16_t *)0;
    return vxk_esdf_leaf_of(&shared.a.q.esdf, key == c->key ? c->chunk : field_chunk(key), x, y, z);
}
/* vxk_esdf_signed */
static __device__ __forceinline__ float signed_of(uint32_t stored)
{
    union vxk_bits d;
    d.u = 0x4b000000u | (stored & VXK_ESDF_FAR); /* 2^23 and the distance */
    d.f = d.f - 8388608.0f;
    d.u |= (stored >> 15 & 1) << 31; /* VXK_STATE_OCCUPIED */
    return d.f;
}
/* The distance at a spot whose voxel has one; c: that voxel's cell. */
static __device__ __forceinline__ float distance_at(const struct vxk_spot *spot, const struct cell *c,
                                                    uint32_t stored)
{
    float f[3], d[8], g[3], unit = 1.0f / (256.0f * (float)shared.a.q.esdf.scale);
    uint32_t all = 1, v[8], across, own = 0;
    int32_t b[3];
    vxk_spot_corner(spot, b, f);
    across = (uint32_t)((b[0] & 7) == 7) << 2 | (uint32_t)((b[1] & 7) == 7) << 1 | ((b[2] & 7) == 7);
    for (int k = 0; k < 3; k++)
        own |= (uint32_t)(spot->v[k] - b[k]) << (2 - k);
    own &= across;
    for (uint32_t m = across;; m = (m - 1) & across) { /* the cells that hold corners */
        const uint16_t *l = c->leaf;
        if (m != own)
            l = leaf_of(c, (b[0] >> 3) + (int32_t)(m >> 2), (b[1] >> 3) + (int32_t)(m >> 1 & 1),
                        (b[2] >> 3) + (int32_t)(m & 1));
#pragma unroll
        for (uint32_t k = 0; k < 8; k++)
            if ((k & across) == m)
                v[k] = l ? l[vxk_voxel_of((uint32_t)b[0] + (k >> 2), (uint32_t)b[1] + (k >> 1 & 1),
                                          (uint32_t)b[2] + (k & 1))]
                         : (uint32_t)VXK_ESDF_FAR;
        if (!m)
            break;
    }
    for (uint32_t k = 0; k < 8; k++) {
        all &= (uint32_t)(vxk_esdf_has_distance(v[k]) & vxk_esdf_has_state(v[k]));
        d[k] = signed_of(v[k]);
    }
    return (all ? vxk_trilinear(d, f, g) : signed_of(stored)) * unit;
}
/* What is stored of a spot's voxel, and its state: vxk_path_look up to there.  Of a voxel that has no leaf
 * the map is asked only where the outline says it matters. */
static __device__ __forceinline__ uint32_t look(const struct vxk_spot *spot, int states, int careful,
                                                struct cell *c, uint32_t *state)
{
    const struct vxk_query *q = &shared.a.q;
    uint32_t place = vxk_place(spot->v[0] >> 3, spot->v[1] >> 3, spot->v[2] >> 3);
    uint64_t key = vxk_key(spot->v[0] >> 7, spot->v[1] >> 7, spot->v[2] >> 7);
    if (key != c->key) {
        c->key = key;
        c->chunk = field_chunk(key);
        c->place = VXK_NONE;
    }
    if (place != c->place) {
        uint32_t n = VXK_NONE;
        if (c->chunk != VXK_NONE)
            n = q->esdf.table[(uint64_t)c->chunk * VXK_CELLS_A_CHUNK + place];
        c->leaf = n == VXK_NONE ? (const uint16_t *)0 : vxk_esdf_voxels(q->esdf.pages, n);
        c->place = place;
    }
    if (c->leaf) {
        uint32_t stored =
            c->leaf[vxk_voxel_of((uint32_t)spot->v[0], (uint32_t)spot->v[1], (uint32_t)spot->v[2])];
        *state = stored >> 14;
        return stored;
    }
    if (states && c->chunk != VXK_NONE) {
        const struct vxk_outline *o = &q->esdf.outline[(uint64_t)c->chunk << 6 | place >> 6];
        states = ((o->occupied | (careful ? o->unknown : 0)) >> (place & 63) & 1) != 0;
    }
    *state = (uint32_t)VXK_STATE_FREE;
    if (states) { /* nothing is within R: its state alone is asked for */
        uint32_t value = 0;
        int kind = vxk_chunk_voxel(&q->grid, map_chunk(key), (uint32_t)spot->v[0] & 127,
                                   (uint32_t)spot->v[1] & 127, (uint32_t)spot->v[2] & 127, &value);
        *state = vxk_evidence(kind, value, q->occupancy);
    }
    return (uint32_t)VXK_ESDF_FAR;
}
/* A lane's march along a piece, and what it saw last. */
struct march {
    struct piece p;
    float at, begin, end;
    float gone, clear, least; /* from the last sample, and there; of all */
    int has;                  /* at the last sample */
    int states, careful;
};
/* Takes what is at a sample: true when the march goes on. */
static __device__ __forceinline__ int take_sample(struct march *m, int has, float d, uint32_t state,
                                                  int touching)
{
    struct vxk_path_sample now;
    float radius = m->p.sphere->radius, most = (float)shared.a.q.esdf.radius;
    int touches = (has && d <= radius) || state == VXK_STATE_OCCUPIED;
    now.clear = (has ? vxk_min(d, most) : most) - radius;
    now.state = state;
    if (has)
        m->least = vxk_min(m->least, now.clear);
    if (m->at > m->begin && (has || m->has))
        m->least = vxk_min(m->least, 0.5f * (m->clear + now.clear - m->gone));
    if (touches && !touching)
        vxk_path_contact(&shared.o, (float)m->p.segment + m->at, m->p.number);
    if (!touches && m->at < m->end && m->p.length > 0.0f) {
        float next = vxk_min(m->at + vxk_path_step(&now, m->careful) / m->p.length, m->end);
        m->gone = (next - m->at) * m->p.length;
        m->at = next;
        m->clear = now.clear;
        m->has = has;
        return 1;
    }
    return 0;
}
/* The next march of the list, or with a place of a leg of the group the next sphere there: false when there
 * is none, or no way. */
static __device__ __forceinline__ int next_march(const struct work *w, uint32_t k, float touch,
                                                 struct march *m)
{
    struct block *s = &shared;
    uint32_t entry = 0;
    int good = 1;
    if (touch < 0.0f) {
        entry = *listed(k);
        good = (entry & MARCHES) != 0;
        take_piece(w, entry >> 3, &m->p);
        m->at = m->begin = place_at(&m->p, m->p.at);
        m->end = place_at(&m->p, m->p.at + 1);
    } else {
        m->p.segment = segment_at(touch);
        m->p.leg = &s->leg[m->p.segment - w->first];
        m->p.sphere = &s->sphere[k];
        m->p.length = vxk_way_length(m->p.leg->middle.moved, m->p.leg->middle.turned, m->p.sphere->off);
        m->at = m->begin = m->end = touch - (float)m->p.segment;
        good = m->p.leg->middle.moved >= 0.0f && m->p.length <= (float)VXK_PATH_MOST;
    }
    m->states = (entry & HAS_STATES) != 0;
    m->careful = (entry & IS_CAREFUL) != 0;
    m->least = 1e30f;
    m->has = 0;
    m->gone = m->clear = 0.0f;
    return good;
}
/* Marches along the listed pieces, a lane a piece: vxk_path_march.  With a place, of a leg of the group:
 * looks at all spheres there and nowhere else (vxk_path_touch).  Most samples have no distance: lanes go on
 * to those that have before they interpolate them together. */
static __device__ void march(const struct work *w, float touch)
{
    struct block *s = &shared;
    struct cell cell = {VXK_NO_KEY, VXK_NONE, VXK_NONE, (const uint16_t *)0};
    struct march m = {};
    uint32_t n_listed = touch < 0.0f ? s->n_meet + s->n_march : shared.a.n_spheres, stored = 0, state = 0;
    int busy = 0, waits = 0, more = 1; /* waits: at a sample that has a distance */
    for (;;) {
        struct vxk_spot spot;
        for (;;) {
            if (!busy && more) {
                uint32_t k = atomicAdd(&s->next_march, 1);
                more = k < n_listed;
                busy = more && next_march(w, k, touch, &m);
            }
            uint32_t goes = __ballot_sync(VXK_FULL, (busy && !waits) || (!busy && more)),
                     wait = __ballot_sync(VXK_FULL, waits);
            if (!goes || __popc(wait) >= PATIENT)
                break;
            if (!busy || waits)
                continue;
            float place = (float)m.p.segment + m.at;
            int inside = 0;
            if (!over(s, place)) {
                inside = spot_at(&m.p, m.at, &spot);
                if (!inside && touch < 0.0f)
                    vxk_path_least(&s->o.outside, vxk_place_bits(place));
            }
            busy = inside;
            if (inside) {
                stored = look(&spot, m.states, m.careful, &cell, &state);
                waits = vxk_esdf_has_distance(stored);
                if (!waits)
                    busy = take_sample(&m, 0, 0.0f, state, touch >= 0.0f);
            }
            if (!busy && m.least < 1e29f)
                vxk_path_least(&s->o.clearance, vxk_order_of(m.least));
        }
        if (!__any_sync(VXK_FULL, waits))
            return;
        if (waits) {
            waits = 0;
            busy = take_sample(&m, 1, distance_at(&spot, &cell, stored), state, touch >= 0.0f);
            if (!busy && m.least < 1e29f)
                vxk_path_least(&s->o.clearance, vxk_order_of(m.least));
        }
    }
}

APART void touch_far(uint32_t path, uint32_t sphere)
{
    vxk_path_touch(&shared.a, path, sphere, &shared.o);
}
/* After the last group: cuts the path.  Returns where all spheres are looked at once more, of a leg of that
 * group; negative: that is done, or needn't be. */
static __device__ float cut(const struct work *w, uint32_t path)
{
    struct block *s = &shared;
    union vxk_bits place;
    uint32_t segment;
    uint64_t first;
    __syncthreads(); /* all know that it is the last */
    if (threadIdx.x == 0) {
        if (s->long_from != VXK_NONE && !over(s, (float)s->long_from)) {
            vxk_path_begin(&s->o);
            s->o.status = (uint32_t)VXK_PATH_WHOLE_LEFT;
        } else {
            s->next_march = 0;
            vxk_path_cut(&shared.a, &s->o);
        }
    }
    __syncthreads();
    first = s->o.first;
    __syncthreads();
    if (first == ~0ull)
        return -1.0f;
    place.u = (uint32_t)(first >> 32);
    segment = segment_at(place.f);
    if (segment >= w->first && segment < w->first + w->n_legs)
        return place.f;
    for (uint32_t k = threadIdx.x; k < shared.a.n_spheres; k += THREADS)
        touch_far(path, k);
    __syncthreads();
    return -1.0f;
}
/* All of a path. */
static __device__ void walk(struct work *w, uint32_t path)
{
    const struct vxk_query_path_args *a = &shared.a;
    struct block *s = &shared;
    uint32_t most = min((uint32_t)LEGS, LISTED / a->n_spheres), end;
    float touch = -1.0f;
    w->window = w->first = 0;
    for (;;) {
        begin_group(w, path, min(a->n_segments - w->first, most));
        end = min(s->long_from, a->n_segments);
        if (end < w->first + w->n_legs)
            w->n_legs = end - w->first;
        glance(w);
        __syncthreads();
        if (a->unknown == VXK_UNKNOWN_REPORT) {
            find_careful(w);
            __syncthreads();
        }
        meet(w);
        for (;;) {
            march(w, touch);
            __syncthreads();
            if (touch >= 0.0f)
                return;
            if (w->window + 1 < w->n_windows && w->n_legs) {
                w->window++;
                break;
            }
            if (!over(s, (float)(w->first + w->n_legs)) && w->first + w->n_legs != end) {
                w->first += w->n_legs;
                w->window = 0;
                break;
            }
            touch = cut(w, path);
            if (touch < 0.0f)
                return;
        }
    }
}

static __global__ void __launch_bounds__(THREADS, BLOCKS)
    whole(const __grid_constant__ struct vxk_query_path_args a, uint32_t n, const uint32_t *n_dev,
          uint32_t per)
{
    vxk_kernel_begin();
    struct block *s = &shared;
    struct work w;
    uint32_t end = vxk_launch_end(n, n_dev, per);
    w.per_leg = 1.0f / (float)a.n_spheres;
    for (uint32_t i = threadIdx.x; i < CHUNKS; i += THREADS)
        s->chunk[i].key = VXK_NO_KEY;
    if (threadIdx.x == 0)
        s->radius_bits = 0;
    for (uint32_t i = threadIdx.x; i < sizeof a / sizeof(uint64_t); i += THREADS)
        ((uint64_t *)&s->a)[i] = ((const uint64_t *)&a)[i];
    __syncthreads();
    for (uint32_t i = threadIdx.x; i < a.n_spheres; i += THREADS) {
        union vxk_bits radius;
        s->sphere[i].off = vxk_path_sphere(&a, i, s->sphere[i].c, &s->sphere[i].radius);
        radius.f = s->sphere[i].radius;
        atomicMax(&s->radius_bits, radius.u);
    }
    for (uint32_t i = blockIdx.x; i < end; i += gridDim.x) {
        uint32_t path = vxk_path_picked(&a, i);
        if (threadIdx.x == 0) {
            vxk_path_begin(&s->o);
            s->long_from = VXK_NONE;
        }
        __syncthreads();
        walk(&w, path);
        if (threadIdx.x == 0) {
            if (s->o.status != (uint32_t)VXK_PATH_WHOLE_LEFT)
                vxk_path_end(&a, &s->o);
            a.out[path] = s->o;
        }
        __syncthreads();
    }
}
VXK_TUNED_LAUNCH_IF(query_path_whole, whole, THREADS, 1, 64, a->n_spheres <= VXK_PATH_WHOLE_SPHERES)
