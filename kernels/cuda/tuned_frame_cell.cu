/* Variants for the cells that a frame may change: a warp a cell. */
#include "tuned_frame.cuh"

enum { THREADS = 128, WARPS = THREADS / VXK_WARP };

/* New masks from what was seen; band and freed: this lane's word of each, cleared: active voxels that are
 * free beyond doubt; moved: planes with an active voxel that the frame says something about. */
static __device__ __forceinline__ void cell_end(const struct vxk_frame_args *a, uint32_t i, uint32_t lane,
                                                uint32_t was, uint32_t band, uint32_t freed, uint32_t cleared,
                                                uint32_t moved)
{
    uint32_t j = lane & 15, was_active = __shfl_sync(VXK_FULL, was, (int)j),
             was_free = __shfl_sync(VXK_FULL, was, (int)(j + 16)), active, free_now, m, n_active, n_free;
    active = (was_active | band) & ~cleared;
    free_now = ((was_free | (freed & ~was_active)) & ~band) | cleared;
    m = __ballot_sync(VXK_FULL, active != was_active || free_now != was_free || (band & was_active)) & 0xffff;
    if (lane < 16)
        ((uint32_t *)a->s.active)[(uint64_t)i * 16 + j] = active;
    else
        ((uint32_t *)a->s.free)[(uint64_t)i * 16 + j] = free_now;
    if (lane < 8)
        a->s.seen[(uint64_t)i * 8 + lane] = (uint8_t)((m >> (2 * lane) & 3) || (moved >> lane & 1) ? 1 : 0);
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

/* Eight parts of 4 x 4 x 4 voxels; those that the frame can't say anything about are left out, those that it
 * surely saw through take no look at their pixels. */
static __device__ __forceinline__ void cell_depth(const struct vxk_frame_args *a, uint32_t i, uint32_t lane)
{
    const struct vxk_frame *f = &a->f;
    uint32_t where = a->s.work[i], cell = where & 63, was, some, open, band = 0, freed = 0, cleared = 0,
             moved = 0;
    const struct vxk_frame_word *fw = &a->s.word[where >> 6];
    struct vxk_view view = vxk_view_cell(a, fw, cell, i);
    int tile;
    const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, cell, &tile);
    uint32_t may = 0;
    was = vxk_lane_masks(old, tile, lane);
    if (lane < 8) {
        int32_t base[3];
        struct vxk_vec3 q;
        vxk_frame_cell_base(a, fw, cell, base);
        q = vxk_to_sensor(f, (float)base[0] + (lane & 4 ? 6.0f : 2.0f),
                          (float)base[1] + (lane & 2 ? 6.0f : 2.0f),
                          (float)base[2] + (lane & 1 ? 6.0f : 2.0f));
        may = vxk_frame_may(f, &a->s, &q, 2.7f);
    }
    some = __ballot_sync(VXK_FULL, may != 0);
    open = __ballot_sync(VXK_FULL, (may & VXK_ALL_FREE) && !(may & VXK_MAY_HIT));
    for (; some; some &= some - 1) {
        uint32_t part = (uint32_t)(__ffs((int)some) - 1);
        bool mine = vxk_part_in_word(part, lane);
        bool had = __any_sync(VXK_FULL, mine && lane < 16 && (was & vxk_part_bits(part)));
        if ((open >> part & 1) && !had) {
            if (mine)
                freed |= vxk_part_bits(part);
            continue;
        }
        for (uint32_t half = 0; half < 2; half++) {
            /* two planes of 4 x 4 voxels */
            uint32_t x = (part & 4) + half * 2 + (lane >> 4), y = (part >> 1 & 1) * 4 + (lane >> 2 & 3),
                     z = (part & 1) * 4 + (lane & 3), n = x << 6 | y << 3 | z;
            struct vxk_vec3 p = vxk_voxel_at(f->R, &view.first, x, y, z);
            struct vxk_said v = vxk_depth_says(a, &p);
            uint32_t own = __shfl_sync(VXK_FULL, was, (int)(n >> 5)) >> (n & 31) & 1, gone = 0, b, fr, c, s;
            if (!f->carve)
                v.near = v.free = 0;
            if (v.free & own) {
                struct vxk_obs o = vxk_obs_depth(f, VXK_OBS_FREE, v.d, v.sdf, v.g);
                int is_gone;
                vxk_merge(f, VXK_ACTIVE, old_value(a, old, n), &o, &is_gone);
                gone = (uint32_t)is_gone;
            }
            b = __ballot_sync(VXK_FULL, v.band);
            fr = __ballot_sync(VXK_FULL, v.free);
            c = __ballot_sync(VXK_FULL, gone);
            s = had ? __ballot_sync(VXK_FULL, own & (v.near | v.free)) : 0;
            moved |= (s & 0xffff ? 1u : 0u) << ((part & 4) + half * 2);
            moved |= (s >> 16 ? 1u : 0u) << ((part & 4) + half * 2 + 1);
            if (mine && (lane >> 2 & 1) == half) {
                uint32_t shift = (lane >> 1 & 1) * 16, to = (part & 1) * 4;
                band |= vxk_spread_square(b >> shift & 0xffff) << to;
                freed |= vxk_spread_square(fr >> shift & 0xffff) << to;
                if (c)
                    cleared |= vxk_spread_square(c >> shift & 0xffff) << to;
            }
        }
    }
    cell_end(a, i, lane, was, band, freed, cleared, moved);
}

/* Masks of hits and beams are there already. */
static __device__ __forceinline__ void cell_lidar(const struct vxk_frame_args *a, uint32_t i, uint32_t lane)
{
    uint32_t where = a->s.work[i], cell = where & 63, j = lane & 15, was, was_active, band = 0, freed = 0,
             cleared = 0, through, moved;
    const struct vxk_frame_word *fw = &a->s.word[where >> 6];
    struct vxk_view view = vxk_view_cell(a, fw, cell, i);
    int tile;
    const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, cell, &tile);
    was = vxk_lane_masks(old, tile, lane);
    was_active = __shfl_sync(VXK_FULL, was, (int)j);
    if (view.hit < a->s.room_touch_leaf)
        band = ((const uint32_t *)&a->s.hit_mask[(uint64_t)view.hit * 8])[j];
    if (view.clear)
        freed = ((const uint32_t *)view.clear)[j] & ~band;
    through = freed & was_active;
    moved = __ballot_sync(VXK_FULL, through) & 0xffff;
    if (lane < 16)
        for (uint32_t m = through; m; m &= m - 1) {
            uint32_t k = vxk_ctz32(m), n = j << 5 | k;
            struct vxk_obs o = vxk_obs_lidar(a, VXK_OBS_FREE, view.hit, n);
            int gone;
            vxk_merge(&a->f, VXK_ACTIVE, old_value(a, old, n), &o, &gone);
            cleared |= (uint32_t)gone << k;
        }
    cleared = __shfl_sync(VXK_FULL, cleared, (int)j);
    moved = (moved | moved >> 1) & 0x5555;
    moved = (moved | moved >> 1) & 0x3333;
    moved = (moved | moved >> 2) & 0x0f0f;
    moved = (moved | moved >> 4) & 0x00ff;
    cell_end(a, i, lane, was, band, freed, cleared, moved);
}

static __global__ void __launch_bounds__(THREADS) cell(const __grid_constant__ struct vxk_frame_cell_args a,
                                                       uint32_t n, const uint32_t *n_dev, uint32_t per)
{
    uint32_t end = vxk_launch_end(n, n_dev, per), lane = threadIdx.x & 31;
    for (uint32_t i = blockIdx.x * WARPS + threadIdx.x / VXK_WARP; i < end; i += gridDim.x * WARPS) {
        if (a.f.sensor == VXK_SENSOR_DEPTH)
            cell_depth(&a, i, lane);
        else
            cell_lidar(&a, i, lane);
    }
}
VXK_TUNED_LAUNCH(frame_cell, cell, THREADS, WARPS, 16)

/* Beams that can meet a cell, one a lane, are listed; then a lane takes a slice of one of them. */
static __device__ __forceinline__ void beams_few(const struct vxk_frame_args *a,
                                                 const struct vxk_sight *sight, const int32_t rect[4],
                                                 uint32_t lane, uint32_t *list, uint32_t *clear)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_frame_space *s = &a->s;
    int32_t columns = rect[3] - rect[2] + 1, bins = (rect[1] - rect[0] + 1) * columns;
    uint32_t found = 0;
    for (int32_t k0 = 0; k0 < bins; k0 += VXK_WARP) {
        int32_t k = k0 + (int32_t)lane, row = k / columns,
                c = vxk_turned_column(f, rect[2] + k - row * columns), bin = (rect[0] + row) * f->width + c;
        bool meets = false;
        uint32_t at = 0, m;
        if (k < bins && c >= 0 && s->depth[bin] > 0.0f) {
            struct vxk_pass pass;
            struct vxk_ray ray;
            float corner[3];
            at = vxk_bin_ray(f, s, bin);
            ray = vxk_load_ray(&s->ray[at]);
            vxk_ray_corner(s, at, sight->corner, corner);
            if (vxk_beam_meets(f, &ray, corner, &pass)) {
                meets = true;
                at |= (uint32_t)pass.m << 30;
            }
        }
        m = __ballot_sync(VXK_FULL, meets);
        if (meets)
            list[found + (uint32_t)__popc(m & ((1u << lane) - 1))] = at;
        found += (uint32_t)__popc(m);
    }
    __syncwarp();
    for (uint32_t k = lane; k < found * 8; k += VXK_WARP) {
        uint32_t at = list[k >> 3] & 0x3fffffffu, n[4], hits;
        struct vxk_ray ray = vxk_load_ray(&s->ray[at]);
        struct vxk_pass pass;
        float corner[3];
        pass.m = (int)(list[k >> 3] >> 30);
        pass.p = pass.m == 0 ? 1 : 0;
        pass.q = pass.m == 2 ? 1 : 2;
        vxk_ray_corner(s, at, sight->corner, corner);
        hits = vxk_beam_slice(f, &ray, corner, &pass, (int)(k & 7), n);
#pragma unroll
        for (int c = 0; c < 4; c++)
            if (hits >> c & 1)
                atomicOr(&clear[n[c] >> 5], 1u << (n[c] & 31));
    }
    __syncwarp();
}

/* Many beams: every voxel asks its bin.  Gives the lane's word of the mask (lane < 16). */
static __device__ __forceinline__ uint32_t beams_many(const struct vxk_frame_args *a,
                                                      const struct vxk_sight *sight, uint32_t lane)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_frame_space *s = &a->s;
    uint32_t word = 0;
    for (uint32_t j = 0; j < 16; j++) {
        uint32_t n = j << 5 | lane, x = n >> 6, y = n >> 3 & 7, z = n & 7, m;
        struct vxk_vec3 p = vxk_voxel_at(sight->R, &sight->first, x, y, z);
        int32_t bin = vxk_lidar_bin(f, s, p.x, p.y, p.z);
        bool clears = false;
        if (vxk_bin_may_clear(f, bin, s->depth[vxk_maxi(bin, 0)],
                              vxk_sqrt(p.x * p.x + p.y * p.y + p.z * p.z))) {
            uint32_t at = vxk_bin_ray(f, s, bin);
            struct vxk_ray ray = vxk_load_ray(&s->ray[at]);
            float corner[3], w[3];
            w[0] = sight->corner[0] + (float)x;
            w[1] = sight->corner[1] + (float)y;
            w[2] = sight->corner[2] + (float)z;
            vxk_ray_corner(s, at, w, corner);
            clears = vxk_line_clears(f, &ray, corner);
        }
        m = __ballot_sync(VXK_FULL, clears);
        word = lane == j ? m : word;
    }
    return word;
}

static __global__ void __launch_bounds__(THREADS) beams(const __grid_constant__ struct vxk_frame_beams_args a,
                                                        uint32_t n, const uint32_t *n_dev, uint32_t per)
{
    __shared__ uint32_t lists[WARPS][VXK_FEW_BEAMS], clears[WARPS][16];
    uint32_t end = vxk_launch_end(n, n_dev, per), lane = threadIdx.x & 31, warp = threadIdx.x / VXK_WARP;
    uint32_t *clear = clears[warp];
    for (uint32_t i = blockIdx.x * WARPS + warp; i < end; i += gridDim.x * WARPS) {
        uint32_t where = a.s.work[i], word;
        struct vxk_sight sight = vxk_sight_cell(&a, &a.s.word[where >> 6], where & 63);
        int32_t rect[4];
        if (vxk_cell_bins(&a.f, &a.s, &sight.middle, rect)) {
            if (lane < 16)
                clear[lane] = 0;
            __syncwarp();
            beams_few(&a, &sight, rect, lane, lists[warp], clear);
            word = clear[lane & 15];
            __syncwarp();
        } else {
            word = beams_many(&a, &sight, lane);
        }
        if (lane < 16)
            ((uint32_t *)a.s.clear)[(uint64_t)i * 16 + lane] = word;
    }
}
VXK_TUNED_LAUNCH(frame_beams, beams, THREADS, WARPS, 16)
