/* Variant for what beams clear: a warp a few cells.
 *
 * Three steps, each a lane an item, whatever cell it belongs to: bins, of whose
 * beams those that pass their cell are kept; the slices that these cross, where
 * the voxels near them are found that are not free yet; those voxels, which the
 * exact test decides about.
 */
#include "tuned_frame.cuh"

enum { THREADS = 64, WARPS = THREADS / VXK_WARP };

/* Cells of a warp at most; beams and crossings that it holds at once, of which
 * the last look at bins may add a warp's, of up to eight slices a beam; voxels
 * likewise, of which a look at crossings may add four a lane. */
enum { CELLS = 16, BEAMS = 64, SLICES = 8, CROSSINGS = 512, VOXELS = 5 * VXK_WARP };

/* A beam that passes a cell. */
struct beam {
    /* slice k along its main axis is crossed at (x + k z, y + k w), voxels from
     * the first one's centre along the other axes */
    float4 line;
    uint32_t ray;
    float far;      /* squared distance in a slice from which on a centre is surely too
                       far from the ray */
    uint32_t steps; /* numbers of voxels one further along the main axis << 16,
                       along the others << 8 and << 0 */
    uint32_t cell;  /* in the warp */
};

/* The bins of a cell in a row, those of one cell after the other's. */
struct bins {
    int32_t row, column; /* of the first */
    float columns;
    uint32_t first; /* bins of the cells before it << 4 | cell in the warp */
};

/* What a warp works on, in shared memory. */
struct bench {
    struct beam beam[BEAMS];
    uint16_t
        crossing[CROSSINGS]; /* beam << 3 | slice; or of a cell of many beams the voxels that are not free */
    uint16_t voxel[VOXELS];  /* beam << 9 | voxel */
    uint32_t asked[2 * VXK_WARP];          /* bins of voxels */
    alignas(16) uint32_t clear[CELLS][16]; /* voxels that are free or that beams cleared */
    float4 corner[CELLS]; /* of a cell, and how far a beam goes at least that clears anything there */
    struct bins bins[CELLS];
};

/* A cell's first voxel from where a ray began. */
template <bool PLAIN>
static __device__ __forceinline__ void corner_from(const struct vxk_frame_args *a, uint32_t ray,
                                                   float4 cell_corner, float corner[3])
{
    const float from[3] = {cell_corner.x, cell_corner.y, cell_corner.z};
    if (PLAIN)
        for (uint32_t k = 0; k < 3; k++)
            corner[k] = from[k];
    else
        vxk_ray_corner(&a->s, ray, from, corner);
}

/* Does the beam clear the voxel? */
template <bool PLAIN>
static __device__ __forceinline__ void judge(const struct vxk_frame_args *a, struct bench *b, uint32_t voxel)
{
    const struct beam *beam = &b->beam[voxel >> 9];
    const uint32_t n = voxel & 511, cell = beam->cell;
    const struct vxk_ray ray = vxk_load_ray(&a->s.ray[beam->ray]);
    float corner[3];
    corner_from<PLAIN>(a, beam->ray, b->corner[cell], corner);
    if (vxk_beam_clears(&a->f, &ray, corner, n))
        atomicOr(&b->clear[cell][n >> 5], 1u << (n & 31));
}

/* The crossings that are listed: their voxels, and what is decided about these. */
template <bool PLAIN>
static __device__ __forceinline__ void cross(const struct vxk_frame_args *a, struct bench *b,
                                             uint32_t n_crossings, uint32_t lane)
{
    const uint32_t before = (1u << lane) - 1;
    uint32_t n_voxels = 0;
    __syncwarp();
    for (uint32_t j0 = 0; j0 < n_crossings; j0 += VXK_WARP) {
        const uint32_t at = b->crossing[min(j0 + lane, n_crossings - 1)];
        const struct beam beam = b->beam[at >> 3];
        const float slice = (float)(at & 7), x = __fmaf_rn(slice, beam.line.z, beam.line.x),
                    y = __fmaf_rn(slice, beam.line.w, beam.line.y), fx = vxk_floor(x), fy = vxk_floor(y),
                    dx = x - fx, dy = y - fy, ex = 1.0f - dx, ey = 1.0f - dy;
        const uint32_t i = (uint32_t)(int32_t)fx, j = (uint32_t)(int32_t)fy, si = beam.steps >> 8 & 255,
                       sj = beam.steps & 255, n0 = (at & 7) * (beam.steps >> 16) + i * si + j * sj;
        const float far = j0 + lane < n_crossings ? beam.far : 0.0f, u[2] = {dx * dx, ex * ex},
                    v[2] = {dy * dy, ey * ey};
        const volatile uint32_t *clear = b->clear[beam.cell];
        bool is[4];
        uint32_t own = 0, ones, twos, fours, at_voxel;
#pragma unroll
        for (uint32_t k = 0; k < 4; k++) {
            const uint32_t n = n0 + (k & 1 ? si : 0) + (k >> 1 ? sj : 0), word = clear[n >> 5 & 15];
            is[k] = (u[k & 1] + v[k >> 1] < far) & (i + (k & 1) < 8) & (j + (k >> 1) < 8) &
                    !(word >> (n & 31) & 1);
            own += is[k] ? 1 : 0;
        }
        ones = __ballot_sync(VXK_FULL, own & 1);
        twos = __ballot_sync(VXK_FULL, own & 2);
        fours = __ballot_sync(VXK_FULL, own & 4);
        at_voxel = n_voxels +
                   (uint32_t)(__popc(ones & before) + 2 * __popc(twos & before) + 4 * __popc(fours & before));
        n_voxels += (uint32_t)(__popc(ones) + 2 * __popc(twos) + 4 * __popc(fours));
#pragma unroll
        for (uint32_t k = 0; k < 4; k++) {
            const uint32_t n = n0 + (k & 1 ? si : 0) + (k >> 1 ? sj : 0);
            if (is[k])
                b->voxel[at_voxel] = (uint16_t)(at >> 3 << 9 | n);
            at_voxel += is[k] ? 1 : 0;
        }
        __syncwarp();
        while (n_voxels >= VXK_WARP || (n_voxels && j0 + VXK_WARP >= n_crossings)) {
            const uint32_t m = min(n_voxels, (uint32_t)VXK_WARP);
            n_voxels -= m;
            if (lane < m)
                judge<PLAIN>(a, b, b->voxel[n_voxels + lane]);
        }
        __syncwarp();
    }
}

/* Where the beam in a bin passes a cell; gives how many slices it crosses there
 * within reach of a voxel, from *first on. */
template <bool PLAIN>
static __device__ __forceinline__ uint32_t pass(const struct vxk_frame_args *a, uint32_t at,
                                                float4 cell_corner, struct beam *o, uint32_t *first)
{
    const float4 d = *(const float4 *)&a->s.ray[at];
    const float dx = vxk_abs(d.x), dy = vxk_abs(d.y), dz = vxk_abs(d.z);
    const bool z_main = dz > vxk_max(dx, dy), x_main = !z_main && dx >= dy;
    float c[3], dm, cm, cp, cq, inv, reach, u, v, lo, hi, k0, k1;
    corner_from<PLAIN>(a, at, cell_corner, c);
    dm = z_main ? d.z : x_main ? d.x : d.y;
    cm = z_main ? c[2] : x_main ? c[0] : c[1];
    cp = x_main ? c[1] : c[0];
    cq = z_main ? c[1] : c[2];
    inv = vxk_reciprocal(vxk_abs(dm));
    inv = dm < 0.0f ? -inv : inv;
    o->line.z = (x_main ? d.y : d.x) * inv;
    o->line.w = (z_main ? d.y : d.z) * inv;
    o->line.x = __fmaf_rn(cm, o->line.z, -cp);
    o->line.y = __fmaf_rn(cm, o->line.w, -cq);
    o->far = 0.27f * (inv * inv);
    o->ray = at;
    o->steps = z_main   ? 1u << 16 | 64u << 8 | 8u
               : x_main ? 64u << 16 | 8u << 8 | 1u
                        : 8u << 16 | 64u << 8 | 1u;
    /* infinite along the main axis: all slices or none */
    reach = 0.53f * vxk_abs(inv);
    u = vxk_rough_reciprocal(o->line.z);
    v = vxk_rough_reciprocal(o->line.w);
    /* where it clears: its points at the crossings are less than a voxel from the
     * nearest ones to the voxels near them */
    k0 = -dm - cm;
    k1 = __fmaf_rn(vxk_clear_to(&a->f, d.w) + 1.0f, dm, -cm);
    lo = fminf(k0, k1);
    hi = fmaxf(k0, k1);
    k0 = (-reach - o->line.x) * u;
    k1 = (7.0f + reach - o->line.x) * u;
    lo = fmaxf(fmaxf(lo, fminf(k0, k1)), 0.0f);
    hi = fminf(fminf(hi, fmaxf(k0, k1)), 7.0f);
    k0 = (-reach - o->line.y) * v;
    k1 = (7.0f + reach - o->line.y) * v;
    lo = vxk_ceil(fmaxf(lo, fminf(k0, k1)) - 0.01f);
    hi = vxk_floor(fminf(hi, fmaxf(k0, k1)) + 0.01f);
    *first = (uint32_t)fmaxf(lo, 0.0f);
    return lo <= hi ? (uint32_t)(hi - lo) + 1 : 0;
}

/* Beams that pass cells of few bins, a bin a lane. own: bins of the lane's cell. */
template <bool PLAIN>
static __device__ __forceinline__ void beams_few(const struct vxk_frame_args *a, struct bench *b,
                                                 const int32_t rect[4], uint32_t own, uint32_t lane)
{
    const struct vxk_frame *f = &a->f;
    const uint32_t before = (1u << lane) - 1, some = __ballot_sync(VXK_FULL, own > 0),
                   upto = vxk_warp_scan(own, lane), all = __shfl_sync(VXK_FULL, upto, VXK_WARP - 1),
                   begin = upto - own;
    const int32_t turn = (int32_t)vxk_floor(f->az_turn + 0.5f);
    uint32_t n_beams = 0, n_crossings = 0;
    if (own) {
        struct bins *o = &b->bins[__popc(some & before)];
        o->row = rect[0];
        o->column = rect[2];
        o->columns = (float)(rect[3] - rect[2] + 1);
        o->first = begin << 4 | lane;
    }
    __syncwarp();
    for (uint32_t k0 = 0; k0 < all; k0 += VXK_WARP) {
        /* cells whose bins begin before this look, and within it */
        const uint32_t earlier = (uint32_t)__popc(__ballot_sync(VXK_FULL, own && begin <= k0)) - 1,
                       within =
                           vxk_warp_or(own && begin > k0 && begin < k0 + VXK_WARP ? 1u << (begin - k0) : 0),
                       slot = earlier + (uint32_t)__popc(within & (before | 1u << lane));
        const struct bins of = b->bins[slot];
        const uint32_t cell = of.first & 15;
        const float k = (float)(k0 + lane - (of.first >> 4)),
                    row = vxk_floor((k + 0.5f) * vxk_rough_reciprocal(of.columns));
        int32_t c = of.column + (int32_t)(k - row * of.columns), bin;
        uint32_t n = 0, first = 0, m, last;
        struct beam beam = {};
        if (f->full_turn)
            c = c < 0 ? c + turn : c >= f->width ? c - turn : c;
        bin = (of.row + (int32_t)row) * f->width + c;
        if (k0 + lane < all && c >= 0 && c < f->width) {
            const float range = a->s.depth[bin];
            const float4 corner = b->corner[cell];
            if (range > 0.0f && ((!PLAIN && a->s.skew.on) || vxk_clear_to(f, range) >= corner.w))
                n = pass<PLAIN>(a, vxk_bin_ray(f, &a->s, bin), corner, &beam, &first);
        }
        m = __ballot_sync(VXK_FULL, n > 0);
        last = vxk_warp_scan(n, lane);
        if (n) {
            const uint32_t at = n_beams + (uint32_t)__popc(m & before), to = n_crossings + last - n;
            beam.cell = cell;
            b->beam[at] = beam;
#pragma unroll
            for (uint32_t j = 0; j < SLICES; j++)
                if (j < n)
                    b->crossing[to + j] = (uint16_t)(at << 3 | (first + j));
        }
        n_beams += (uint32_t)__popc(m);
        n_crossings += __shfl_sync(VXK_FULL, last, VXK_WARP - 1);
        if (n_beams > BEAMS - VXK_WARP || n_crossings > CROSSINGS - SLICES * VXK_WARP ||
            k0 + VXK_WARP >= all) {
            cross<PLAIN>(a, b, n_crossings, lane);
            n_beams = n_crossings = 0;
        }
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
        const int32_t first = rect[2] < 0 ? rect[2] + f->width : rect[2];
        for (int32_t v = rect[0]; v <= rect[1]; v++) {
            const float *row = &a->s.depth[v * f->width];
            int32_t c = first + (int32_t)(lane & 3);
#pragma unroll 4
            for (int32_t left = rect[3] - rect[2] - (int32_t)(lane & 3); left >= 0; left -= 4) {
                c -= c >= f->width ? f->width : 0;
                far = fmaxf(far, row[c]);
                c += 4;
            }
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

/* Does the ray in a voxel's bin clear it? */
template <bool PLAIN>
static __device__ __forceinline__ void judge_own(const struct vxk_frame_args *a, const float4 cell_corner,
                                                 uint32_t bin, uint32_t n, uint32_t *clear)
{
    const uint32_t at = vxk_bin_ray(&a->f, &a->s, (int32_t)bin);
    const struct vxk_ray ray = vxk_load_ray(&a->s.ray[at]);
    float corner[3];
    float4 w = cell_corner;
    w.x += (float)(n >> 6);
    w.y += (float)(n >> 3 & 7);
    w.z += (float)(n & 7);
    corner_from<PLAIN>(a, at, w, corner);
    if (vxk_line_clears(&a->f, &ray, corner))
        atomicOr(&clear[n >> 5], 1u << (n & 31));
}

/* Many beams: every voxel asks its bin; those whose bin reaches so far are
 * listed and decided about. */
template <bool PLAIN>
static __device__ __forceinline__ void beams_many(const struct vxk_frame_args *a, struct bench *b,
                                                  const struct vxk_sight *sight, uint32_t cell, uint32_t lane)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_frame_space *s = &a->s;
    uint32_t *clear = b->clear[cell],
             end = list_missing(clear, parts_reached(a, sight, lane), b->crossing, lane), n_asked = 0;
    const float4 corner = b->corner[cell];
    for (uint32_t k0 = 0; k0 < end; k0 += VXK_WARP) {
        const uint32_t n = b->crossing[min(k0 + lane, end - 1)];
        const struct vxk_vec3 p = vxk_voxel_at(sight->R, &sight->first, n >> 6, n >> 3 & 7, n & 7);
        const int32_t bin = vxk_lidar_bin(f, s, p.x, p.y, p.z);
        const bool may = k0 + lane < end && vxk_bin_may_clear(f, bin, s->depth[vxk_maxi(bin, 0)],
                                                              vxk_sqrt(p.x * p.x + p.y * p.y + p.z * p.z));
        const uint32_t m = __ballot_sync(VXK_FULL, may);
        if (may) {
            const uint32_t at = n_asked + (uint32_t)__popc(m & ((1u << lane) - 1));
            b->asked[at] = (uint32_t)bin;
            b->voxel[at] = (uint16_t)n;
        }
        n_asked += (uint32_t)__popc(m);
        __syncwarp();
        while (n_asked >= VXK_WARP || (n_asked && k0 + VXK_WARP >= end)) {
            const uint32_t own = min(n_asked, (uint32_t)VXK_WARP);
            n_asked -= own;
            if (lane < own)
                judge_own<PLAIN>(a, corner, b->asked[n_asked + lane], b->voxel[n_asked + lane], clear);
            __syncwarp();
        }
    }
}

/* Few enough that every warp that finds a place gets its share in a few portions. */
static __device__ __forceinline__ uint32_t cells_at_once(uint32_t end, uint32_t warps)
{
    return min(max(end / warps, 1u), (uint32_t)CELLS);
}

/* A cell of the warp. */
struct task {
    uint32_t where, old; /* in the map; vxk_task */
    uint32_t hit;
    int few; /* its bins are few: rect */
    int32_t rect[4];
    int32_t base[3];
    float corner[3]; /* vxk_sight */
    float nearest;   /* vxk_cell_nearest */
};

/* Cells of a sensor that did not move: as frame_pick_cell left them. */
static __device__ __forceinline__ struct task load_task(const struct vxk_frame_args *a, uint32_t i)
{
    const int4 lo = ((const int4 *)&a->s.task[i])[0], hi = ((const int4 *)&a->s.task[i])[1];
    const uint32_t bins = (uint32_t)hi.x;
    struct task t;
    float d2 = 0.0f;
    t.where = 0;
    t.old = (uint32_t)lo.x;
    t.hit = (uint32_t)lo.y;
    t.few = bins != VXK_TASK_MANY;
    t.rect[0] = lo.w;
    t.rect[1] = lo.w + (int32_t)(bins >> 16) - 1;
    t.rect[2] = lo.z;
    t.rect[3] = lo.z + (int32_t)(bins & 0xffff) - 1;
    t.base[0] = hi.y;
    t.base[1] = hi.z;
    t.base[2] = hi.w;
    for (int k = 0; k < 3; k++) {
        float middle;
        t.corner[k] = ((float)t.base[k] + 0.5f) - a->f.t[k];
        middle = t.corner[k] + 3.5f;
        d2 += middle * middle;
    }
    t.nearest = vxk_cell_nearest(d2);
    return t;
}
/* Any. */
static __device__ __forceinline__ struct task find_task(const struct vxk_frame_args *a, uint32_t i)
{
    struct task t;
    t.where = a->s.work[i];
    const struct vxk_frame_word *fw = &a->s.word[t.where >> 6];
    struct vxk_sight sight = vxk_sight_cell(a, fw, t.where & 63);
    struct vxk_heading h = vxk_lidar_heading(&a->f, &sight.middle);
    int tile;
    const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, t.where & 63, &tile);
    t.hit = 0; /* not asked for */
    t.old = tile ? VXK_TASK_TILE : vxk_leaf_number(a->g.leaves, old);
    t.few = vxk_heading_bins(&a->f, &a->s, &h, t.rect);
    if (fw->flags & VXK_WORD_QUIET) { /* of a map that decays: nothing is said about it */
        t.few = 1;
        t.rect[0] = t.rect[2] = 0;
        t.rect[1] = t.rect[3] = -1;
    }
    for (int k = 0; k < 3; k++) {
        t.base[k] = 0;
        t.corner[k] = sight.corner[k];
    }
    t.nearest = vxk_cell_nearest(h.d2);
    return t;
}

/* A cell of many beams. */
template <bool PLAIN>
static __device__ __forceinline__ struct vxk_sight sight_of(const struct vxk_frame_args *a,
                                                            const struct task *own, int lane)
{
    struct vxk_sight o;
    if (PLAIN) {
        float base[3];
        for (int k = 0; k < 3; k++) {
            base[k] = (float)__shfl_sync(VXK_FULL, own->base[k], lane);
            o.corner[k] = (base[k] + 0.5f) - a->f.t[k];
        }
        o.R = a->f.R;
        o.first = vxk_to_sensor(&a->f, base[0] + 0.5f, base[1] + 0.5f, base[2] + 0.5f);
        o.middle = o.first; /* not asked for */
    } else {
        const uint32_t where = __shfl_sync(VXK_FULL, own->where, lane);
        o = vxk_sight_cell(a, &a->s.word[where >> 6], where & 63);
    }
    return o;
}

/* Free voxels of a cell. */
static __device__ __forceinline__ uint32_t count_clear(const uint32_t clear[16])
{
    uint32_t n = 0;
#pragma unroll
    for (uint32_t w = 0; w < 16; w += 4) {
        const uint4 four = *(const uint4 *)&clear[w];
        n += (uint32_t)(__popc(four.x) + __popc(four.y) + __popc(four.z) + __popc(four.w));
    }
    return n;
}

template <bool PLAIN>
static __global__ void __launch_bounds__(THREADS, 18)
    beams(const __grid_constant__ struct vxk_frame_beams_args a, uint32_t n, const uint32_t *n_dev,
          uint32_t per, uint32_t share)
{
    vxk_kernel_begin();
    __shared__ struct bench benches[WARPS];
    const uint32_t end = vxk_launch_end(n, n_dev, per), lane = threadIdx.x & 31,
                   warp = threadIdx.x / VXK_WARP, warps = gridDim.x * WARPS,
                   batch = cells_at_once(end, share);
    struct bench *b = &benches[warp];
    uint32_t n_many = 0, shares = (end + batch - 1) / batch;
    if (PLAIN) {
        n_many = min(a.s.c->n_many, end);
        shares += n_many;
    }
    /* cells of many beams first, each on its own: they take longest; then the others */
    for (uint32_t at = blockIdx.x * WARPS + warp; at < shares; at += warps) {
        const bool alone = at < n_many;
        const uint32_t i0 = alone ? a.s.many[at] : (at - n_many) * batch,
                       m = alone ? 1 : min(batch, end - i0), i = i0 + min(lane, m - 1);
        const struct task own = PLAIN ? load_task(&a, i) : find_task(&a, i);
        const bool takes = lane < m && (!PLAIN || alone != (own.few != 0));
        const uint32_t taken = __ballot_sync(VXK_FULL, takes);
        uint32_t many = __ballot_sync(VXK_FULL, takes && !own.few), bins = 0, n_free = 0;
        /* no ray hit it and it has no active voxel: what beams cleared is all that becomes of it */
        bool simple = false;
        if (PLAIN && takes && !a.fade.on && own.hit == VXK_NONE)
            simple = own.old >= VXK_TASK_TILE || !a.g.leaves[own.old].n_active;
        if (takes) {
            b->corner[lane] = make_float4(own.corner[0], own.corner[1], own.corner[2], own.nearest);
            bins =
                own.few ? (uint32_t)((own.rect[1] - own.rect[0] + 1) * (own.rect[3] - own.rect[2] + 1)) : 0;
        }
        for (uint32_t k0 = lane >> 4; k0 < m + (lane >> 4);
             k0 += 8) { /* half a warp a cell, eight on their way */
            uint32_t free[4];
#pragma unroll
            for (uint32_t h = 0; h < 4; h++) {
                const uint32_t k = min(k0 + 2 * h, m - 1), old = __shfl_sync(VXK_FULL, own.old, (int)k);
                free[h] = old == VXK_TASK_TILE ? VXK_FULL : 0;
                if (a.fade.on)
                    free[h] = 0;
                else if (old < VXK_TASK_TILE && taken >> k & 1)
                    free[h] = ((const uint32_t *)a.g.leaves[old].free)[lane & 15];
            }
#pragma unroll
            for (uint32_t h = 0; h < 4; h++)
                if (k0 + 2 * h < m)
                    b->clear[k0 + 2 * h][lane & 15] = free[h];
        }
        __syncwarp();
        if (simple)
            n_free = count_clear(b->clear[lane]);
        for (; many; many &= many - 1) {
            const uint32_t k = vxk_ctz32(many);
            const struct vxk_sight sight = sight_of<PLAIN>(&a, &own, (int)k);
            beams_many<PLAIN>(&a, b, &sight, k, lane);
        }
        beams_few<PLAIN>(&a, b, own.rect, bins, lane);
        if (simple) {
            const uint32_t n_now = count_clear(b->clear[lane]);
            a.s.sum[i] = n_now << 10 | (n_now != n_free ? 1u : 0u) << 20;
            a.s.task[i].hit = VXK_TASK_DONE;
        }
        for (uint32_t k = lane, done = __ballot_sync(VXK_FULL, simple); k < 16 * m; k += VXK_WARP)
            if (taken >> (k >> 4) & 1)
                ((uint32_t *)(done >> (k >> 4) & 1 ? a.s.free : a.s.clear))[(uint64_t)i0 * 16 + k] =
                    b->clear[k >> 4][k & 15];
        __syncwarp();
    }
}
extern "C" cudaError_t vxk_cuda_tuned_frame_beams(const struct vxk_cuda_launch *l)
{
    const struct vxk_frame_beams_args *a = (const struct vxk_frame_beams_args *)l->args;
    /* warps that find a place, four times */
    const uint32_t share = l->n_multiprocessors * 128, blocks = vxk_blocks_for(l, l->n, WARPS, 32);
    return vxk_launch_begun(l, a->s.skew.on ? beams<false> : beams<true>, blocks, THREADS, *a, l->n, l->n_dev,
                            l->per, share);
}
