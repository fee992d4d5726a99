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

/* What the frame may say about the eight parts of 4 x 4 x 4 voxels of a cell, four lanes a part: bit 4 p of
 * *some is set where it may say anything about part p, of *open where all it says is "free". */
static __device__ __forceinline__ void cell_parts(const struct vxk_frame_args *a,
                                                  const struct vxk_frame_word *fw, uint32_t cell,
                                                  uint32_t lane, uint32_t *some, uint32_t *open)
{
    struct vxk_stride by = {(int32_t)(lane & 1), (int32_t)(lane >> 1 & 1), 2, 2};
    struct vxk_look look;
    struct vxk_vec3 q;
    int32_t base[3];
    uint32_t may;
    vxk_frame_cell_base(a, fw, cell, base);
    q = vxk_to_sensor(&a->f, (float)base[0] + (lane & 16 ? 6.0f : 2.0f),
                      (float)base[1] + (lane & 8 ? 6.0f : 2.0f), (float)base[2] + (lane & 4 ? 6.0f : 2.0f));
    look = vxk_frame_look(&a->f, &a->s, &q, 2.7f, &by);
    vxk_join_lane(&look.b, 1);
    vxk_join_lane(&look.b, 2);
    may = vxk_look_says(&a->f, &look);
    *some = __ballot_sync(VXK_FULL, may != 0) & 0x11111111u;
    *open = __ballot_sync(VXK_FULL, (may & VXK_ALL_FREE) && !(may & VXK_MAY_HIT));
}

/* Parts that the frame can't say anything about are left out; those that it surely saw through take no look
 * at their pixels.  A lane has two voxels of a part: four planes of 4 x 4, two of them a ballot. */
static __device__ __forceinline__ void cell_depth(const struct vxk_frame_args *a, uint32_t i, uint32_t lane)
{
    const struct vxk_frame *f = &a->f;
    uint32_t where = a->s.work[i], cell = where & 63, was, some, open, seen = 0, cleared = 0, moved = 0;
    const struct vxk_frame_word *fw = &a->s.word[where >> 6];
    struct vxk_view view = vxk_view_cell(a, fw, cell, i);
    int tile;
    const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, cell, &tile);
    was = vxk_lane_masks(old, tile, lane);
    cell_parts(a, fw, cell, lane, &some, &open);
    for (; some; some &= some - 1) {
        uint32_t bit = (uint32_t)(__ffs((int)some) - 1), part = bit >> 2;
        uint32_t x = (part & 4) + (lane >> 4), y = (part >> 1 & 1) * 4 + (lane >> 2 & 3),
                 z = (part & 1) * 4 + (lane & 3), band[2], freed[2], gone[2] = {0, 0}, any_gone, w;
        const bool mine = vxk_part_in_word(part, lane);
        const bool had = __any_sync(VXK_FULL, mine && lane < 16 && (was & vxk_part_bits(part)));
        struct vxk_said v[2];
        if ((open >> bit & 1) && !had) {
            seen |= mine && lane >= 16 ? vxk_part_bits(part) : 0; /* free */
            continue;
        }
        {
            struct vxk_vec3 p[2];
            float4 o[2];
            float in_view[2];
#pragma unroll
            for (uint32_t h = 0; h < 2; h++) {
                p[h] = vxk_voxel_at(f->R, &view.first, x + 2 * h, y, z);
                int32_t at = vxk_pixel_of(f, p[h].x, p[h].y, p[h].z, &in_view[h]);
                o[h] = __ldg((const float4 *)&a->s.pixel[at]);
            }
#pragma unroll
            for (uint32_t h = 0; h < 2; h++) {
                v[h] = vxk_pixel_says(f, o[h].x + in_view[h], o[h].y, o[h].z + in_view[h], p[h].z);
                if (!f->carve)
                    v[h].near = v[h].free = 0;
            }
        }
#pragma unroll
        for (uint32_t h = 0; h < 2; h++) {
            band[h] = __ballot_sync(VXK_FULL, v[h].band);
            freed[h] = __ballot_sync(VXK_FULL, v[h].free);
            if (had) {
                uint32_t n = (x + 2 * h) << 6 | y << 3 | z, s;
                uint32_t own = __shfl_sync(VXK_FULL, was, (int)(n >> 5)) >> (n & 31) & 1;
                s = __ballot_sync(VXK_FULL, own & (v[h].near | v[h].free));
                moved |= (s & 0xffff ? 1u : 0u) << ((part & 4) + h * 2);
                moved |= (s >> 16 ? 1u : 0u) << ((part & 4) + h * 2 + 1);
                if (v[h].free & own) {
                    struct vxk_obs o = vxk_obs_depth(f, VXK_OBS_FREE, v[h].d, v[h].sdf, v[h].g);
                    int is_gone;
                    vxk_merge(f, VXK_ACTIVE, old_value(a, old, n), &o, &is_gone);
                    gone[h] = (uint32_t)is_gone;
                }
                gone[h] = __ballot_sync(VXK_FULL, gone[h]);
            }
        }
        /* the lane's plane of the part: band for lanes 0 .. 15, free for the others */
        any_gone = gone[0] | gone[1];
        w = lane < 16 ? (lane & 4 ? band[1] : band[0]) : (lane & 4 ? freed[1] : freed[0]);
        if (mine) {
            uint32_t shift = (lane >> 1 & 1) * 16, to = (part & 1) * 4;
            seen |= vxk_spread_square(w >> shift & 0xffff) << to;
            if (any_gone)
                cleared |= vxk_spread_square((lane & 4 ? gone[1] : gone[0]) >> shift & 0xffff) << to;
        }
    }
    cell_end(a, i, lane, was, __shfl_sync(VXK_FULL, seen, (int)(lane & 15)),
             __shfl_sync(VXK_FULL, seen, (int)(lane & 15) + 16), cleared, moved);
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
    vxk_kernel_begin();
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
        uint32_t at = list[k >> 3] & 0x3fffffffu;
        struct vxk_ray ray = vxk_load_ray(&s->ray[at]);
        struct vxk_crossing x;
        struct vxk_pass pass;
        float corner[3];
        pass.m = (int)(list[k >> 3] >> 30);
        pass.p = pass.m == 0 ? 1 : 0;
        pass.q = pass.m == 2 ? 1 : 2;
        vxk_ray_corner(s, at, sight->corner, corner);
        for (x = vxk_beam_slice(&ray, corner, &pass, (int)(k & 7)); x.near; x.near &= x.near - 1) {
            uint32_t n = vxk_beam_voxel(f, &ray, corner, &pass, (int)(k & 7), &x, vxk_ctz32(x.near));
            if (n != VXK_NONE)
                atomicOr(&clear[n >> 5], 1u << (n & 31));
        }
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
    vxk_kernel_begin();
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

/* A warp a touched leaf. */
static __global__ void __launch_bounds__(THREADS)
    hit_room(const __grid_constant__ struct vxk_frame_hit_room_args a, uint32_t n, const uint32_t *n_dev,
             uint32_t per)
{
    vxk_kernel_begin();
    uint32_t end = vxk_launch_end(n, n_dev, per), lane = threadIdx.x & 31;
    for (uint32_t i = blockIdx.x * WARPS + threadIdx.x / VXK_WARP; i < end; i += gridDim.x * WARPS) {
        uint32_t word = lane < 16 ? ((const uint32_t *)a.s.hit_mask)[(uint64_t)i * 16 + lane] : 0, count,
                 before = vxk_lane_ranks(word, lane, &count), first = 0;
        uint64_t prefix = vxk_lane_prefix(before, lane);
        if (lane == 0) {
            first = vxk_atomic_add32(&a.s.c->n_hit_voxels, count);
            a.s.hit_base[i] = first;
            a.s.hit_prefix[i] = prefix;
        }
        first = __shfl_sync(VXK_FULL, first, 0);
        for (uint32_t k = first + lane; k < first + count && k < a.s.room_hit; k += VXK_WARP)
            a.s.acc[k] = 0;
    }
}
VXK_TUNED_LAUNCH(frame_hit_room, hit_room, THREADS, WARPS, 16)
