/* Variants for new versions: a warp a word or a leaf, a block a chunk. */
#include "tuned_frame_leaf.cuh"

/* Words: sums and places */

enum { WORD_THREADS = 256, WORDS = WORD_THREADS / VXK_WARP };

/* What a block's words add to the frame's counters, one column a word. */
enum { ADD_LEAF_PAGES, ADD_VALUE_PAGES, ADD_RECORDS, ADD_OLD_LEAF_PAGES, ADD_OLD_VALUE_PAGES, N_PLACES };
struct word_sums {
    uint32_t add[N_PLACES][WORDS], place[N_PLACES][WORDS];
    int32_t d_leaf[WORDS], d_tile[WORDS], d_active[WORDS];
    uint32_t box[6][WORDS]; /* ~lower corner, upper corner */
};

static __device__ __forceinline__ void words_clear(struct word_sums *s, uint32_t w)
{
    for (int k = 0; k < N_PLACES; k++)
        s->add[k][w] = 0;
    s->d_leaf[w] = s->d_tile[w] = s->d_active[w] = 0;
    for (int k = 0; k < 6; k++)
        s->box[k][w] = 0;
}

/* A changed word's part of the sums. */
static __device__ __forceinline__ void words_note(struct word_sums *s, uint32_t w,
                                                  const struct vxk_frame_args *a,
                                                  const struct vxk_frame_word *fw, const struct vxk_word *old)
{
    struct vxk_frame_chunk *c = &a->s.chunk[fw->chunk >> 6];
    uint32_t had_leaf = old ? vxk_popc64(old->leaf) : 0, had_tile = old ? vxk_popc64(old->tile) : 0,
             had_active = old ? old->n_active : 0;
    s->add[ADD_LEAF_PAGES][w] = (fw->n_leaf + 7) / 8;
    s->add[ADD_VALUE_PAGES][w] = (fw->n_active + 255) / 256;
    s->add[ADD_RECORDS][w] = fw->n_leaf;
    s->add[ADD_OLD_LEAF_PAGES][w] = (had_leaf + 7) / 8;
    s->add[ADD_OLD_VALUE_PAGES][w] = (had_active + 255) / 256;
    s->d_leaf[w] = (int32_t)fw->n_leaf - (int32_t)had_leaf;
    s->d_tile[w] = (int32_t)vxk_popc64(fw->tile) - (int32_t)had_tile;
    s->d_active[w] = (int32_t)fw->n_active - (int32_t)had_active;
    if (fw->n_active) {
        uint32_t at = fw->chunk & 63;
        int32_t x, y, z;
        vxk_key_xyz(c->key, &x, &y, &z);
        s->box[3][w] = ((uint32_t)(x * 16 + (int32_t)(at >> 4) * 4) ^ 0x80000000u) + 3;
        s->box[4][w] = ((uint32_t)(y * 16 + (int32_t)(at >> 2 & 3) * 4) ^ 0x80000000u) + 3;
        s->box[5][w] = ((uint32_t)(z * 16 + (int32_t)(at & 3) * 4) ^ 0x80000000u) + 3;
        for (int k = 0; k < 3; k++)
            s->box[k][w] = ~(s->box[3 + k][w] - 3);
    }
    if (!vxk_atomic_or32(&c->changed, 1)) {
        c->fresh = vxk_atomic_add32(&a->s.c->n_new[VXK_PAGE_CHUNK], 1);
        if (c->old != VXK_NONE)
            vxk_atomic_add32(&a->s.c->n_old[VXK_PAGE_CHUNK], 1);
    }
}

static __device__ __forceinline__ void add_signed(uint64_t *to, const int32_t *from)
{
    int32_t sum = 0;
    for (uint32_t w = 0; w < WORDS; w++)
        sum += from[w];
    if (sum)
        vxk_atomic_add64(to, (uint64_t)(int64_t)sum);
}

/* The block's sums into the frame's counters, a thread a counter. */
static __device__ __forceinline__ void words_add(struct word_sums *s, struct vxk_frame_counters *n,
                                                 uint32_t t)
{
    if (t < N_PLACES) {
        uint32_t *const to = t == ADD_LEAF_PAGES       ? &n->n_new[VXK_PAGE_LEAVES]
                             : t == ADD_VALUE_PAGES    ? &n->n_new[VXK_PAGE_VALUES]
                             : t == ADD_RECORDS        ? &n->n_records
                             : t == ADD_OLD_LEAF_PAGES ? &n->n_old[VXK_PAGE_LEAVES]
                                                       : &n->n_old[VXK_PAGE_VALUES];
        uint32_t sum = 0, first;
        for (uint32_t w = 0; w < WORDS; w++) {
            s->place[t][w] = sum;
            sum += s->add[t][w];
        }
        first = sum ? vxk_atomic_add32(to, sum) : 0;
        for (uint32_t w = 0; w < WORDS; w++)
            s->place[t][w] = s->add[t][w] ? first + s->place[t][w] : 0;
    } else if (t >= 32 && t < 38) {
        uint32_t k = t - 32, *to = k < 3 ? &n->leaf_not_min[k] : &n->leaf_max[k - 3], most = 0;
        for (uint32_t w = 0; w < WORDS; w++)
            most = max(most, s->box[k][w]);
        if (most > vxk_load32(to))
            vxk_atomic_max32(to, most);
    } else if (t == 64) {
        add_signed(&n->d_leaf, s->d_leaf);
    } else if (t == 96) {
        add_signed(&n->d_tile, s->d_tile);
    } else if (t == 128) {
        add_signed(&n->d_active, s->d_active);
    }
}

/* A warp a word; lane k has cells k and k + 32. */
static __global__ void __launch_bounds__(WORD_THREADS)
    reduce(const __grid_constant__ struct vxk_frame_reduce_args a, uint32_t n, const uint32_t *n_dev,
           uint32_t per)
{
    vxk_kernel_begin();
    __shared__ struct word_sums sums;
    uint32_t end = vxk_launch_end(n, n_dev, per), lane = threadIdx.x & 31, w = threadIdx.x / VXK_WARP;
    for (uint32_t base = blockIdx.x * WORDS; base < end; base += gridDim.x * WORDS) {
        uint32_t i = base + w, changed = 0;
        struct vxk_frame_word *fw = &a.s.word[i < end ? i : base];
        const struct vxk_word *old = vxk_frame_old_word(&a, &a.s.chunk[fw->chunk >> 6], fw->chunk & 63);
        uint64_t leaf = 0;
        if (lane == 0)
            words_clear(&sums, w);
        if (i < end) {
            struct vxk_new_cell lo = vxk_new_cell(&a, i * 64 + lane, old),
                                hi = vxk_new_cell(&a, i * 64 + 32 + lane, old);
            uint32_t before_lo = vxk_warp_scan(lo.n_active, lane),
                     before_hi = vxk_warp_scan(hi.n_active, lane),
                     n_lo = __shfl_sync(VXK_FULL, before_lo, 31), n_hi = __shfl_sync(VXK_FULL, before_hi, 31);
            uint64_t tile;
            leaf = __ballot_sync(VXK_FULL, lo.leaf) | (uint64_t)__ballot_sync(VXK_FULL, hi.leaf) << 32;
            tile = __ballot_sync(VXK_FULL, lo.tile) | (uint64_t)__ballot_sync(VXK_FULL, hi.tile) << 32;
            changed = __any_sync(VXK_FULL, lo.changed | hi.changed);
            a.s.value_of[i * 64 + lane] = before_lo - lo.n_active;
            a.s.value_of[i * 64 + 32 + lane] = n_lo + before_hi - hi.n_active;
            if (lane == 0) {
                fw->changed = changed;
                if (changed) {
                    fw->leaf = leaf;
                    fw->tile = tile;
                    fw->n_active = n_lo + n_hi;
                    fw->n_leaf = vxk_popc64(leaf);
                    words_note(&sums, w, &a, fw, old);
                }
            }
        }
        __syncthreads();
        words_add(&sums, a.s.c, threadIdx.x);
        __syncthreads();
        if (changed) {
            uint32_t record = sums.place[ADD_RECORDS][w];
            if (lane == 0) {
                fw->leaf_page = sums.place[ADD_LEAF_PAGES][w];
                fw->value_page = sums.place[ADD_VALUE_PAGES][w];
            }
            for (uint32_t cell = lane; cell < 64; cell += VXK_WARP)
                if (leaf >> cell & 1)
                    a.s.record[record + vxk_popc64(leaf & ((1ull << cell) - 1))] = i << 6 | cell;
        }
        __syncthreads();
    }
}
VXK_TUNED_LAUNCH(frame_reduce, reduce, WORD_THREADS, WORDS, 8)

/* Leaves: records and values */

enum { LEAF_THREADS = 128, LEAVES = LEAF_THREADS / VXK_WARP };

/* Old value v of voxel n, faded; the state of one of which nothing is left becomes unknown. */
static __device__ __forceinline__ uint32_t fade(const struct vxk_frame_args *a,
                                                const struct vxk_fading *fading, uint32_t v, uint32_t n,
                                                uint32_t observed, int *state)
{
    int dead;
    if (*state != VXK_ACTIVE)
        return v;
    v = vxk_faded(a, fading, v, n, observed, &dead);
    if (dead)
        *state = VXK_UNKNOWN;
    return v;
}

/* Voxel n's value after a depth frame; state and v as before it. */
static __device__ __forceinline__ uint32_t new_value_depth(const struct vxk_frame_args *a,
                                                           const struct vxk_sighted *at,
                                                           const struct vxk_sample *sample, uint32_t n,
                                                           const struct vxk_fading *fading, int state,
                                                           uint32_t v)
{
    struct vxk_said s = vxk_pixel_says(&a->f, &at->says, at->z);
    const uint32_t band = s.surface | s.thin;
    int gone;
    if (!a->f.carve)
        s.near = s.free = 0;
    v = fade(a, fading, v, n, band | s.near | s.free, &state);
    if (band | (state == VXK_ACTIVE ? s.near | s.free : 0)) {
        struct vxk_obs obs =
            vxk_obs_depth(&a->f, vxk_what(band, s.near, s.free), s.thin, sample, at->says.front, at->z);
        v = vxk_merge(&a->f, state, v, &obs, &gone);
    }
    return v;
}

/* The same after a LiDAR frame that hit it (acc: what its accumulator says) or cleared it; fading: NULL: the
 * map does not fade. */
static __device__ __forceinline__ uint32_t new_value_lidar(const struct vxk_frame_args *a, uint32_t band,
                                                           uint32_t freed, uint64_t acc, uint32_t n,
                                                           const struct vxk_fading *fading, int state,
                                                           uint32_t v)
{
    struct vxk_obs o;
    int gone;
    if (fading)
        v = fade(a, fading, v, n, band | freed, &state);
    if (!(band | (state == VXK_ACTIVE ? freed : 0)))
        return v;
    o.what = (int32_t)vxk_what(band, 0, freed);
    o.q = 0;
    o.weight = 1;
    if (band) {
        if (acc)
            o.q = vxk_hit_mean(acc, &o.weight);
        o.weight = vxk_mini(o.weight, 255);
    } else {
        o.q = vxk_quantise(&a->f, a->f.trunc);
    }
    return vxk_merge(&a->f, state, v, &o, &gone);
}

/* The values of a leaf that a depth frame says something about, 64 at a time. */
static __device__ __forceinline__ void
update_depth(const struct vxk_frame_args *a, const struct vxk_offsets *offsets, const struct vxk_vec3 *first,
             bool whole, uint2 seen, const struct lane_leaf *now, const struct lane_leaf *old,
             const struct vxk_fading *fading, const uint16_t *list, uint32_t lane)
{
    for (uint32_t k0 = lane; k0 < now->n + lane; k0 += 2 * VXK_WARP) {
        uint32_t n[2], value[2];
        struct vxk_sighted at[2];
        struct vxk_sample sample[2];
        int state[2];
#pragma unroll
        for (uint32_t h = 0; h < 2; h++) {
            uint32_t k = k0 + h * VXK_WARP;
            n[h] = k < now->n ? list[k] : 0;
            at[h] = vxk_voxel_sighted(a, first, offsets->of[vxk_offset_slot(n[h])], whole);
            sample[h] = vxk_load_sample(a, at[h].pixel);
            state[h] = old_state(a, old, n[h], k < now->n, &value[h]);
        }
#pragma unroll
        for (uint32_t h = 0; h < 2; h++) {
            uint32_t k = k0 + h * VXK_WARP;
            if (k < now->n)
                a->values[value_index(now, k)] =
                    plane_seen(seen, n[h])
                        ? new_value_depth(a, &at[h], &sample[h], n[h], fading, state[h], value[h])
                        : value[h];
        }
    }
}

/* The same for a LiDAR frame, 128 at a time: hits and beams are marked already. */
static __device__ __forceinline__ void update_lidar(const struct vxk_frame_args *a, uint32_t hit,
                                                    uint32_t work, uint2 seen, const struct lane_leaf *now,
                                                    const struct lane_leaf *old,
                                                    const struct vxk_fading *fading, const uint16_t *list,
                                                    uint32_t lane)
{
    enum { AT_ONCE = 4 };
    uint32_t band_word = 0, free_word = 0, first = 0, band_before, n_band;
    if (hit < a->s.room_touch_leaf) {
        band_word = ((const uint32_t *)&a->s.hit_mask[(uint64_t)hit * 8])[lane & 15];
        first = a->s.hit_base[hit];
    }
    if (a->f.carve)
        free_word = ((const uint32_t *)a->s.clear)[(uint64_t)work * 16 + (lane & 15)];
    band_before = first + vxk_lane_ranks(band_word, lane, &n_band);
    for (uint32_t k0 = 0; k0 < now->n; k0 += AT_ONCE * VXK_WARP) {
        uint32_t n[AT_ONCE], value[AT_ONCE], band[AT_ONCE], freed[AT_ONCE];
        uint64_t acc[AT_ONCE];
        int state[AT_ONCE];
#pragma unroll
        for (uint32_t h = 0; h < AT_ONCE; h++) {
            const uint32_t k = k0 + h * VXK_WARP + lane;
            n[h] = k < now->n ? list[k] : 0;
            const uint32_t w = n[h] >> 5, bit = n[h] & 31;
            const uint32_t band_w = __shfl_sync(VXK_FULL, band_word, (int)w),
                           free_w = __shfl_sync(VXK_FULL, free_word, (int)w),
                           place = __shfl_sync(VXK_FULL, band_before, (int)w) +
                                   (uint32_t)__popc(band_w & ((1u << bit) - 1));
            state[h] = old_state(a, old, n[h], k < now->n, &value[h]);
            band[h] = band_w >> bit & 1;
            freed[h] = free_w >> bit & 1 & ~band[h];
            acc[h] = k < now->n && band[h] && place < a->s.room_hit ? a->s.acc[place] : 0;
        }
#pragma unroll
        for (uint32_t h = 0; h < AT_ONCE; h++) {
            const uint32_t k = k0 + h * VXK_WARP + lane;
            if (k < now->n)
                a->values[value_index(now, k)] =
                    plane_seen(seen, n[h])
                        ? new_value_lidar(a, band[h], freed[h], acc[h], n[h], fading, state[h], value[h])
                        : value[h];
        }
    }
}

/* And for one that the frame says nothing about: what is left of the values fades. */
static __device__ __forceinline__ void update_quiet(const struct vxk_frame_args *a,
                                                    const struct lane_leaf *now, const struct lane_leaf *old,
                                                    const struct vxk_fading *fading, const uint16_t *list,
                                                    uint32_t lane)
{
    for (uint32_t k0 = 0; k0 < now->n; k0 += VXK_WARP) {
        uint32_t k = k0 + lane, n = k < now->n ? list[k] : 0, v;
        int state = old_state(a, old, n, k < now->n, &v);
        if (k < now->n)
            a->values[value_index(now, k)] = fade(a, fading, v, n, 0, &state);
    }
}

/* A record to be written. */
struct task {
    uint32_t leaf;         /* number of the new record */
    uint32_t n;            /* its values */
    uint32_t old;          /* of the one before the frame, or VXK_NONE */
    uint32_t work;         /* place in the work list, or VXK_NONE */
    uint32_t how;          /* place of the first value on its page, IS_* */
    uint32_t page[3];      /* value pages */
    uint32_t hit;          /* LiDAR: touched leaf or VXK_NONE */
    struct vxk_vec3 first; /* depth: its first voxel, sensor coordinates */
    struct vxk_fading fading;
};
enum { IS_TILE = 256, IS_UPDATED = 512, IS_WHOLE = 1024 };

template <bool FADES>
static __device__ __forceinline__ struct task look_up(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t where = a->s.record[i], cell = where & 63, first = a->s.value_of[where], sum = 0;
    const struct vxk_frame_word *fw = &a->s.word[where >> 6];
    struct task t = {};
    int tile = 0;
    t.hit = VXK_NONE;
    t.work = a->s.code[where] == VXK_CELL_WORK ? a->s.work_of[where] : VXK_NONE;
    if (t.work != VXK_NONE)
        sum = a->s.sum[t.work];
    if (!FADES && t.work != VXK_NONE) {
        const uint2 of = *(const uint2 *)&a->s.task[t.work];
        tile = of.x == VXK_TASK_TILE;
        t.old = tile ? VXK_NONE : of.x;
        t.hit = of.y;
    } else {
        const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, cell, &tile);
        t.old = vxk_leaf_number(a->g.leaves, old);
        if (t.work == VXK_NONE)
            t.n = old->n_active;
        if (FADES && a->f.sensor == VXK_SENSOR_LIDAR)
            t.hit = vxk_touched_leaf(&a->s, a->s.chunk[fw->chunk >> 6].slot, fw->chunk & 63, cell);
    }
    if (t.work != VXK_NONE)
        t.n = sum & 1023;
    t.leaf = vxk_leaf_number(a->leaves, vxk_new_leaf(a, fw, cell));
    t.how = (first & 255) | (tile ? IS_TILE : 0) | (sum >> 20 ? IS_UPDATED : 0);
    for (uint32_t k = 0; k < 3; k++)
        t.page[k] = vxk_new_value_page(a, fw, first, t.n, k);
    t.first.x = t.first.y = t.first.z = 0.0f;
    if (FADES && a->f.sensor == VXK_SENSOR_DEPTH && leaf_in_view(a, fw, cell, &t.first))
        t.how |= IS_WHOLE;
    if (FADES)
        t.fading = vxk_fading_of(a, fw, cell);
    return t;
}

/* The task of one lane, for all. */
template <bool FADES>
static __device__ __forceinline__ struct task task_of(const struct task *own, uint32_t lane)
{
    struct task t = {};
    t.leaf = __shfl_sync(VXK_FULL, own->leaf, (int)lane);
    t.n = __shfl_sync(VXK_FULL, own->n, (int)lane);
    t.old = __shfl_sync(VXK_FULL, own->old, (int)lane);
    t.work = __shfl_sync(VXK_FULL, own->work, (int)lane);
    t.how = __shfl_sync(VXK_FULL, own->how, (int)lane);
    for (int k = 0; k < 3; k++)
        t.page[k] = __shfl_sync(VXK_FULL, own->page[k], (int)lane);
    t.hit = __shfl_sync(VXK_FULL, own->hit, (int)lane);
    t.first.x = __shfl_sync(VXK_FULL, own->first.x, (int)lane);
    t.first.y = __shfl_sync(VXK_FULL, own->first.y, (int)lane);
    t.first.z = __shfl_sync(VXK_FULL, own->first.z, (int)lane);
    if (FADES)
        t.fading = vxk_lane_fading(&own->fading, lane);
    return t;
}

/* A record before the frame and its new masks, a word a lane. */
struct words {
    uint32_t old, now;
    uint32_t tail; /* what lies behind the masks: lanes 0 .. 5 */
};
static __device__ __forceinline__ struct words load_words(const struct vxk_frame_args *a,
                                                          const struct task *t, uint32_t lane)
{
    const struct vxk_leaf *old = vxk_leaf_no(&a->g, t->old);
    struct words o;
    o.old = vxk_lane_masks(old, t->how & IS_TILE, lane);
    o.tail = old && lane < 6 ? ((const uint32_t *)old)[32 + lane] : lane >= 2 && lane < 5 ? VXK_NONE : 0;
    o.now = o.old;
    if (t->how & IS_UPDATED)
        o.now = lane < 16 ? ((const uint32_t *)a->s.active)[(uint64_t)t->work * 16 + lane]
                          : ((const uint32_t *)a->s.free)[(uint64_t)t->work * 16 + (lane - 16)];
    return o;
}

/* Where the values of the old record lie. */
static __device__ __forceinline__ void old_places(const struct words *w, struct lane_leaf *old)
{
    old->first = __shfl_sync(VXK_FULL, w->tail, 5) & 0xffff;
    for (int k = 0; k < 3; k++)
        old->page[k] = __shfl_sync(VXK_FULL, w->tail, 2 + k);
}

/* A record that stays as it is, but its pages. */
static __device__ __forceinline__ void copy_leaf(const struct vxk_frame_args *a, const struct task *t,
                                                 const struct words *w, uint32_t lane)
{
    struct lane_leaf old, now;
    uint32_t *to = (uint32_t *)&a->leaves[t->leaf];
    now.n = t->n;
    now.first = t->how & 255;
    for (int k = 0; k < 3; k++)
        now.page[k] = t->page[k];
    to[lane] = w->now;
    if (lane < 6)
        to[32 + lane] = lane < 2    ? w->tail
                        : lane == 2 ? now.page[0]
                        : lane == 3 ? now.page[1]
                        : lane == 4 ? now.page[2]
                                    : now.first | now.n << 16;
    old_places(w, &old);
    copy_values(a->values, a->g.values, &now, &old, lane);
}

/* Records without values, of the lanes whose bits are set, a few at once: as many loads are on their way. */
static __device__ __forceinline__ void write_empty(const struct vxk_frame_args *a, const struct task *own,
                                                   uint32_t empty, uint32_t lane)
{
    enum { AT_ONCE = 4 };
    while (empty) {
        uint32_t to[AT_ONCE], free[AT_ONCE];
#pragma unroll
        for (int h = 0; h < AT_ONCE; h++) {
            const int of = empty ? (int)vxk_ctz32(empty) : 0;
            const uint32_t work = __shfl_sync(VXK_FULL, own->work, of),
                           how = __shfl_sync(VXK_FULL, own->how, of),
                           old = __shfl_sync(VXK_FULL, own->old, of);
            to[h] = empty ? __shfl_sync(VXK_FULL, own->leaf, of) : VXK_NONE;
            free[h] = 0;
            if (empty && lane >= 16)
                free[h] = how & IS_UPDATED ? ((const uint32_t *)a->s.free)[(uint64_t)work * 16 + (lane - 16)]
                                           : ((const uint32_t *)&a->g.leaves[old])[lane];
            empty &= empty - 1;
        }
#pragma unroll
        for (int h = 0; h < AT_ONCE; h++)
            if (to[h] != VXK_NONE) {
                uint32_t *leaf = (uint32_t *)&a->leaves[to[h]];
                leaf[lane] = free[h];
                if (lane < 6)
                    leaf[32 + lane] = lane >= 2 && lane < 5 ? VXK_NONE : 0;
            }
    }
}

template <bool FADES>
static __device__ __forceinline__ void write_leaf(const struct vxk_frame_args *a,
                                                  const struct vxk_offsets *offsets, const struct task *t,
                                                  const struct words *w, uint16_t *list, uint32_t lane)
{
    const struct vxk_fading *fading = FADES ? &t->fading : (const struct vxk_fading *)0;
    struct lane_leaf old, now;
    uint2 seen;
    now.masks = w->now;
    now.ranks = vxk_lane_ranks(now.masks, lane, &now.n);
    now.first = t->how & 255;
    for (int k = 0; k < 3; k++)
        now.page[k] = t->page[k];
    store_leaf(&now, &a->leaves[t->leaf], lane);
    seen = *(const uint2 *)&a->s.seen[(uint64_t)t->work * 8];
    old.masks = w->old;
    old.ranks = vxk_lane_ranks(old.masks, lane, &old.n);
    old_places(w, &old);
    list_voxels(&now, list, lane);
    if (FADES && t->fading.flags & VXK_WORD_QUIET)
        update_quiet(a, &now, &old, fading, list, lane);
    else if (!FADES || a->f.sensor == VXK_SENSOR_LIDAR)
        update_lidar(a, t->hit, t->work, seen, &now, &old, fading, list, lane);
    else if (t->how & IS_WHOLE)
        update_depth(a, offsets, &t->first, true, seen, &now, &old, fading, list, lane);
    else
        update_depth(a, offsets, &t->first, false, seen, &now, &old, fading, list, lane);
    __syncwarp();
}

enum { BATCH = 8 };

/* FADES: for maps that decay or forget; depth frames of others have tuned_frame_depth.cu. */
template <bool FADES>
static __global__ void __launch_bounds__(LEAF_THREADS, FADES ? 1 : 8)
    leaf(const __grid_constant__ struct vxk_frame_leaf_args a, uint32_t n, const uint32_t *n_dev,
         uint32_t per)
{
    __shared__ uint16_t lists[LEAVES][512];
    __shared__ struct vxk_offsets offsets;
    if (FADES && a.f.sensor == VXK_SENSOR_DEPTH)
        vxk_offsets_fill(&offsets, a.f.R);
    vxk_kernel_begin();
    uint32_t end = vxk_launch_end(n, n_dev, per), lane = threadIdx.x & 31, warp = threadIdx.x / VXK_WARP,
             warps = gridDim.x * LEAVES, batch = vxk_batch(end, warps / 4, BATCH),
             shares = (end + batch - 1) / batch;
    /* leaves with values lie beside each other: a warp takes them from all over the list */
    for (uint32_t i0 = blockIdx.x * LEAVES + warp; i0 < shares; i0 += warps) {
        uint32_t m = (end - i0 + shares - 1) / shares;
        struct task own = look_up<FADES>(&a, i0 + min(lane, m - 1) * shares), next;
        uint32_t full = __ballot_sync(VXK_FULL, lane < m && own.n);
        struct words ahead;
        write_empty(&a, &own, __ballot_sync(VXK_FULL, lane < m && !own.n), lane);
        if (!full)
            continue;
        next = task_of<FADES>(&own, vxk_ctz32(full));
        ahead = load_words(&a, &next, lane);
        for (; full; full &= full - 1) {
            const struct task t = next;
            const struct words words = ahead;
            if (full & (full - 1)) { /* on its way meanwhile */
                next = task_of<FADES>(&own, vxk_ctz32(full & (full - 1)));
                ahead = load_words(&a, &next, lane);
            }
            if (t.how & IS_UPDATED)
                write_leaf<FADES>(&a, &offsets, &t, &words, lists[warp], lane);
            else
                copy_leaf(&a, &t, &words, lane);
        }
    }
}
extern "C" cudaError_t vxk_cuda_tuned_frame_leaf(const struct vxk_cuda_launch *l)
{
    const struct vxk_frame_leaf_args *a = (const struct vxk_frame_leaf_args *)l->args;
    if (a->f.sensor == VXK_SENSOR_DEPTH && !a->fade.on)
        return vxk_cuda_leaf_depth(l);
    return vxk_launch_tuned(l, a->fade.on ? leaf<true> : leaf<false>, *a, vxk_blocks_for(l, l->n, LEAVES, 16),
                            LEAF_THREADS);
}

/* Chunks: words, retired pages, headers */

enum { CHUNK_THREADS = 1024, CHUNK_WARPS = CHUNK_THREADS / VXK_WARP };

/* The pages of a replaced word; lane k looks at the leaves of cells k and k + 32. */
static __device__ __forceinline__ void retire(const struct vxk_frame_args *a, const struct vxk_word *old,
                                              uint32_t lane)
{
    uint32_t n_leaf_pages = (vxk_popc64(old->leaf) + 7) / 8, n_values = old->n_active, at = 0;
    if (lane == 0 && n_leaf_pages)
        at = vxk_atomic_add32(&a->s.c->at_old[VXK_PAGE_LEAVES], n_leaf_pages);
    if (lane == 1 && n_values)
        at = vxk_atomic_add32(&a->s.c->at_old[VXK_PAGE_VALUES], (n_values + 255) / 256);
    if (lane < n_leaf_pages)
        a->s.old[VXK_PAGE_LEAVES][__shfl_sync((1u << n_leaf_pages) - 1, at, 0) + lane] = old->page[lane];
    at = __shfl_sync(VXK_FULL, at, 1);
    if (!n_values)
        return;
    for (uint32_t cell = lane; cell < 64; cell += VXK_WARP) {
        const struct vxk_leaf *l =
            old->leaf >> cell & 1 ? vxk_leaf_at(&a->g, old, cell) : (const struct vxk_leaf *)0;
        uint32_t from = 0, n = l ? vxk_leaf_begins(l, &from) : 0, place = vxk_warp_scan(n, lane);
        for (uint32_t k = 0; k < n; k++)
            a->s.old[VXK_PAGE_VALUES][at + place - n + k] = l->page[from + k];
        at += __shfl_sync(VXK_FULL, place, 31);
    }
}

/* A word of a new version, a lane 4 bytes of it: replaced, carried over, or new and empty. */
static __device__ __forceinline__ void put_word(const struct vxk_frame_args *a,
                                                const struct vxk_frame_word *fw, const struct vxk_word *old,
                                                struct vxk_word *w, uint32_t lane)
{
    uint32_t x = lane >= 4 && lane < 12 ? VXK_NONE : 0;
    if (fw) {
        uint32_t page = lane - 4;
        if (lane < 2)
            x = (uint32_t)(fw->leaf >> 32 * lane);
        else if (lane < 4)
            x = (uint32_t)(fw->tile >> 32 * (lane - 2));
        else if (lane < 12 && page < (fw->n_leaf + 7) / 8)
            x = a->s.fresh[VXK_PAGE_LEAVES][fw->leaf_page + page];
        else if (lane == 12)
            x = fw->n_active;
        else if (lane == 13)
            x = a->epoch;
        else if (lane == 14)
            x = vxk_word_tick(a, old);
        else if (lane == 15)
            x = vxk_word_seen(a, fw, old);
    } else if (old && lane < 16) {
        x = ((const uint32_t *)old)[lane];
    }
    if (lane < 16)
        ((uint32_t *)w)[lane] = x;
}
static_assert(sizeof(struct vxk_word) == 64, "masks, pages, n_active, epoch, tick, seen of a word");

/* A block a chunk, two words a warp.  Beside frame_leaf (or frame_channels), which fills the new records:
 * only their places are needed here. */
static __global__ void __launch_bounds__(CHUNK_THREADS)
    commit(const __grid_constant__ struct vxk_frame_commit_args a, uint32_t n, const uint32_t *n_dev,
           uint32_t per)
{
    vxk_kernel_beside_begin();
    __shared__ uint32_t sums[3];
    uint32_t end = vxk_launch_end(n, n_dev, per), lane = threadIdx.x & 31, warp = threadIdx.x / VXK_WARP;
    for (uint32_t i = blockIdx.x; i < end; i += gridDim.x) {
        const struct vxk_frame_chunk *c = &a.s.chunk[i];
        struct vxk_chunk *v;
        if (!c->changed)
            continue;
        v = &a.chunks[a.s.fresh[VXK_PAGE_CHUNK][c->fresh]];
        if (threadIdx.x < 3)
            sums[threadIdx.x] = 0;
        __syncthreads();
        for (uint32_t k = warp; k < 64; k += CHUNK_WARPS) {
            const struct vxk_word *old = vxk_frame_old_word(&a, c, k);
            uint32_t at = a.s.word_of[i * 64 + k];
            const struct vxk_frame_word *fw =
                at != VXK_NONE && a.s.word[at].changed ? &a.s.word[at] : (const struct vxk_frame_word *)0;
            put_word(&a, fw, old, &v->word[k], lane);
            if (fw && old)
                retire(&a, old, lane);
            if (lane == 0 && (fw || old)) {
                atomicAdd(&sums[0], vxk_popc64(fw ? fw->leaf : old->leaf));
                atomicAdd(&sums[1], vxk_popc64(fw ? fw->tile : old->tile));
                atomicAdd(&sums[2], fw ? fw->n_active : old->n_active);
            }
        }
        __syncthreads();
        if (threadIdx.x == 0)
            vxk_chunk_publish(&a, c, sums[0], sums[1], sums[2]);
        __syncthreads();
    }
    vxk_kernel_beside_end();
}
VXK_TUNED_LAUNCH(frame_commit, commit, CHUNK_THREADS, 1, 2)
