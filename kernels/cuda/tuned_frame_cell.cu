/* Variants for the cells that a frame may change: a warp a cell. */
#include "tuned_frame.cuh"

enum { THREADS = 128, WARPS = THREADS / VXK_WARP };

/* What time takes from a cell. */
struct wane {
    uint32_t dead;  /* this lane's word: active voxels of which nothing is left */
    uint32_t moved; /* planes with values that fade */
    bool unfree;    /* its free voxels become unknown */
};

/* New masks from what was seen; band and freed: this lane's word of each, cleared: active voxels that are
 * free beyond doubt; moved: planes with an active voxel that the frame says something about. */
static __device__ __forceinline__ void cell_end(const struct vxk_frame_args *a, uint32_t i, uint32_t lane,
                                                uint32_t was, uint32_t band, uint32_t freed, uint32_t cleared,
                                                uint32_t moved, const struct wane *wane)
{
    uint32_t j = lane & 15, had_active = __shfl_sync(VXK_FULL, was, (int)j),
             had_free = __shfl_sync(VXK_FULL, was, (int)(j + 16)), was_active = had_active & ~wane->dead,
             was_free = wane->unfree ? 0 : had_free, active, free_now, m, n_active, n_free;
    active = (was_active | band) & ~cleared;
    free_now = ((was_free | (freed & ~was_active)) & ~band) | cleared;
    m = __ballot_sync(VXK_FULL, active != had_active || free_now != had_free || (band & was_active)) & 0xffff;
    moved |= wane->moved;
    if (m || moved) { /* else nobody asks for them */
        if (lane < 16)
            ((uint32_t *)a->s.active)[(uint64_t)i * 16 + j] = active;
        else
            ((uint32_t *)a->s.free)[(uint64_t)i * 16 + j] = free_now;
        if (lane < 8)
            a->s.seen[(uint64_t)i * 8 + lane] =
                (uint8_t)((m >> (2 * lane) & 3) || (moved >> lane & 1) ? 1 : 0);
    }
    n_active = vxk_warp_sum(lane < 16 ? (uint32_t)__popc(active) : 0);
    n_free = vxk_warp_sum(lane < 16 ? (uint32_t)__popc(free_now) : 0);
    if (lane == 0)
        a->s.sum[i] = n_active | n_free << 10 | (m || moved ? 1u : 0u) << 20;
}

/* Value of active voxel n of an old leaf. */
static __device__ __forceinline__ uint32_t old_value(const struct vxk_frame_args *a,
                                                     const struct vxk_leaf *old, uint32_t n)
{
    return a->g.values[vxk_leaf_value_index(old, vxk_leaf_rank(old, n))];
}

/* A cell of the work list. */
struct task {
    int32_t base[3]; /* its first voxel, from chunk oc */
    uint32_t old;    /* number of its record before the frame, or VXK_NONE */
    uint32_t hit;    /* LiDAR: touched leaf or VXK_NONE */
    int tile;        /* it was a free tile */
    struct vxk_fading fading;
};

template <bool FADES>
static __device__ __forceinline__ struct task look_up(const struct vxk_frame_args *a, uint32_t i)
{
    struct task t = {};
    if (FADES) {
        const uint32_t where = a->s.work[i], cell = where & 63;
        const struct vxk_frame_word *fw = &a->s.word[where >> 6];
        vxk_frame_cell_base(a, fw, cell, t.base);
        t.old = vxk_leaf_number(a->g.leaves, vxk_frame_old_leaf(a, fw, cell, &t.tile));
        t.hit = a->f.sensor == VXK_SENSOR_LIDAR
                    ? vxk_touched_leaf(&a->s, a->s.chunk[fw->chunk >> 6].slot, fw->chunk & 63, cell)
                    : VXK_NONE;
        t.fading = vxk_fading_of(a, fw, cell);
    } else {
        const uint2 of = *(const uint2 *)&a->s.task[i];
        t.tile = of.x == VXK_TASK_TILE;
        t.old = t.tile ? VXK_NONE : of.x;
        t.hit = of.y;
    }
    return t;
}

/* The task of one lane, for all. */
template <bool FADES>
static __device__ __forceinline__ struct task task_of(const struct task *own, uint32_t lane)
{
    struct task t = {};
    for (int k = 0; k < 3; k++)
        t.base[k] = __shfl_sync(VXK_FULL, own->base[k], (int)lane);
    t.old = __shfl_sync(VXK_FULL, own->old, (int)lane);
    t.hit = __shfl_sync(VXK_FULL, own->hit, (int)lane);
    t.tile = __shfl_sync(VXK_FULL, own->tile, (int)lane);
    if (FADES)
        t.fading = vxk_lane_fading(&own->fading, lane);
    return t;
}

/* What the frame may say about the eight parts of 4 x 4 x 4 voxels of a cell, four lanes a part: bit 4 p of
 * *some is set where it may say anything about part p, of *open where all it says is "free", of *whole where
 * the part is in view as a whole. */
static __device__ __forceinline__ void cell_parts(const struct vxk_frame_args *a, const int32_t base[3],
                                                  uint32_t lane, uint32_t *some, uint32_t *open,
                                                  uint32_t *whole)
{
    struct vxk_stride by = {(int32_t)(lane & 1), (int32_t)(lane >> 1 & 1), 2, 2};
    struct vxk_vec3 q =
        vxk_to_sensor(&a->f, (float)base[0] + (lane & 16 ? 6.0f : 2.0f),
                      (float)base[1] + (lane & 8 ? 6.0f : 2.0f), (float)base[2] + (lane & 4 ? 6.0f : 2.0f));
    struct vxk_look look = vxk_frame_look(&a->f, &a->s, &q, 2.7f, 1.6f, &by);
    uint32_t may;
    vxk_join_lane(&look.b, 1);
    vxk_join_lane(&look.b, 2);
    may = vxk_look_says(&a->f, &look);
    *some = __ballot_sync(VXK_FULL, may != 0) & 0x11111111u;
    *open = __ballot_sync(VXK_FULL, (may & VXK_ALL_FREE) && !(may & VXK_MAY_HIT));
    *whole = __ballot_sync(VXK_FULL, look.found == 1 && look.whole);
}

/* What a depth frame says about two of a part's voxels, x and x + 2; of: offset of the first. */
static __device__ __forceinline__ void part_says(const struct vxk_frame_args *a, const struct vxk_vec3 *first,
                                                 const float4 *of, bool whole, struct vxk_sighted at[2],
                                                 struct vxk_said v[2])
{
#pragma unroll
    for (uint32_t h = 0; h < 2; h++)
        at[h] = vxk_voxel_sighted(a, first, of[h * 128], whole);
#pragma unroll
    for (uint32_t h = 0; h < 2; h++) {
        v[h] = vxk_pixel_says(&a->f, &at[h].says, at[h].z);
        if (!a->f.carve)
            v[h].near = v[h].free = 0;
    }
}

/* Is an active voxel of value v, which the frame saw through, free beyond doubt now? */
static __device__ __forceinline__ bool is_gone(const struct vxk_frame_args *a, uint32_t v,
                                               const struct vxk_sighted *at)
{
    struct vxk_sample s = vxk_load_sample(a, at->pixel);
    struct vxk_obs o = vxk_obs_depth(&a->f, VXK_OBS_FREE, 0, &s, at->says.front, at->z);
    int gone;
    vxk_merge(&a->f, VXK_ACTIVE, v, &o, &gone);
    return gone;
}

/* What becomes of an active voxel of value v. */
enum { IS_DEAD = 1, IS_GONE = 2 };
static __device__ __forceinline__ uint32_t waned(const struct vxk_frame_args *a,
                                                 const struct vxk_fading *fading, uint32_t v, uint32_t n,
                                                 const struct vxk_said *said, const struct vxk_sighted *at)
{
    int dead;
    v = vxk_faded(a, fading, v, n, said->surface | said->thin | said->near | said->free, &dead);
    return dead ? IS_DEAD : said->free && is_gone(a, v, at) ? IS_GONE : 0;
}

/* The planes with active voxels, and the parts (bit 4 p). */
static __device__ __forceinline__ uint32_t active_planes(uint32_t was, uint32_t lane)
{
    uint32_t m = __ballot_sync(VXK_FULL, lane < 16 && was), planes = 0;
    for (uint32_t x = 0; x < 8; x++)
        planes |= (m >> (2 * x) & 3 ? 1u : 0u) << x;
    return planes;
}
static __device__ __forceinline__ uint32_t active_parts(uint32_t was, uint32_t lane)
{
    uint32_t part = (lane >> 3 & 1) << 2 | (lane & 1) << 1, m = 0;
    if (lane < 16)
        m = (was & vxk_part_bits(0) ? 1u << 4 * part : 0) | (was & vxk_part_bits(1) ? 16u << 4 * part : 0);
    return vxk_warp_or(m);
}

/* A cell of a map that decays or forgets.  Parts that neither fade nor can be concerned are left out; those
 * that the frame surely saw through take no look at their pixels.  A lane has two voxels of a part: four
 * planes of 4 x 4, two of them a ballot. */
static __device__ __forceinline__ void cell_depth(const struct vxk_frame_args *a, uint32_t i,
                                                  const struct task *t, uint32_t lane,
                                                  const struct vxk_offsets *offsets)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_leaf *old = vxk_leaf_no(&a->g, t->old);
    uint32_t was = vxk_lane_masks(old, t->tile, lane), some, open, whole, seen = 0, cleared = 0, moved = 0;
    const uint32_t active = active_parts(was, lane);
    uint32_t says;
    struct wane wane = {};
    const bool stale = t->fading.flags & VXK_WORD_STALE;
    const uint32_t n_lane = (lane >> 4) << 6 | (lane >> 2 & 3) << 3 | (lane & 3);
    struct vxk_vec3 first =
        vxk_to_sensor(f, (float)t->base[0] + 0.5f, (float)t->base[1] + 0.5f, (float)t->base[2] + 0.5f);
    cell_parts(a, t->base, lane, &some, &open, &whole);
    says = some;
    wane.unfree = t->fading.flags & VXK_WORD_UNFREE;
    if (stale) {
        some |= active;
        wane.moved = active_planes(was, lane);
    }
    for (; some; some &= some - 1) {
        uint32_t bit = (uint32_t)(__ffs((int)some) - 1), part = bit >> 2,
                 n_part = (part & 4) << 6 | (part & 2) << 4 | (part & 1) << 2;
        uint32_t band[2], freed[2], value[2] = {0, 0}, gone[2] = {0, 0}, dead[2] = {0, 0}, w;
        const bool mine = vxk_part_in_word(part, lane);
        const bool had = active >> bit & 1;
        const float4 *of = &offsets->of[vxk_offset_slot(n_lane) ^ n_part];
        struct vxk_sighted at[2] = {};
        struct vxk_said v[2] = {};
        if ((open >> bit & 1) && !had) {
            seen |= mine && lane >= 16 ? vxk_part_bits(part) : 0; /* free */
            continue;
        }
        if (stale && had) /* they come while pixels are looked at */
            for (uint32_t h = 0; h < 2; h++) {
                uint32_t n = n_lane | n_part | h << 7;
                if (__shfl_sync(VXK_FULL, was, (int)(n >> 5)) >> (n & 31) & 1)
                    value[h] = old_value(a, old, n);
            }
        if (!(says >> bit & 1))
            ; /* its values fade, no more */
        else if (whole >> bit & 1)
            part_says(a, &first, of, true, at, v);
        else
            part_says(a, &first, of, false, at, v);
#pragma unroll
        for (uint32_t h = 0; h < 2; h++) {
            band[h] = __ballot_sync(VXK_FULL, v[h].surface | v[h].thin);
            freed[h] = __ballot_sync(VXK_FULL, v[h].free);
            if (had) {
                uint32_t n = n_lane | n_part | h << 7, s;
                uint32_t own = __shfl_sync(VXK_FULL, was, (int)(n >> 5)) >> (n & 31) & 1;
                s = __ballot_sync(VXK_FULL, own & (v[h].near | v[h].free));
                moved |= (s & 0xffff ? 1u : 0u) << ((part & 4) + h * 2);
                moved |= (s >> 16 ? 1u : 0u) << ((part & 4) + h * 2 + 1);
                uint32_t end = 0;
                if (own && (stale | v[h].free))
                    end = waned(a, &t->fading, stale ? value[h] : old_value(a, old, n), n, &v[h], &at[h]);
                dead[h] = __ballot_sync(VXK_FULL, end & IS_DEAD);
                gone[h] = __ballot_sync(VXK_FULL, end & IS_GONE);
            }
        }
        /* the lane's plane of the part: band for lanes 0 .. 15, free for the others */
        w = lane < 16 ? (lane & 4 ? band[1] : band[0]) : (lane & 4 ? freed[1] : freed[0]);
        if (mine) {
            uint32_t shift = (lane >> 1 & 1) * 16, to = (part & 1) * 4;
            seen |= vxk_spread_square(w >> shift & 0xffff) << to;
            if (gone[0] | gone[1])
                cleared |= vxk_spread_square((lane & 4 ? gone[1] : gone[0]) >> shift & 0xffff) << to;
            if (dead[0] | dead[1])
                wane.dead |= vxk_spread_square((lane & 4 ? dead[1] : dead[0]) >> shift & 0xffff) << to;
        }
    }
    cell_end(a, i, lane, was, __shfl_sync(VXK_FULL, seen, (int)(lane & 15)),
             __shfl_sync(VXK_FULL, seen, (int)(lane & 15) + 16), cleared, moved, &wane);
}

/* Active voxels of a cell that fade or that beams saw through, four words at a time: their values lie in a
 * row. through: this lane's word; gives this lane's word of those that are free beyond doubt. */
static __device__ __forceinline__ uint32_t fade_words(const struct vxk_frame_args *a, const struct task *t,
                                                      uint32_t lane, uint32_t was, uint32_t band,
                                                      uint32_t through, struct wane *wane)
{
    const struct vxk_leaf *old = vxk_leaf_no(&a->g, t->old);
    const bool stale = t->fading.flags & VXK_WORD_STALE;
    uint32_t j = lane & 15, cleared = 0;
    uint32_t asked = stale ? was : through;
    struct vxk_obs o = vxk_obs_lidar(a, VXK_OBS_FREE, VXK_NONE, 0);
    for (uint32_t w0 = 0; w0 < 16; w0 += 4) {
        uint32_t own[4], value[4];
        if (!__any_sync(VXK_FULL, asked && lane >= w0 && lane < w0 + 4))
            continue;
#pragma unroll
        for (uint32_t h = 0; h < 4; h++) {
            own[h] = __shfl_sync(VXK_FULL, asked, (int)(w0 + h)) >> lane & 1;
            value[h] = own[h] ? old_value(a, old, (w0 + h) << 5 | lane) : 0;
        }
#pragma unroll
        for (uint32_t h = 0; h < 4; h++) {
            const uint32_t w = w0 + h, seen_free = __shfl_sync(VXK_FULL, through, (int)w) >> lane & 1,
                           seen = (__shfl_sync(VXK_FULL, band, (int)w) >> lane & 1) | seen_free;
            int dead = 0, gone = 0;
            uint32_t m;
            if (own[h]) {
                uint32_t v = vxk_faded(a, &t->fading, value[h], w << 5 | lane, seen, &dead);
                if (seen_free && !dead)
                    vxk_merge(&a->f, VXK_ACTIVE, v, &o, &gone);
            }
            m = __ballot_sync(VXK_FULL, dead);
            wane->dead |= j == w ? m : 0;
            m = __ballot_sync(VXK_FULL, gone);
            cleared |= j == w ? m : 0;
        }
    }
    return cleared;
}

/* What is known of a LiDAR frame's cell, a word a lane: masks before the frame, of hits, of beams. */
struct marks {
    uint32_t was, band, freed;
};
static __device__ __forceinline__ struct marks load_marks(const struct vxk_frame_args *a, uint32_t i,
                                                          const struct task *t, uint32_t lane)
{
    const uint32_t j = lane & 15;
    const bool says = a->f.sensor == VXK_SENSOR_LIDAR && !(t->fading.flags & VXK_WORD_QUIET);
    struct marks o;
    o.was = vxk_lane_masks(vxk_leaf_no(&a->g, t->old), t->tile, lane);
    o.band = o.freed = 0;
    if (says && t->hit < a->s.room_touch_leaf)
        o.band = ((const uint32_t *)&a->s.hit_mask[(uint64_t)t->hit * 8])[j];
    if (says && a->f.carve)
        o.freed = ((const uint32_t *)a->s.clear)[(uint64_t)i * 16 + j];
    return o;
}

/* Masks of hits and beams are there already.  Also for cells of a depth frame of which it says nothing. */
template <bool FADES>
static __device__ __forceinline__ void cell_lidar(const struct vxk_frame_args *a, uint32_t i,
                                                  const struct task *t, const struct marks *at, uint32_t lane)
{
    const struct vxk_leaf *old = vxk_leaf_no(&a->g, t->old);
    uint32_t j = lane & 15, was = at->was, was_active = __shfl_sync(VXK_FULL, was, (int)j), band = at->band,
             freed = at->freed & ~band, cleared = 0, through, moved;
    struct wane wane = {};
    through = freed & was_active;
    moved = __ballot_sync(VXK_FULL, through) & 0xffff;
    if (FADES) {
        cleared = fade_words(a, t, lane, was, band, through, &wane);
        wane.unfree = t->fading.flags & VXK_WORD_UNFREE;
        if (t->fading.flags & VXK_WORD_STALE)
            wane.moved = active_planes(was, lane);
    } else if (lane < 16) {
        for (uint32_t m = through; m; m &= m - 1) {
            uint32_t k = vxk_ctz32(m), n = j << 5 | k;
            struct vxk_obs o = vxk_obs_lidar(a, VXK_OBS_FREE, t->hit, n);
            int gone;
            vxk_merge(&a->f, VXK_ACTIVE, old_value(a, old, n), &o, &gone);
            cleared |= (uint32_t)gone << k;
        }
    }
    cleared = __shfl_sync(VXK_FULL, cleared, (int)j);
    /* half planes to planes */
    moved = (moved | moved >> 1) & 0x5555;
    moved = (moved | moved >> 1) & 0x3333;
    moved = (moved | moved >> 2) & 0x0f0f;
    moved = (moved | moved >> 4) & 0x00ff;
    cell_end(a, i, lane, was, band, freed, cleared, moved, &wane);
}

enum { BATCH = 16 };

/* FADES: for maps that decay or forget; depth frames of others have tuned_frame_depth.cu. */
template <bool FADES>
static __global__ void __launch_bounds__(THREADS) cell(const __grid_constant__ struct vxk_frame_cell_args a,
                                                       uint32_t n, const uint32_t *n_dev, uint32_t per)
{
    __shared__ struct vxk_offsets offsets;
    if (FADES && a.f.sensor == VXK_SENSOR_DEPTH)
        vxk_offsets_fill(&offsets, a.f.R);
    vxk_kernel_begin();
    uint32_t end = vxk_launch_end(n, n_dev, per), lane = threadIdx.x & 31, warps = gridDim.x * WARPS,
             batch = vxk_batch(end, warps / 4, BATCH), shares = (end + batch - 1) / batch;
    /* cells with hits lie beside each other: a warp takes them from all over the list */
    for (uint32_t i0 = blockIdx.x * WARPS + threadIdx.x / VXK_WARP; i0 < shares; i0 += warps) {
        uint32_t m = (end - i0 + shares - 1) / shares;
        struct task own = look_up<FADES>(&a, i0 + min(lane, m - 1) * shares), next;
        uint32_t left = __ballot_sync(VXK_FULL, lane < m && (FADES || own.hit != VXK_TASK_DONE));
        struct marks ahead;
        if (!left)
            continue;
        next = task_of<FADES>(&own, vxk_ctz32(left));
        ahead = load_marks(&a, i0 + vxk_ctz32(left) * shares, &next, lane);
        for (; left; left &= left - 1) {
            const uint32_t i = i0 + vxk_ctz32(left) * shares, rest = left & (left - 1);
            const struct task t = next;
            const struct marks marks = ahead;
            if (rest) { /* on its way meanwhile */
                next = task_of<FADES>(&own, vxk_ctz32(rest));
                ahead = load_marks(&a, i0 + vxk_ctz32(rest) * shares, &next, lane);
            }
            if (FADES && a.f.sensor == VXK_SENSOR_DEPTH && !(t.fading.flags & VXK_WORD_QUIET))
                cell_depth(&a, i, &t, lane, &offsets);
            else
                cell_lidar<FADES>(&a, i, &t, &marks, lane);
        }
    }
}
extern "C" cudaError_t vxk_cuda_tuned_frame_cell(const struct vxk_cuda_launch *l)
{
    const struct vxk_frame_cell_args *a = (const struct vxk_frame_cell_args *)l->args;
    if (a->f.sensor == VXK_SENSOR_DEPTH && !a->fade.on)
        return vxk_cuda_cell_depth(l);
    return vxk_launch_tuned(l, a->fade.on ? cell<true> : cell<false>, *a, vxk_blocks_for(l, l->n, WARPS, 16),
                            THREADS);
}
