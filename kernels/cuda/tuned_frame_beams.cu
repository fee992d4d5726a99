/* Variant for what beams clear, and for the masks that come of it: a warp a few
 * cells. */
#include "tuned_frame.cuh"

enum { THREADS = 128, WARPS = THREADS / VXK_WARP };

/* Cells of a warp; beams that it holds at once, of which the last look may add
 * a warp's; crossings likewise, of up to eight slices a beam. */
enum { CELLS = 4, BEAMS = 64, CROSSINGS = 384, SLICES = 8 };

/* What a warp works on, in shared memory. */
struct bench {
    /* beams that meet a cell: slice k along the main axis is crossed at (x + k z,
     * y + k w), voxels from the first one's centre along the other axes */
    float4 line[BEAMS];
    float far[BEAMS];             /* squared distance in a slice from which on a centre is
                                     surely too far from the ray */
    uint32_t ray[BEAMS];          /* its number, main axis << 30 */
    uint8_t cell[BEAMS];          /* in the warp */
    uint16_t crossing[CROSSINGS]; /* beam << 3 | slice */
    uint32_t clear[CELLS][16];    /* voxels that are free or that beams cleared */
    float corner[CELLS][3];
};

/* Slices of a cell that a beam crosses within reach of a voxel there: first and
 * number of them.  Voxels that it may clear lie less than 0.9 from where it
 * crosses their slice; a whole voxel leaves room for rounding.
 */
static __device__ __forceinline__ uint32_t slices_of(const float4 *line, uint32_t *first)
{
    float u = 1.0f / line->z, v = 1.0f / line->w; /* infinite along the main axis: all slices or none */
    float u0 = (-1.0f - line->x) * u, u1 = (8.0f - line->x) * u, v0 = (-1.0f - line->y) * v,
          v1 = (8.0f - line->y) * v;
    float lo = fmaxf(fmaxf(fminf(u0, u1), fminf(v0, v1)), 0.0f),
          hi = fminf(fminf(fmaxf(u0, u1), fmaxf(v0, v1)), 7.0f);
    if (!(lo <= hi))
        return 0;
    *first = (uint32_t)vxk_ceil(lo);
    return (uint32_t)vxk_max(vxk_floor(hi) - vxk_ceil(lo) + 1.0f, 0.0f);
}

/* Looks at a beam's voxels in one slice and clears those that it passes. */
static __device__ __forceinline__ void cross(const struct vxk_frame_args *a, struct bench *b,
                                             uint32_t crossing)
{
    const uint32_t at = crossing >> 3, cell = b->cell[at], from = b->ray[at] & 0x3fffffffu;
    const int slice = (int)(crossing & 7);
    const struct vxk_pass pass = vxk_pass_of((int)(b->ray[at] >> 30));
    const float4 line = b->line[at];
    const float far = b->far[at], x = line.x + (float)slice * line.z, y = line.y + (float)slice * line.w,
                fx = vxk_floor(x), fy = vxk_floor(y), dx = x - fx, dy = y - fy;
    struct vxk_crossing o;
    uint32_t left = 0, number[4];
    o.i = (int32_t)fx;
    o.j = (int32_t)fy;
#pragma unroll
    for (uint32_t k = 0; k < 4; k++) {
        float u = k & 1 ? 1.0f - dx : dx, v = k >> 1 ? 1.0f - dy : dy;
        uint32_t i = (uint32_t)(o.i + (int32_t)(k & 1)), j = (uint32_t)(o.j + (int32_t)(k >> 1));
        number[k] = 0;
        if (u * u + v * v < far && i < 8 && j < 8) {
            number[k] = vxk_crossing_voxel(&pass, slice, &o, k);
            if (!(((volatile uint32_t *)b->clear[cell])[number[k] >> 5] >> (number[k] & 31) & 1))
                left |= 1u << k;
        }
    }
    if (left) {
        struct vxk_ray ray = vxk_load_ray(&a->s.ray[from]);
        float corner[3];
        vxk_ray_corner(&a->s, from, b->corner[cell], corner);
        for (; left; left &= left - 1) {
            uint32_t n = left & 1 ? number[0] : left & 2 ? number[1] : left & 4 ? number[2] : number[3];
            if (vxk_beam_clears(&a->f, &ray, corner, n))
                atomicOr(&b->clear[cell][n >> 5], 1u << (n & 31));
        }
    }
}

static __device__ __forceinline__ void cross_all(const struct vxk_frame_args *a, struct bench *b,
                                                 uint32_t *n_beams, uint32_t *n_crossings, uint32_t lane)
{
    __syncwarp();
    for (uint32_t j = lane; j < *n_crossings; j += VXK_WARP)
        cross(a, b, b->crossing[j]);
    *n_beams = *n_crossings = 0;
    __syncwarp();
}

/* The beam in one of a cell's bins: where it passes the cell; gives how many
 * slices it crosses there. */
static __device__ __forceinline__ uint32_t look_at_bin(const struct vxk_frame_args *a, int32_t bin,
                                                       const float cell_corner[3], float4 *line, float *far,
                                                       uint32_t *from, uint32_t *first)
{
    struct vxk_pass pass;
    struct vxk_ray ray;
    float corner[3], dm, c;
    uint32_t at = vxk_bin_ray(&a->f, &a->s, bin);
    ray = vxk_load_ray(&a->s.ray[at]);
    vxk_ray_corner(&a->s, at, cell_corner, corner);
    if (!vxk_beam_meets(&a->f, &ray, corner, &pass))
        return 0;
    dm = 1.0f / vxk_of_axis(ray.d, pass.m);
    c = vxk_of_axis(corner, pass.m);
    line->z = vxk_of_axis(ray.d, pass.p) * dm;
    line->w = vxk_of_axis(ray.d, pass.q) * dm;
    line->x = c * line->z - vxk_of_axis(corner, pass.p);
    line->y = c * line->w - vxk_of_axis(corner, pass.q);
    *far = 0.27f * (dm * dm);
    *from = at | (uint32_t)pass.m << 30;
    return slices_of(line, first);
}

/* Beams that meet the cell are found a bin a lane; what they cross is listed,
 * for lanes to look at one each when there is enough of it. */
static __device__ __forceinline__ void beams_few(const struct vxk_frame_args *a, struct bench *b,
                                                 uint32_t cell, const int32_t rect[4], uint32_t *n_beams,
                                                 uint32_t *n_crossings, uint32_t lane)
{
    const struct vxk_frame *f = &a->f;
    int32_t columns = rect[3] - rect[2] + 1, bins = (rect[1] - rect[0] + 1) * columns;
    for (int32_t k0 = 0; k0 < bins; k0 += VXK_WARP) {
        int32_t k = k0 + (int32_t)lane, row = k / columns,
                c = vxk_turned_column(f, rect[2] + k - row * columns), bin = (rect[0] + row) * f->width + c;
        uint32_t n = 0, first = 0, from = 0, m, upto;
        float4 line;
        float far = 0.0f;
        if (k < bins && c >= 0 && a->s.depth[bin] > 0.0f)
            n = look_at_bin(a, bin, b->corner[cell], &line, &far, &from, &first);
        m = __ballot_sync(VXK_FULL, n > 0);
        if (!m)
            continue;
        upto = vxk_warp_scan(n, lane);
        if (n) {
            uint32_t at = *n_beams + (uint32_t)__popc(m & ((1u << lane) - 1)), to = *n_crossings + upto - n;
            b->line[at] = line;
            b->far[at] = far;
            b->ray[at] = from;
            b->cell[at] = (uint8_t)cell;
            for (uint32_t j = 0; j < n; j++)
                b->crossing[to + j] = (uint16_t)(at << 3 | (first + j));
        }
        *n_beams += (uint32_t)__popc(m);
        *n_crossings += __shfl_sync(VXK_FULL, upto, VXK_WARP - 1);
        if (*n_beams > BEAMS - VXK_WARP || *n_crossings > CROSSINGS - SLICES * VXK_WARP)
            cross_all(a, b, n_beams, n_crossings, lane);
    }
}

/* Parts of 4 x 4 x 4 voxels of a cell that their bins may clear, four lanes a
 * part: bit p of the result. */
static __device__ __forceinline__ uint32_t parts_reached(const struct vxk_frame_args *a,
                                                         const struct vxk_sight *sight, uint32_t lane)
{
    enum { MANY_BINS = 256 };
    const uint32_t part = lane >> 2;
    const struct vxk_frame *f = &a->f;
    struct vxk_vec3 o = vxk_leaf_offset(sight->R, part & 4, part << 1 & 4, part << 2 & 4), q;
    float far = -1.0f, d, middle = 1.5f;
    struct vxk_heading h;
    int32_t rect[4];
    uint32_t m, reached = 0;
    const bool whole = f->full_turn && f->width == (int32_t)vxk_floor(f->az_turn + 0.5f);
    bool may;
    q.x = sight->first.x + o.x + middle * (sight->R[0] + sight->R[3] + sight->R[6]);
    q.y = sight->first.y + o.y + middle * (sight->R[1] + sight->R[4] + sight->R[7]);
    q.z = sight->first.z + o.z + middle * (sight->R[2] + sight->R[5] + sight->R[8]);
    h = vxk_lidar_heading(f, &q);
    d = vxk_sqrt(h.d2);
    if (!vxk_heading_rect(f, &a->s, &h, 2.7f, 0.0f, rect)) {
        may = true; /* too near */
    } else if (rect[1] < rect[0]) {
        /* above or below all beams, of which the last may still pass within half a
         * voxel */
        may = !vxk_heading_rect(f, &a->s, &h, 3.3f, 0.0f, rect) || rect[1] >= rect[0];
    } else {
        /* a column more on each side: those of a turn may not be a whole number */
        rect[2]--;
        rect[3]++;
        may = !whole && (rect[2] < 0 || rect[3] >= f->width);
    }
    if (!may && (rect[1] - rect[0] + 1) * (rect[3] - rect[2] + 1) <= MANY_BINS) {
        for (int32_t v = rect[0]; v <= rect[1]; v++)
            for (int32_t u = rect[2] + (int32_t)(lane & 3); u <= rect[3]; u += 4) {
                int32_t c = vxk_turned_column(f, u);
                far = vxk_max(far, c >= 0 ? a->s.depth[v * f->width + c] : -1.0f);
            }
        /* none of its voxels is nearer than 2.6 voxels in front of its middle */
        may = vxk_bin_may_clear(f, 0, far, d - 2.62f);
    } else if (rect[1] >= rect[0]) {
        may = true;
    }
    may = may || a->s.skew.on; /* beams begin elsewhere */
    m = __ballot_sync(VXK_FULL, may);
    for (uint32_t p = 0; p < 8; p++)
        reached |= m >> 4 * p & 15 ? 1u << p : 0;
    return reached;
}

/* The voxels whose bits are not set in the 16 words of a leaf, of the parts
 * that were reached, in any order; gives how many.  A lane lists half a word.
 */
static __device__ __forceinline__ uint32_t list_missing(const uint32_t *words, uint32_t reached,
                                                        uint16_t *list, uint32_t lane)
{
    uint32_t w = lane & 15, part = (w >> 3) << 2 | (w & 1) << 1,
             of = (reached >> part & 1 ? vxk_part_bits(0) : 0) | (reached >> part & 2 ? vxk_part_bits(1) : 0),
             missing = ~words[w] & of & (lane & 16 ? 0xffff0000u : 0xffffu),
             upto = vxk_warp_scan((uint32_t)__popc(missing), lane), at = upto - (uint32_t)__popc(missing);
    for (; missing; missing &= missing - 1)
        list[at++] = (uint16_t)(w << 5 | vxk_ctz32(missing));
    __syncwarp();
    return __shfl_sync(VXK_FULL, upto, VXK_WARP - 1);
}

/* Many beams: every voxel asks its bin. */
static __device__ __forceinline__ void beams_many(const struct vxk_frame_args *a,
                                                  const struct vxk_sight *sight, uint32_t lane,
                                                  uint16_t *list, uint32_t *clear)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_frame_space *s = &a->s;
    uint32_t end = list_missing(clear, parts_reached(a, sight, lane), list, lane);
    for (uint32_t k = lane; k < end; k += VXK_WARP) {
        uint32_t n = list[k], x = n >> 6, y = n >> 3 & 7, z = n & 7;
        struct vxk_vec3 p = vxk_voxel_at(sight->R, &sight->first, x, y, z);
        int32_t bin = vxk_lidar_bin(f, s, p.x, p.y, p.z);
        if (vxk_bin_may_clear(f, bin, s->depth[vxk_maxi(bin, 0)],
                              vxk_sqrt(p.x * p.x + p.y * p.y + p.z * p.z))) {
            uint32_t at = vxk_bin_ray(f, s, bin);
            struct vxk_ray ray = vxk_load_ray(&s->ray[at]);
            float corner[3], w[3];
            w[0] = sight->corner[0] + (float)x;
            w[1] = sight->corner[1] + (float)y;
            w[2] = sight->corner[2] + (float)z;
            vxk_ray_corner(s, at, w, corner);
            if (vxk_line_clears(f, &ray, corner))
                atomicOr(&clear[n >> 5], 1u << (n & 31));
        }
    }
    __syncwarp();
}

/* Blocks are short and there are many, so that those with cells of many beams don't come last. */
static __device__ __forceinline__ uint32_t cells_at_once(uint32_t end, uint32_t warps)
{
    return min(max(end / warps, 1u), (uint32_t)CELLS);
}

static __global__ void __launch_bounds__(THREADS) beams(const __grid_constant__ struct vxk_frame_beams_args a,
                                                        uint32_t n, const uint32_t *n_dev, uint32_t per)
{
    vxk_kernel_begin();
    __shared__ struct bench benches[WARPS];
    __shared__ uint16_t lists[WARPS][512];
    uint32_t end = vxk_launch_end(n, n_dev, per), lane = threadIdx.x & 31, warp = threadIdx.x / VXK_WARP,
             warps = gridDim.x * WARPS, batch = cells_at_once(end, warps);
    struct bench *b = &benches[warp];
    for (uint32_t i0 = (blockIdx.x * WARPS + warp) * batch; i0 < end; i0 += warps * batch) {
        uint32_t m = min(batch, end - i0), where = a.s.work[i0 + min(lane, m - 1)], old, n_beams = 0,
                 n_crossings = 0;
        const struct vxk_frame_word *fw = &a.s.word[where >> 6];
        int32_t rect[4];
        int few, tile;
        {
            struct vxk_sight sight = vxk_sight_cell(&a, fw, where & 63);
            few = vxk_cell_bins(&a.f, &a.s, &sight.middle, rect);
            if (fw->flags & VXK_WORD_QUIET) { /* of a map that decays: nothing is said about it */
                few = 1;
                rect[0] = 0;
                rect[1] = -1;
            }
            if (lane < m)
                for (int k = 0; k < 3; k++)
                    b->corner[lane][k] = sight.corner[k];
            old = vxk_leaf_number(a.g.leaves, vxk_frame_old_leaf(&a, fw, where & 63, &tile));
        }
        for (uint32_t k = 0; k < m; k++) {
            const struct vxk_leaf *leaf = vxk_leaf_no(&a.g, __shfl_sync(VXK_FULL, old, (int)k));
            uint32_t was = vxk_lane_masks(leaf, __shfl_sync(VXK_FULL, tile, (int)k), lane);
            if (lane >= 16)
                b->clear[k][lane - 16] = a.fade.on ? 0 : was;
        }
        __syncwarp();
        for (uint32_t k = 0; k < m; k++) {
            int32_t own[4];
            for (int j = 0; j < 4; j++)
                own[j] = __shfl_sync(VXK_FULL, rect[j], (int)k);
            if (__shfl_sync(VXK_FULL, few, (int)k)) {
                beams_few(&a, b, k, own, &n_beams, &n_crossings, lane);
            } else {
                uint32_t at = __shfl_sync(VXK_FULL, where, (int)k);
                struct vxk_sight sight = vxk_sight_cell(&a, &a.s.word[at >> 6], at & 63);
                beams_many(&a, &sight, lane, lists[warp], b->clear[k]);
            }
        }
        cross_all(&a, b, &n_beams, &n_crossings, lane);
        for (uint32_t k = lane; k < 16 * m; k += VXK_WARP)
            ((uint32_t *)a.s.clear)[(uint64_t)i0 * 16 + k] = b->clear[k >> 4][k & 15];
        __syncwarp();
    }
}
VXK_TUNED_LAUNCH(frame_beams, beams, THREADS, WARPS, 64)
