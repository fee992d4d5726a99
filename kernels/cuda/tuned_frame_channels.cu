/* Variant for colour and labels: a warp a leaf. */
#include "tuned_frame_leaf.cuh"

enum { THREADS = 128, LEAVES = THREADS / VXK_WARP, BATCH = 8 };

/* A record whose channels are to be written. */
struct task {
    uint32_t leaf;         /* its number */
    uint32_t old;          /* of the one before the frame, or VXK_NONE */
    uint32_t work;         /* place in the work list; VXK_NONE: nothing changed */
    uint32_t hit;          /* LiDAR: touched leaf or VXK_NONE */
    uint32_t whole;        /* depth: all of it is in view */
    uint32_t salt[2];      /* of its voxels' dice, low and high half */
    struct vxk_vec3 first; /* depth: its first voxel, sensor coordinates */
    struct vxk_fading fading;
};

static __device__ __forceinline__ struct task look_up(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t where = a->s.record[i], cell = where & 63;
    const struct vxk_frame_word *fw = &a->s.word[where >> 6];
    uint64_t salt = vxk_channels_salt(a, fw, cell);
    struct task t = {};
    int tile;
    t.leaf = vxk_leaf_number(a->leaves, vxk_new_leaf(a, fw, cell));
    t.old = vxk_leaf_number(a->g.leaves, vxk_frame_old_leaf(a, fw, cell, &tile));
    t.work = a->s.code[where] == VXK_CELL_WORK ? a->s.work_of[where] : VXK_NONE;
    if (t.work != VXK_NONE && !(a->s.sum[t.work] >> 20))
        t.work = VXK_NONE;
    t.salt[0] = (uint32_t)salt;
    t.salt[1] = (uint32_t)(salt >> 32);
    t.hit = VXK_NONE;
    if (a->f.sensor == VXK_SENSOR_LIDAR)
        t.hit = vxk_touched_leaf(&a->s, a->s.chunk[fw->chunk >> 6].slot, fw->chunk & 63, cell);
    else
        t.whole = leaf_in_view(a, fw, cell, &t.first);
    t.fading = vxk_fading_of(a, fw, cell);
    return t;
}

/* The task of one lane, for all. */
template <bool FADES>
static __device__ __forceinline__ struct task task_of(const struct task *own, uint32_t lane)
{
    struct task t = {};
    t.leaf = __shfl_sync(VXK_FULL, own->leaf, (int)lane);
    t.old = __shfl_sync(VXK_FULL, own->old, (int)lane);
    t.work = __shfl_sync(VXK_FULL, own->work, (int)lane);
    t.hit = __shfl_sync(VXK_FULL, own->hit, (int)lane);
    t.whole = __shfl_sync(VXK_FULL, own->whole, (int)lane);
    t.salt[0] = __shfl_sync(VXK_FULL, own->salt[0], (int)lane);
    t.salt[1] = __shfl_sync(VXK_FULL, own->salt[1], (int)lane);
    t.first.x = __shfl_sync(VXK_FULL, own->first.x, (int)lane);
    t.first.y = __shfl_sync(VXK_FULL, own->first.y, (int)lane);
    t.first.z = __shfl_sync(VXK_FULL, own->first.z, (int)lane);
    if (FADES)
        t.fading = vxk_lane_fading(&own->fading, lane);
    return t;
}

/* What a LiDAR frame marked in a leaf: this lane's words. */
struct marks {
    uint32_t band, band_before, free; /* voxels hit, accumulators before them, voxels that beams cleared */
};

static __device__ __forceinline__ struct marks load_marks(const struct vxk_frame_args *a,
                                                          const struct task *t, uint32_t lane)
{
    struct marks m = {};
    uint32_t n;
    if (t->hit < a->s.room_touch_leaf)
        m.band = ((const uint32_t *)&a->s.hit_mask[(uint64_t)t->hit * 8])[lane & 15];
    if (a->f.carve)
        m.free = ((const uint32_t *)a->s.clear)[(uint64_t)t->work * 16 + (lane & 15)];
    m.band_before = vxk_lane_ranks(m.band, lane, &n);
    return m;
}

/* What a frame says about a voxel. */
struct sight {
    uint32_t reading, weight; /* whose colour and label it takes, VXK_NONE: none */
    bool observed;
};
/* brings: the frame has any. */

static __device__ __forceinline__ struct sight
sight_depth(const struct vxk_frame_args *a, const struct task *t, bool brings, const float4 offset)
{
    struct sight o = {VXK_NONE, 1, false};
    struct vxk_sighted at = t->whole ? vxk_voxel_sighted(a, &t->first, offset, true)
                                     : vxk_voxel_sighted(a, &t->first, offset, false);
    struct vxk_said s = vxk_pixel_says(&a->f, &at.says, at.z);
    o.observed = s.surface | s.thin | ((s.near | s.free) & (a->f.carve != 0));
    if (brings & s.surface & !s.thin) {
        o.reading = vxk_pixel_reading(a, at.pixel);
        o.weight = vxk_pixel_weight(vxk_load_sample(a, at.pixel).weight);
    }
    return o;
}

/* Called by the whole warp, n is the lane's. */
static __device__ __forceinline__ struct sight sight_lidar(const struct vxk_frame_args *a,
                                                           const struct task *t, bool brings,
                                                           const struct marks *m, uint32_t n)
{
    uint32_t w = n >> 5, bit = n & 31, band = __shfl_sync(VXK_FULL, m->band, (int)w),
             before = __shfl_sync(VXK_FULL, m->band_before, (int)w),
             freed = __shfl_sync(VXK_FULL, m->free, (int)w);
    struct sight o = {VXK_NONE, 1, false};
    o.observed = (band | freed) >> bit & 1;
    if (brings && band >> bit & 1) {
        uint32_t place = a->s.hit_base[t->hit] + before + (uint32_t)__popc(band & ((1u << bit) - 1));
        o.reading = vxk_owner_reading(a, place < a->s.room_hit ? place : VXK_NONE);
    }
    return o;
}

/* The channels of a leaf in which something changed, 64 voxels at a time. */
template <bool FADES>
static __device__ __forceinline__ void
update(const struct vxk_frame_args *a, const struct vxk_offsets *offsets, const struct task *t,
       const struct lane_leaf *now, const struct lane_leaf *old, const uint16_t *list, uint32_t lane)
{
    const uint2 seen = *(const uint2 *)&a->s.seen[(uint64_t)t->work * 8];
    const uint64_t salt = (uint64_t)t->salt[1] << 32 | t->salt[0];
    const bool depth = a->f.sensor == VXK_SENSOR_DEPTH, stale = FADES && t->fading.flags & VXK_WORD_STALE,
               brings = vxk_brings_channels(&a->channels),
               looks = (brings || stale) && !(FADES && t->fading.flags & VXK_WORD_QUIET);
    struct marks marks = {};
    if (looks && !depth)
        marks = load_marks(a, t, lane);
    for (uint32_t k0 = lane; k0 < now->n + lane; k0 += 2 * VXK_WARP) {
        uint32_t n[2], value[2] = {0, 0};
        struct vxk_channel_values v[2] = {};
        struct sight sight[2] = {{VXK_NONE, 1, false}, {VXK_NONE, 1, false}};
        bool had[2];
#pragma unroll
        for (uint32_t h = 0; h < 2; h++) {
            uint32_t k = k0 + h * VXK_WARP;
            struct lane_old was;
            uint64_t from;
            n[h] = k < now->n ? list[k] : 0;
            was = old_voxel(old, n[h]);
            had[h] = k < now->n && was.active;
            from = value_index(old, was.rank);
            if (had[h] && a->colours)
                v[h].colour = a->g.colours[from];
            if (had[h] && a->labels)
                v[h].label = a->g.labels[from];
            if (had[h] && stale)
                value[h] = a->g.values[from];
        }
#pragma unroll
        for (uint32_t h = 0; h < 2; h++)
            if (looks && depth)
                sight[h] = sight_depth(a, t, brings, offsets->of[vxk_offset_slot(n[h])]);
            else if (looks)
                sight[h] = sight_lidar(a, t, brings, &marks, n[h]);
#pragma unroll
        for (uint32_t h = 0; h < 2; h++) {
            uint32_t k = k0 + h * VXK_WARP;
            uint64_t to;
            if (k >= now->n)
                continue;
            if (plane_seen(seen, n[h])) {
                struct vxk_tint tint = vxk_tint_of(a, sight[h].reading, sight[h].weight);
                int dead = 0;
                if (stale && had[h]) /* it may have faded away and be back by this frame */
                    vxk_faded(a, &t->fading, value[h], n[h], sight[h].observed, &dead);
                if (dead)
                    v[h].colour = v[h].label = 0;
                vxk_tint_merge(&v[h], &tint, salt + n[h]);
            }
            to = value_index(now, k);
            if (a->colours)
                a->colours[to] = v[h].colour;
            if (a->labels)
                a->labels[to] = (uint16_t)v[h].label;
        }
    }
}

template <bool FADES>
static __device__ __forceinline__ void write_channels(const struct vxk_frame_args *a,
                                                      const struct vxk_offsets *offsets, const struct task *t,
                                                      uint16_t *list, uint32_t lane)
{
    struct lane_leaf now = load_leaf(&a->leaves[t->leaf], 0, lane),
                     old = load_leaf(vxk_leaf_no(&a->g, t->old), 0, lane);
    if (!now.n)
        return;
    if (t->work == VXK_NONE) {
        if (a->colours)
            copy_values(a->colours, a->g.colours, &now, &old, lane);
        if (a->labels)
            copy_values(a->labels, a->g.labels, &now, &old, lane);
        return;
    }
    list_voxels(&now, list, lane);
    update<FADES>(a, offsets, t, &now, &old, list, lane);
    __syncwarp();
}

/* FADES: for maps that decay or forget. */
template <bool FADES>
static __global__ void __launch_bounds__(THREADS)
    channels(const __grid_constant__ struct vxk_frame_channels_args a, uint32_t n, const uint32_t *n_dev,
             uint32_t per)
{
    __shared__ uint16_t lists[LEAVES][512];
    __shared__ struct vxk_offsets offsets;
    if (a.f.sensor == VXK_SENSOR_DEPTH)
        vxk_offsets_fill(&offsets, a.f.R);
    vxk_kernel_begin();
    uint32_t end = vxk_launch_end(n, n_dev, per) / 8, lane = threadIdx.x & 31, warp = threadIdx.x / VXK_WARP,
             warps = gridDim.x * LEAVES, batch = vxk_batch(end, warps, BATCH);
    for (uint32_t i0 = (blockIdx.x * LEAVES + warp) * batch; i0 < end; i0 += warps * batch) {
        uint32_t m = min(batch, end - i0);
        struct task own = look_up(&a, i0 + min(lane, m - 1));
        for (uint32_t k = 0; k < m; k++) {
            struct task t = task_of<FADES>(&own, k);
            write_channels<FADES>(&a, &offsets, &t, lists[warp], lane);
        }
    }
}
VXK_TUNED_LAUNCH(frame_channels, a->fade.on ? channels<true> : channels<false>, THREADS, LEAVES * 8, 16)
