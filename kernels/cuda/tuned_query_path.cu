/*
 * Whole paths of a robot: a block a path.
 *
 * Segments go in groups.  For each, threads make the legs, gather what the cells around have (the field's
 * outlines) into shared memory, decide the ways at a glance and list the others; then they march along those
 * and hold them against unknown space, each lane taking the next when it is done.  What a path touches in one
 * group ends it.  A leg whose ways have many pieces is a group of its own, and gone along in windows.
 */
#include "tuned_query_path_meet.cuh"

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
/* What of a piece is to be looked at: HAS_STATES and IS_CAREFUL for a march, *meets what may be unknown.
 * Returns whether there is a march. */
static __device__ __forceinline__ int decide(const struct work *w, const struct piece *p, uint32_t *march,
                                             int *meets)
{
    uint32_t found = VXK_AROUND_ALL, unknown = shared.a.unknown;
    struct vxk_spot spot;
    int inside = middle_of(p, &spot);
    if (inside) {
        float half[3];
        for (int k = 0; k < 3; k++)
            half[k] = p->of > 1 ? way_half(p, k) / (float)p->of : way_half(p, k);
        found = around_piece(&spot, half, p->sphere->radius);
    }
    *meets = (found & VXK_HAS_UNKNOWN) && unknown != VXK_UNKNOWN_FREE;
    *march = found & VXK_HAS_OCCUPIED ? HAS_STATES : 0;
    if (!(found & (VXK_NEAR | VXK_HAS_OCCUPIED)))
        return 0;
    if (unknown == VXK_UNKNOWN_REPORT && inside) /* how short its steps are: what vxk_path_around says */
        found = around_spot(&spot, p->of > 1 ? 0.5f * p->length / (float)p->of : 0.5f * p->length,
                            p->sphere->radius);
    if (unknown == VXK_UNKNOWN_REPORT && (found & VXK_HAS_OCCUPIED) && (found & VXK_HAS_UNKNOWN))
        *march = HAS_STATES | IS_CAREFUL;
    return 1;
}
/* Decides the pieces of a group, and lists what is to be looked at. */
static __device__ void glance(const struct work *w)
{
    struct block *s = &shared;
    uint32_t n = w->n_legs * shared.a.n_spheres * s->n_pieces;
    for (uint32_t base = 0; base < n; base += THREADS) {
        uint32_t number = base + threadIdx.x, how = 0;
        int meets = 0, marches = 0;
        struct piece p;
        if (number < n && take_piece(w, number, &p)) {
            float place = (float)p.segment;
            if (p.leg->middle.moved < 0.0f || !(p.length <= (float)VXK_PATH_MOST))
                vxk_path_least(&s->o.outside, vxk_place_bits(place));
            else
                marches = decide(w, &p, &how, &meets);
            meets = meets && !behind_unknown(s, place + place_at(&p, p.at));
        }
        put(s->list.march, &s->n_march, number << 2 | how, marches);
        put(s->list.meet, &s->n_meet, number, meets);
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
/* vxk_path_look.  Of a voxel that has no leaf the map is asked only where the outline says it matters. */
static __device__ __forceinline__ void look(float radius, const struct vxk_spot *spot, int states,
                                            int careful, struct cell *c, struct vxk_path_sample *out)
{
    const struct vxk_query *q = &shared.a.q;
    uint32_t place = vxk_place(spot->v[0] >> 3, spot->v[1] >> 3, spot->v[2] >> 3);
    uint64_t key = vxk_key(spot->v[0] >> 7, spot->v[1] >> 7, spot->v[2] >> 7);
    float d;
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
    if (states && !c->leaf && c->chunk != VXK_NONE) {
        const struct vxk_outline *o = &q->esdf.outline[(uint64_t)c->chunk << 6 | place >> 6];
        states = ((o->occupied | (careful ? o->unknown : 0)) >> (place & 63) & 1) != 0;
    }
    if (states && !c->leaf) { /* nothing is within R: its state alone is asked for */
        uint32_t value = 0;
        int kind = vxk_chunk_voxel(&q->grid, map_chunk(key), (uint32_t)spot->v[0] & 127,
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
        d = out->has ? distance_at(spot, c, stored) : 0.0f;
    }
    out->clear = (out->has ? vxk_min(d, (float)q->esdf.radius) : (float)q->esdf.radius) - radius;
    out->touches = (out->has && d <= radius) || out->state == VXK_STATE_OCCUPIED;
}
/* Marches along the listed pieces, a lane a piece: vxk_path_march.  With a place, of a leg of the group:
 * looks at all spheres there and nowhere else (vxk_path_touch). */
static __device__ void march(const struct work *w, float touch)
{
    struct block *s = &shared;
    struct vxk_path_sample now, last = {};
    struct cell cell = {VXK_NO_KEY, VXK_NONE, VXK_NONE, (const uint16_t *)0};
    struct piece p = {};
    uint32_t n_listed = touch < 0.0f ? s->n_march : shared.a.n_spheres;
    float at = 0.0f, begin = 0.0f, end = 0.0f, gone = 0.0f, least = 1e30f;
    int busy = 0, states = 0, careful = 0;
    for (;;) {
        struct vxk_spot spot;
        if (!busy) {
            uint32_t k = atomicAdd(&s->next_march, 1);
            if (k < n_listed) {
                uint32_t entry = touch < 0.0f ? s->list.march[k] : 0;
                if (touch < 0.0f) {
                    take_piece(w, entry >> 2, &p);
                    at = begin = place_at(&p, p.at);
                    end = place_at(&p, p.at + 1);
                } else {
                    p.segment = segment_at(touch);
                    p.leg = &s->leg[p.segment - w->first];
                    p.sphere = &s->sphere[k];
                    p.length = vxk_way_length(p.leg->middle.moved, p.leg->middle.turned, p.sphere->off);
                    at = begin = end = touch - (float)p.segment;
                }
                states = (entry & HAS_STATES) != 0;
                careful = (entry & IS_CAREFUL) != 0;
                gone = 0.0f;
                least = 1e30f;
                last.has = 0;
                last.clear = 0.0f;
                busy = touch < 0.0f || (p.leg->middle.moved >= 0.0f && p.length <= (float)VXK_PATH_MOST);
            }
        }
        if (!__any_sync(VXK_FULL, busy))
            return;
        if (!busy)
            continue;
        float place = (float)p.segment + at;
        if (over(s, place)) {
            busy = 0;
        } else if (!spot_at(&p, at, &spot)) {
            if (touch < 0.0f)
                vxk_path_least(&s->o.outside, vxk_place_bits(place));
            busy = 0;
        } else {
            look(p.sphere->radius, &spot, states, careful, &cell, &now);
            if (now.has)
                least = vxk_min(least, now.clear);
            if (at > begin && (now.has || last.has))
                least = vxk_min(least, 0.5f * (last.clear + now.clear - gone));
            if (now.touches && touch < 0.0f)
                vxk_path_contact(&s->o, place, p.number);
            busy = !(now.touches || at >= end || p.length <= 0.0f);
            if (busy) {
                float next = vxk_min(at + vxk_path_step(&now, careful) / p.length, end);
                gone = (next - at) * p.length;
                at = next;
                last = now;
            }
        }
        if (!busy && least < 1e29f)
            vxk_path_least(&s->o.clearance, vxk_order_of(least));
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
        begin_group(w, path,
                    min(a->n_segments - w->first, w->first ? most : min(most, (uint32_t)FIRST_LEGS)));
        end = min(s->long_from, a->n_segments);
        if (end < w->first + w->n_legs)
            w->n_legs = end - w->first;
        glance(w);
        __syncthreads();
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
    if (threadIdx.x == 0) {
        s->a = a;
        s->radius_bits = 0;
    }
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
