/* Variants for depth frames of maps that neither decay nor forget: the cells and leaves that a camera sees.
 */
#include "tuned_frame_leaf.cuh"

enum { THREADS = 128, WARPS = THREADS / VXK_WARP };

/* Cells */

/* A cell of the work list, and what the frame may say about one of its eight parts of 4 x 4 x 4 voxels. */
struct task {
    struct vxk_vec3 first; /* its first voxel, sensor coordinates */
    uint32_t old;          /* number of its record before the frame, or VXK_NONE, or WAS_TILE */
    uint32_t may;          /* VXK_MAY_*, IN_VIEW */
};
enum { IN_VIEW = 256 }; /* the part is in view as a whole */
#define WAS_TILE (VXK_NONE - 1)

/* share: lanes that have the part in common, this one is number `of`. */
static __device__ __forceinline__ struct task look_up(const struct vxk_frame_args *a, uint32_t i,
                                                      uint32_t part, uint32_t of, uint32_t share)
{
    const struct vxk_stride by = {(int32_t)(of & 1), (int32_t)(of >> 1), share > 1 ? 2 : 1,
                                  share > 2 ? 2 : 1};
    uint32_t where = a->s.work[i];
    const struct vxk_frame_word *fw = &a->s.word[where >> 6];
    const struct vxk_leaf *old;
    struct task t;
    struct vxk_vec3 q;
    struct vxk_look look;
    int32_t base[3];
    int tile;
    vxk_frame_cell_base(a, fw, where & 63, base);
    old = vxk_frame_old_leaf(a, fw, where & 63, &tile);
    t.old = old ? vxk_leaf_number(a->g.leaves, old) : tile ? WAS_TILE : VXK_NONE;
    t.first = vxk_to_sensor(&a->f, (float)base[0] + 0.5f, (float)base[1] + 0.5f, (float)base[2] + 0.5f);
    q = vxk_to_sensor(&a->f, (float)base[0] + (part & 4 ? 6.0f : 2.0f),
                      (float)base[1] + (part & 2 ? 6.0f : 2.0f), (float)base[2] + (part & 1 ? 6.0f : 2.0f));
    look = vxk_depth_look(&a->f, &a->s, &q, 2.7f, 1.6f, &by);
    for (uint32_t o = 1; o < share; o <<= 1)
        vxk_join_lane(&look.b, (int)o);
    t.may = vxk_look_says(&a->f, &look) | (look.found == 1 && look.whole ? IN_VIEW : 0);
    return t;
}

/* Both masks of a cell before the frame. */
static __device__ __forceinline__ uint32_t masks_before(const struct vxk_frame_args *a, uint32_t old,
                                                        uint32_t lane)
{
    return vxk_lane_masks(old < WAS_TILE ? &a->g.leaves[old] : (const struct vxk_leaf *)0, old == WAS_TILE,
                          lane);
}

/* What is to be done with the parts of a cell, a bit each. */
struct parts {
    uint32_t asked;   /* their voxels ask their pixels */
    uint32_t free;    /* all of it was seen through, and none is active */
    uint32_t in_view; /* as a whole */
};
/* may: of part lane & 7.  Left out are parts that would stay as they are whatever their pixels say. */
static __device__ __forceinline__ struct parts parts_of(uint32_t was, uint32_t may, uint32_t lane)
{
    /* halves of words with and without a voxel; of a part: four words, every other one */
    const uint32_t some_low = __ballot_sync(VXK_FULL, was & 0x0f0f0f0fu),
                   some_high = __ballot_sync(VXK_FULL, was & 0xf0f0f0f0u),
                   less_low = __ballot_sync(VXK_FULL, ~was & 0x0f0f0f0fu),
                   less_high = __ballot_sync(VXK_FULL, ~was & 0xf0f0f0f0u),
                   words = 0x55u << ((lane & 4) * 2 + (lane >> 1 & 1));
    const bool occupied = (lane & 1 ? some_high : some_low) & words,
               all_free = !((lane & 1 ? less_high : less_low) & words << 16),
               free = may & VXK_ALL_FREE && !(may & VXK_MAY_HIT) && !occupied;
    struct parts p;
    p.free = __ballot_sync(VXK_FULL, free) & 255;
    p.asked = __ballot_sync(VXK_FULL,
                            !free && (may & VXK_MAY_HIT || (occupied ? may & ~(uint32_t)IN_VIEW
                                                                     : may & VXK_MAY_FREE && !all_free))) &
              255;
    p.in_view = __ballot_sync(VXK_FULL, may & IN_VIEW) & 255;
    return p;
}

/* What was seen of a cell: a lane's word of voxels in a band (lanes 0 .. 15) or seen through (16 .. 31), and
 * of those in front of one (lanes 0 .. 15). */
struct seen {
    uint32_t masks, before;
};

/* Two parts beside each other along z: four words, a lane a voxel of each.  Where only one of them is asked,
 * the answers of the other change nothing.  to: this lane's word, from the first of the four on. */
template <bool WHOLE>
static __device__ __forceinline__ void ask_pixels(const struct vxk_frame_args *a,
                                                  const struct vxk_vec3 *first, const float4 *of, uint32_t to,
                                                  uint32_t lane, struct seen *seen)
{
    struct vxk_sighted at[4];
    uint32_t masks = 0;
#pragma unroll
    for (uint32_t k = 0; k < 4; k++)
        at[k] = vxk_voxel_sighted(a, first, of[k * 64], WHOLE);
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        struct vxk_said v = vxk_pixel_says(&a->f, &at[k].says, at[k].z);
        uint32_t surface = __ballot_sync(VXK_FULL, v.surface), thin = __ballot_sync(VXK_FULL, v.thin),
                 free = __ballot_sync(VXK_FULL, v.free), before = __ballot_sync(VXK_FULL, v.near | v.free);
        if (to == 2 * k) {
            masks = lane < 16 ? surface | thin : free;
            seen->before = before;
        }
    }
    seen->masks |= masks;
}

/* Of the active voxels that the frame saw through (a lane's word), those that are free beyond doubt now. */
static __device__ __forceinline__ uint32_t gone_voxels(const struct vxk_frame_args *a, const struct task *t,
                                                       const struct vxk_offsets *offsets, uint32_t through,
                                                       uint32_t lane)
{
    const struct vxk_leaf *old = &a->g.leaves[t->old];
    uint32_t cleared = 0;
    for (uint32_t words = __ballot_sync(VXK_FULL, through); words; words &= words - 1) {
        uint32_t w = vxk_ctz32(words), n = w << 5 | lane, gone;
        bool is_gone = false;
        if (__shfl_sync(VXK_FULL, through, (int)w) >> lane & 1) {
            struct vxk_sighted at = vxk_voxel_sighted(a, &t->first, offsets->of[vxk_offset_slot(n)], false);
            struct vxk_sample s = vxk_load_sample(a, at.pixel);
            struct vxk_obs o = vxk_obs_depth(&a->f, VXK_OBS_FREE, 0, &s, at.says.front, at.z);
            int empty;
            vxk_merge(&a->f, VXK_ACTIVE, a->g.values[vxk_leaf_value_index(old, vxk_leaf_rank(old, n))], &o,
                      &empty);
            is_gone = empty;
        }
        gone = __ballot_sync(VXK_FULL, is_gone);
        if (lane == w)
            cleared = gone;
    }
    return cleared;
}

/* New masks from what was seen. */
static __device__ __forceinline__ void cell_end(const struct vxk_frame_args *a, uint32_t i,
                                                const struct task *t, const struct vxk_offsets *offsets,
                                                uint32_t was, const struct seen *seen, uint32_t lane)
{
    uint32_t j = lane & 15, was_active = __shfl_sync(VXK_FULL, was, (int)j),
             was_free = __shfl_sync(VXK_FULL, was, (int)(j + 16)),
             band = __shfl_sync(VXK_FULL, seen->masks, (int)j),
             freed = __shfl_sync(VXK_FULL, seen->masks, (int)(j + 16)), through = freed & was_active,
             cleared = 0, now, changed, n;
    if (__any_sync(VXK_FULL, through))
        cleared = __shfl_sync(VXK_FULL, gone_voxels(a, t, offsets, lane < 16 ? through : 0, lane), (int)j);
    now = lane < 16 ? (was_active | band) & ~cleared : ((was_free | (freed & ~was_active)) & ~band) | cleared;
    changed = __ballot_sync(VXK_FULL, now != was || (lane < 16 && (band | seen->before) & was));
    changed = (changed | changed >> 16) & 0xffff;
    if (lane < 16)
        ((uint32_t *)a->s.active)[(uint64_t)i * 16 + j] = now;
    else
        ((uint32_t *)a->s.free)[(uint64_t)i * 16 + j] = now;
    if (lane < 8)
        a->s.seen[(uint64_t)i * 8 + lane] = changed >> (2 * lane) & 3 ? 1 : 0;
    n = vxk_warp_sum((uint32_t)__popc(now) << (lane < 16 ? 0 : 10));
    if (lane == 0)
        a->s.sum[i] = n | (changed ? 1u : 0u) << 20;
}

static __device__ __forceinline__ void change_cell(const struct vxk_frame_args *a, uint32_t i,
                                                   const struct task *t, const struct vxk_offsets *offsets,
                                                   uint32_t was, uint32_t lane)
{
    const struct parts p = parts_of(was, t->may, lane);
    const uint32_t own =
        (lane >> 1 & 4) | (lane << 1 & 2); /* the first of the two parts in this lane's word */
    struct seen seen = {
        lane < 16 ? 0 : (p.free >> own & 1 ? 0x0f0f0f0fu : 0) | (p.free >> own & 2 ? 0xf0f0f0f0u : 0), 0};
    for (uint32_t m = (p.asked | p.asked >> 1) & 0x55; m; m &= m - 1) {
        const uint32_t part = vxk_ctz32(m), x = part & 4, y = part & 2, to = (lane & 15) - (2 * x + y / 2);
        const float4 *of = &offsets->of[(x << 6 | y << 4) + vxk_offset_slot(lane)];
        if ((p.in_view >> part & 3) == 3)
            ask_pixels<true>(a, &t->first, of, to, lane, &seen);
        else
            ask_pixels<false>(a, &t->first, of, to, lane, &seen);
    }
    if (!a->f.carve) {
        seen.masks = lane < 16 ? seen.masks : 0;
        seen.before = 0;
    }
    cell_end(a, i, t, offsets, was, &seen, lane);
}

/* A warp a cell.  Up to four are looked up at once, a part a lane or more: few cells are shared out among
 * more warps. */
static __global__ void __launch_bounds__(THREADS, 8)
    cell(const __grid_constant__ struct vxk_frame_cell_args a, uint32_t n, const uint32_t *n_dev,
         uint32_t per)
{
    __shared__ struct vxk_offsets offsets;
    if (a.f.sensor != VXK_SENSOR_DEPTH)
        return;
    vxk_offsets_fill(&offsets, a.f.R);
    vxk_kernel_begin();
    uint32_t end = vxk_launch_end(n, n_dev, per), lane = threadIdx.x & 31, warps = gridDim.x * WARPS,
             batch = end >= 4 * warps   ? 4
                     : end >= 2 * warps ? 2
                                        : 1,
             share = 4 / batch;
    for (uint32_t i0 = (blockIdx.x * WARPS + threadIdx.x / VXK_WARP) * batch; i0 < end; i0 += warps * batch) {
        uint32_t m = min(batch, end - i0);
        const struct task own =
            look_up(&a, i0 + min(lane / (8 * share), m - 1), lane / share & 7, lane & (share - 1), share);
        uint32_t next = masks_before(&a, __shfl_sync(VXK_FULL, own.old, 0), lane);
        for (uint32_t k = 0; k < m; k++) {
            const uint32_t was = next;
            const int from = (int)(k * 8 * share);
            struct task t;
            t.first.x = __shfl_sync(VXK_FULL, own.first.x, from);
            t.first.y = __shfl_sync(VXK_FULL, own.first.y, from);
            t.first.z = __shfl_sync(VXK_FULL, own.first.z, from);
            t.old = __shfl_sync(VXK_FULL, own.old, from);
            t.may = __shfl_sync(VXK_FULL, own.may, from + (int)((lane & 7) * share));
            if (k + 1 < m)
                next = masks_before(&a, __shfl_sync(VXK_FULL, own.old, from + (int)(8 * share)), lane);
            change_cell(&a, i0 + k, &t, &offsets, was, lane);
        }
    }
}
cudaError_t vxk_cuda_cell_depth(const struct vxk_cuda_launch *l)
{
    return vxk_launch_tuned(l, cell, *(const struct vxk_frame_cell_args *)l->args,
                            vxk_blocks_for(l, l->n, WARPS, 16), THREADS);
}

/* Leaves */

/* A record to be written. */
struct record {
    uint32_t leaf;         /* its number */
    uint32_t old;          /* of the one before the frame, or VXK_NONE */
    uint32_t work;         /* place in the work list, or VXK_NONE */
    uint32_t how;          /* place of the first value on its page, IS_* */
    uint32_t page[3];      /* value pages */
    struct vxk_vec3 first; /* its first voxel, sensor coordinates */
};
enum { IS_TILE = 256, IS_UPDATED = 512, IS_WHOLE = 1024 };

static __device__ __forceinline__ struct record look_up_record(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t where = a->s.record[i], cell = where & 63, first = a->s.value_of[where], n, sum = 0;
    const struct vxk_frame_word *fw = &a->s.word[where >> 6];
    struct record r;
    int tile;
    const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, cell, &tile);
    r.work = a->s.code[where] == VXK_CELL_WORK ? a->s.work_of[where] : VXK_NONE;
    if (r.work != VXK_NONE)
        sum = a->s.sum[r.work];
    n = r.work != VXK_NONE ? sum & 1023 : old->n_active;
    r.leaf = vxk_leaf_number(a->leaves, vxk_new_leaf(a, fw, cell));
    r.old = vxk_leaf_number(a->g.leaves, old);
    r.how = (first & 255) | (tile ? IS_TILE : 0) | (sum >> 20 ? IS_UPDATED : 0);
    for (uint32_t k = 0; k < 3; k++)
        r.page[k] = vxk_new_value_page(a, fw, first, n, k);
    if (leaf_in_view(a, fw, cell, &r.first))
        r.how |= IS_WHOLE;
    return r;
}

/* The record of one lane, for all. */
static __device__ __forceinline__ struct record record_of(const struct record *own, uint32_t lane)
{
    struct record r;
    r.leaf = __shfl_sync(VXK_FULL, own->leaf, (int)lane);
    r.old = __shfl_sync(VXK_FULL, own->old, (int)lane);
    r.work = __shfl_sync(VXK_FULL, own->work, (int)lane);
    r.how = __shfl_sync(VXK_FULL, own->how, (int)lane);
    for (int k = 0; k < 3; k++)
        r.page[k] = __shfl_sync(VXK_FULL, own->page[k], (int)lane);
    r.first.x = __shfl_sync(VXK_FULL, own->first.x, (int)lane);
    r.first.y = __shfl_sync(VXK_FULL, own->first.y, (int)lane);
    r.first.z = __shfl_sync(VXK_FULL, own->first.z, (int)lane);
    return r;
}

/* A voxel with a value, and all that its new value hangs on. */
struct reading {
    struct vxk_sighted at;
    struct vxk_sample sample;
    uint32_t value; /* before the frame */
    int state;
};

/* Reads for the k-th voxel of a leaf; SAME: it had the same active voxels before the frame.  WHOLE: it is in
 * view as a whole. */
template <bool SAME, bool WHOLE>
static __device__ __forceinline__ struct reading
read_voxel(const struct vxk_frame_args *a, const struct vxk_offsets *offsets, const struct vxk_vec3 *first,
           const struct lane_leaf *old, const uint16_t *list, uint32_t k)
{
    struct reading r;
    const uint32_t n = list[k];
    if (SAME) {
        r.state = VXK_ACTIVE;
        r.value = a->g.values[value_index(old, k)];
    } else {
        r.state = old_state(a, old, n, true, &r.value);
    }
    r.at = vxk_voxel_sighted(a, first, offsets->of[vxk_offset_slot(n)], WHOLE);
    r.sample = vxk_load_sample(a, r.at.pixel);
    return r;
}

/* TSDF: the map is one; else it keeps occupancy. */
template <bool TSDF>
static __device__ __forceinline__ uint32_t new_value(const struct vxk_frame_args *a, const struct reading *r)
{
    struct vxk_said s = vxk_pixel_says(&a->f, &r->at.says, r->at.z);
    struct vxk_obs obs;
    uint32_t v;
    int gone;
    if (!a->f.carve)
        s.near = s.free = 0;
    obs = vxk_obs_depth(&a->f, vxk_what(s.surface | s.thin, s.near, s.free), s.thin, &r->sample,
                        r->at.says.front, r->at.z);
    v = TSDF ? vxk_tsdf_observe(r->state == VXK_ACTIVE ? r->value : 0, &obs)
             : vxk_merge(&a->f, r->state, r->value, &obs, &gone);
    return s.surface | s.thin | ((r->state == VXK_ACTIVE) & (s.near | s.free)) ? v : r->value;
}

/* The values of a leaf that the frame says something about, 64 at a time; spare lanes repeat the last one. */
template <bool TSDF, bool SAME, bool WHOLE>
static __device__ __forceinline__ void
update_values(const struct vxk_frame_args *a, const struct vxk_offsets *offsets, const struct vxk_vec3 *first,
              const struct lane_leaf *now, const struct lane_leaf *old, const uint16_t *list, uint32_t lane)
{
    uint32_t k0 = 0;
    for (; k0 + VXK_WARP < now->n; k0 += 2 * VXK_WARP) {
        uint32_t k1 = k0 + lane, k2 = min(k1 + VXK_WARP, now->n - 1);
        struct reading r1 = read_voxel<SAME, WHOLE>(a, offsets, first, old, list, k1),
                       r2 = read_voxel<SAME, WHOLE>(a, offsets, first, old, list, k2);
        a->values[value_index(now, k1)] = new_value<TSDF>(a, &r1);
        a->values[value_index(now, k2)] = new_value<TSDF>(a, &r2);
    }
    if (k0 < now->n) {
        uint32_t k = min(k0 + lane, now->n - 1);
        struct reading r = read_voxel<SAME, WHOLE>(a, offsets, first, old, list, k);
        a->values[value_index(now, k)] = new_value<TSDF>(a, &r);
    }
}

/* What is read of a leaf while the one before it is written: this lane's words of its masks before the frame
 * and now, and of what else its old record holds. */
struct ahead {
    uint32_t was, now, tail;
};
static __device__ __forceinline__ struct ahead
read_ahead(const struct vxk_frame_args *a, const struct record *own, uint32_t from, uint32_t lane)
{
    const uint32_t old = __shfl_sync(VXK_FULL, own->old, (int)from),
                   work = __shfl_sync(VXK_FULL, own->work, (int)from),
                   how = __shfl_sync(VXK_FULL, own->how, (int)from);
    const struct vxk_leaf *l = vxk_leaf_no(&a->g, old);
    struct ahead o;
    o.was = o.now = vxk_lane_masks(l, how & IS_TILE, lane);
    o.tail = l && lane < 6 ? ((const uint32_t *)l)[32 + lane] : VXK_NONE;
    if (work != VXK_NONE)
        o.now = ((const uint32_t *)(lane < 16 ? a->s.active : a->s.free))[(uint64_t)work * 16 + (lane & 15)];
    return o;
}

template <bool TSDF>
static __device__ __forceinline__ void write_leaf(const struct vxk_frame_args *a,
                                                  const struct vxk_offsets *offsets, const struct record *r,
                                                  const struct ahead *with, uint16_t *list, uint32_t lane)
{
    const bool same = !__any_sync(VXK_FULL, lane < 16 && with->now != with->was);
    struct lane_leaf old, now;
    uint32_t n_old;
    now.masks = with->now;
    now.ranks = vxk_lane_ranks(now.masks, lane, &now.n);
    now.first = r->how & 255;
    for (int k = 0; k < 3; k++)
        now.page[k] = r->page[k];
    store_leaf(&now, &a->leaves[r->leaf], lane);
    if (!now.n)
        return;
    old.masks = with->was;
    old.ranks = same ? now.ranks : vxk_lane_ranks(old.masks, lane, &n_old);
    old.first = __shfl_sync(VXK_FULL, with->tail, 5) & 0xffff;
    for (int k = 0; k < 3; k++)
        old.page[k] = __shfl_sync(VXK_FULL, with->tail, 2 + k);
    if (!(r->how & IS_UPDATED)) {
        copy_values(a->values, a->g.values, &now, &old, lane);
        return;
    }
    list_voxels(&now, list, lane);
    if (!(r->how & IS_WHOLE))
        update_values<TSDF, false, false>(a, offsets, &r->first, &now, &old, list, lane);
    else if (same)
        update_values<TSDF, true, true>(a, offsets, &r->first, &now, &old, list, lane);
    else
        update_values<TSDF, false, true>(a, offsets, &r->first, &now, &old, list, lane);
    __syncwarp();
}

enum { BATCH = 8 };

template <bool TSDF>
static __global__ void __launch_bounds__(THREADS, 8)
    leaf(const __grid_constant__ struct vxk_frame_leaf_args a, uint32_t n, const uint32_t *n_dev,
         uint32_t per)
{
    __shared__ uint16_t lists[WARPS][512];
    __shared__ struct vxk_offsets offsets;
    if (a.f.sensor != VXK_SENSOR_DEPTH)
        return;
    vxk_offsets_fill(&offsets, a.f.R);
    vxk_kernel_begin();
    uint32_t end = vxk_launch_end(n, n_dev, per), lane = threadIdx.x & 31, warp = threadIdx.x / VXK_WARP,
             warps = gridDim.x * WARPS, batch = min((end + 2 * warps - 1) / (2 * warps), (uint32_t)BATCH);
    for (uint32_t i0 = (blockIdx.x * WARPS + warp) * batch; i0 < end; i0 += warps * batch) {
        const uint32_t m = min(batch, end - i0);
        const struct record own = look_up_record(&a, i0 + min(lane, m - 1));
        struct ahead next = read_ahead(&a, &own, 0, lane);
        for (uint32_t k = 0; k < m; k++) {
            const struct record r = record_of(&own, k);
            const struct ahead with = next;
            if (k + 1 < m)
                next = read_ahead(&a, &own, k + 1, lane);
            write_leaf<TSDF>(&a, &offsets, &r, &with, lists[warp], lane);
        }
    }
}
cudaError_t vxk_cuda_leaf_depth(const struct vxk_cuda_launch *l)
{
    const struct vxk_frame_leaf_args *a = (const struct vxk_frame_leaf_args *)l->args;
    return vxk_launch_tuned(l, a->f.mode == 0 ? leaf<true> : leaf<false>, *a,
                            vxk_blocks_for(l, l->n, WARPS, 16), THREADS);
}
