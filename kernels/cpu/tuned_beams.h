/*
 * tuned_beams.h - what the beams of a LiDAR cleared in a work cell (frame_beams), eight beams, slices or
 * voxels at a time.
 *
 * Only vxk_line_clears decides, beam by voxel; everything else here leaves out pairs that it can't hold for.
 */
#ifndef VXK_CPU_TUNED_BEAMS_H
#define VXK_CPU_TUNED_BEAMS_H

#include "lanes.h"

/* Bit k: lane k is set. */
VXK_FN_WOVEN uint32_t vxk_mask_of8(vxk_m8 m)
{
    uint64_t part[4];
    const vxk_m8 bit = m & (vxk_m8){1, 2, 4, 8, 16, 32, 64, 128};
    __builtin_memcpy(part, &bit, sizeof part);
    part[0] |= part[1] | part[2] | part[3];
    return (uint32_t)(part[0] | part[0] >> 32);
}

/* Lanes of vxk_line_clears: eight rays (as columns of their records) and eight points. */
VXK_FN_WOVEN vxk_m8 vxk_line_clears8(const struct vxk_frame *f, const vxk_f8 ray[8], const vxk_f8 v[3])
{
    const vxk_f8 along = v[0] * ray[0] + v[1] * ray[1] + v[2] * ray[2];
    const vxk_f8 c0 = v[1] * ray[2] - v[2] * ray[1], c1 = v[2] * ray[0] - v[0] * ray[2],
                 c2 = v[0] * ray[1] - v[1] * ray[0];
    const vxk_f8 plane = v[0] * ray[4] + v[1] * ray[5] + v[2] * ray[6] - ray[3] * ray[7];
    const vxk_m8 by =
        vxk_less8(vxk_all8(0.0f), along) & (vxk_m8)(c0 * c0 + c1 * c1 + c2 * c2 <= vxk_all8(0.25f));
    const vxk_m8 open = (vxk_m8)(ray[3] >= vxk_all8(VXK_D_OPEN));
    return by & ((open & (vxk_m8)(along <= vxk_all8(f->max_d))) |
                 (~open & vxk_less8(vxk_all8(f->clear), ray[3] - along) &
                  vxk_less8(vxk_all8(f->clear_plane), plane)));
}

/* Lanes of vxk_atan2. */
VXK_FN_WOVEN vxk_f8 vxk_atan8(vxk_f8 y, vxk_f8 x)
{
    const vxk_f8 ax = vxk_abs8(x), ay = vxk_abs8(y), zero = vxk_all8(0.0f);
    const vxk_f8 t = vxk_min8(ax, ay) / vxk_max8(vxk_max8(ax, ay), vxk_all8(1e-30f)), q = t * t;
    vxk_f8 r =
        t *
        (0.99997726f +
         q * (-0.33262347f + q * (0.19354346f + q * (-0.11643287f + q * (0.05265332f + q * -0.01172120f)))));
    r = vxk_where8(vxk_less8(ax, ay), 0.5f * VXK_PI - r, r);
    r = vxk_where8(vxk_less8(x, zero), VXK_PI - r, r);
    return vxk_where8(vxk_less8(y, zero), -r, r);
}

/* Lanes of vxk_lidar_bin. */
VXK_FN_WOVEN void vxk_lidar_bin8(const struct vxk_frame *f, const struct vxk_frame_space *s,
                                 const vxk_f8 p[3], int32_t bin[8])
{
    const vxk_f8 zero = vxk_all8(0.0f), turn = vxk_all8(f->az_turn);
    vxk_f8 c = (vxk_atan8(p[1], p[0]) - vxk_all8(f->az0)) * vxk_all8(f->az_scale) + vxk_all8(f->az_half);
    vxk_f8 e = vxk_atan8(p[2], vxk_sqrt8(p[0] * p[0] + p[1] * p[1]));
    vxk_i8 col, step, out;
    uint32_t at[8];
    int32_t row[8];
    c = vxk_where8(vxk_less8(c, zero), c + turn, c);
    c = vxk_where8((vxk_m8)(c >= turn), c - turn, c);
    col = __builtin_convertvector(vxk_min8(vxk_max8(c, zero), vxk_all8(1e6f)), vxk_i8);
    if (f->full_turn)
        col = col - ((vxk_i8)(col >= f->width) & f->width);
    e = (vxk_all8(f->el_top) - e) * vxk_all8(f->el_scale);
    step = __builtin_convertvector(vxk_min8(vxk_max8(e, zero), vxk_all8((float)f->el_last)), vxk_i8);
    vxk_store_bits8(at, (vxk_m8)step);
    for (int k = 0; k < 8; k++)
        row[k] = (int32_t)s->row_of[at[k]];
    __builtin_memcpy(&out, row, sizeof out);
    out = out * f->width + col;
    out = out | (vxk_i8)(col >= f->width);
    __builtin_memcpy(bin, &out, sizeof out);
}

/* A cell, what is known of it, and the voxels that are clear. */
struct vxk_beams {
    const struct vxk_frame_args *a;
    struct vxk_sight sight;
    uint64_t clear[8];
};

/* Voxels (x, y .. y + 1, z .. z + 3) ask their bins. */
VXK_FN_WOVEN void vxk_voxels_ask8(struct vxk_beams *b, uint32_t x, uint32_t y, uint32_t z)
{
    const struct vxk_frame *f = &b->a->f;
    const struct vxk_frame_space *s = &b->a->s;
    const float *R = b->sight.R;
    const uint32_t shift = 8 * y + z, done = (uint32_t)(b->clear[x] >> shift & 15) |
                                             (uint32_t)(b->clear[x] >> (shift + 8) & 15) << 4;
    const float fy = (float)y, fz = (float)z;
    const vxk_f8 vy = {fy, fy, fy, fy, fy + 1, fy + 1, fy + 1, fy + 1},
                 vz = {fz, fz + 1, fz + 2, fz + 3, fz, fz + 1, fz + 2, fz + 3};
    const float *record[8];
    vxk_f8 p[3], ray[8], v[3], dist, range;
    float ranges[8];
    int32_t bin[8];
    vxk_m8 maybe;
    uint32_t want, cleared;
    if (done == 255)
        return;
    for (int k = 0; k < 3; k++) {
        const float first = k == 0 ? b->sight.first.x : k == 1 ? b->sight.first.y : b->sight.first.z;
        p[k] = (first + ((float)x * R[k] + vy * R[3 + k])) + vz * R[6 + k];
    }
    vxk_lidar_bin8(f, s, p, bin);
    for (int k = 0; k < 8; k++)
        ranges[k] = bin[k] >= 0 ? s->depth[bin[k]] : -1.0f;
    range = vxk_load8(ranges);
    dist = vxk_sqrt8(p[0] * p[0] + p[1] * p[1] + p[2] * p[2]);
    maybe = vxk_less8(vxk_all8(0.0f), range) &
            vxk_less8(vxk_all8(f->clear - 1.0f), vxk_min8(range, vxk_all8(f->max_d + f->clear)) - dist);
    want = vxk_mask_of8(maybe) & ~done;
    if (!want)
        return;
    for (uint32_t k = 0; k < 8; k++) {
        uint32_t of = want >> k & 1 ? k : vxk_ctz32(want);
        record[k] = s->ray[vxk_bin_ray(f, s, bin[of])].d;
    }
    vxk_columns8(record, ray);
    v[0] = vxk_all8(b->sight.corner[0] + (float)x);
    v[1] = b->sight.corner[1] + vy;
    v[2] = b->sight.corner[2] + vz;
    cleared = vxk_mask_of8(vxk_line_clears8(f, ray, v)) & want;
    b->clear[x] |= (uint64_t)(cleared & 15) << shift | (uint64_t)(cleared >> 4) << (shift + 8);
}

/* Can a beam clear anything in part k of the cell, 4 x 4 x 4 voxels? */
VXK_FN int vxk_part_reached(const struct vxk_beams *b, uint32_t k)
{
    const struct vxk_stride all = {0, 0, 1, 1};
    /* half the diagonal between its outer voxels' centres, and a little more */
    const float r = 2.7f;
    struct vxk_vec3 o = vxk_leaf_offset(b->sight.R, k >> 2 << 2, (k >> 1 & 1) << 2, (k & 1) << 2), q;
    struct vxk_vec3 half = vxk_leaf_offset(b->sight.R, 3, 3, 3);
    struct vxk_bounds bounds;
    int whole, found;
    q.x = b->sight.first.x + o.x + 0.5f * half.x;
    q.y = b->sight.first.y + o.y + 0.5f * half.y;
    q.z = b->sight.first.z + o.z + 0.5f * half.z;
    found = vxk_lidar_bounds(&b->a->f, &b->a->s, &q, r, &all, &bounds, &whole);
    return found == 2 || (found == 1 && bounds.free_any > 0.0f &&
                          vxk_sqrt(q.x * q.x + q.y * q.y + q.z * q.z) - (r + 0.6f) <= bounds.free_any);
}

static __attribute__((noinline)) void vxk_voxels_ask(struct vxk_beams *b)
{
    for (uint32_t k = 0; k < 8; k++) {
        const uint32_t x0 = k >> 2 << 2, y0 = (k >> 1 & 1) << 2, z0 = (k & 1) << 2;
        const uint64_t part = 0x0f0f0f0full << (8 * y0 + z0);
        if ((b->clear[x0] & b->clear[x0 + 1] & b->clear[x0 + 2] & b->clear[x0 + 3] & part) == part ||
            !vxk_part_reached(b, k))
            continue;
        for (uint32_t x = x0; x < x0 + 4; x++) {
            vxk_voxels_ask8(b, x, y0, z0);
            vxk_voxels_ask8(b, x, y0 + 2, z0);
        }
    }
}

/* A beam through the cell: its eight slices at once (vxk_beam_slice), then the voxels near it one by one. */
VXK_FN_WOVEN void vxk_beam_clear(struct vxk_beams *b, const struct vxk_ray *ray)
{
    const float *corner = b->sight.corner;
    const vxk_f8 slice = {0, 1, 2, 3, 4, 5, 6, 7};
    const struct vxk_pass o =
        vxk_pass_of(vxk_abs(ray->d[2]) > vxk_max(vxk_abs(ray->d[0]), vxk_abs(ray->d[1])) ? 2
                    : vxk_abs(ray->d[0]) >= vxk_abs(ray->d[1])                           ? 0
                                                                                         : 1);
    const float dm = vxk_of_axis(ray->d, o.m);
    const vxk_f8 t = (vxk_of_axis(corner, o.m) + slice) / vxk_all8(dm);
    const vxk_f8 p = t * vxk_of_axis(ray->d, o.p) - vxk_of_axis(corner, o.p),
                 q = t * vxk_of_axis(ray->d, o.q) - vxk_of_axis(corner, o.q);
    const vxk_m8 in = (vxk_m8)(p >= vxk_all8(-1.0f)) & vxk_less8(p, vxk_all8(8.0f)) &
                      (vxk_m8)(q >= vxk_all8(-1.0f)) & vxk_less8(q, vxk_all8(8.0f));
    vxk_f8 u, v, reach = vxk_all8(0.27f / (dm * dm));
    vxk_i8 i, j;
    vxk_m8 near = vxk_bits8(0);
    uint32_t bits[8], todo = 0;
    int32_t is[8], js[8];
    if (!vxk_some8(in))
        return;
    /* downwards: one more, which is not below zero */
    i = __builtin_convertvector(vxk_keep8(in, p + 1.0f), vxk_i8) - 1;
    j = __builtin_convertvector(vxk_keep8(in, q + 1.0f), vxk_i8) - 1;
    u = p - __builtin_convertvector(i, vxk_f8);
    v = q - __builtin_convertvector(j, vxk_f8);
    for (int32_t k = 0; k < 4; k++) {
        const vxk_f8 du = k & 1 ? 1.0f - u : u, dv = k >> 1 ? 1.0f - v : v;
        const vxk_i8 ik = i + (k & 1), jk = j + (k >> 1);
        near |= vxk_less8(du * du + dv * dv, reach) & (vxk_m8)(ik >= 0) & (vxk_m8)(ik <= 7) &
                (vxk_m8)(jk >= 0) & (vxk_m8)(jk <= 7) & vxk_bits8(1u << k);
    }
    near &= in;
    vxk_store_bits8(bits, near << (vxk_m8){0, 4, 8, 12, 16, 20, 24, 28});
    __builtin_memcpy(is, &i, sizeof is);
    __builtin_memcpy(js, &j, sizeof js);
    for (int k = 0; k < 8; k++)
        todo |= bits[k];
    for (; todo; todo &= todo - 1) {
        const uint32_t k = vxk_ctz32(todo);
        struct vxk_crossing at;
        uint32_t n;
        at.i = is[k >> 2];
        at.j = js[k >> 2];
        n = vxk_crossing_voxel(&o, (int)(k >> 2), &at, k & 3);
        if (!(b->clear[n >> 6] >> (n & 63) & 1) && vxk_beam_clears(&b->a->f, ray, corner, n))
            b->clear[n >> 6] |= 1ull << (n & 63);
    }
}

/* Up to eight beams that may clear something in the cell. */
VXK_FN_WOVEN void vxk_beams_ask8(struct vxk_beams *b, const struct vxk_ray *const beam[8], uint32_t n)
{
    const struct vxk_frame *f = &b->a->f;
    const float *record[8], *corner = b->sight.corner, x = corner[0] + 3.5f, y = corner[1] + 3.5f,
                            z = corner[2] + 3.5f;
    const vxk_f8 reach = vxk_all8(VXK_CELL_REACH);
    vxk_f8 c[8], along, c0, c1, c2, to;
    vxk_m8 meets;
    for (uint32_t k = 0; k < 8; k++)
        record[k] = beam[k < n ? k : 0]->d;
    vxk_columns8(record, c);
    along = x * c[0] + y * c[1] + z * c[2];
    c0 = y * c[2] - z * c[1];
    c1 = z * c[0] - x * c[2];
    c2 = x * c[1] - y * c[0];
    to = vxk_where8(vxk_less8(c[3], vxk_all8(VXK_D_OPEN)), c[3] - f->clear, vxk_all8(f->max_d));
    meets = (vxk_m8)(c0 * c0 + c1 * c1 + c2 * c2 <= reach * reach) & (vxk_m8)(along >= -reach) &
            (vxk_m8)(along - reach <= to) & vxk_first8(n);
    for (uint32_t m = vxk_mask_of8(meets); m; m &= m - 1)
        vxk_beam_clear(b, beam[vxk_ctz32(m)]);
}

/* The beams of a rectangle of bins. */
static __attribute__((noinline)) void vxk_beams_ask(struct vxk_beams *b, const int32_t rect[4])
{
    const struct vxk_frame *f = &b->a->f;
    const struct vxk_frame_space *s = &b->a->s;
    const struct vxk_vec3 *q = &b->sight.middle;
    /* as vxk_lidar_reaches: what ends nearer clears nothing here */
    const float d2 = q->x * q->x + q->y * q->y + q->z * q->z,
                nearest =
                    vxk_sqrt(vxk_max(d2 - VXK_CELL_REACH * VXK_CELL_REACH, 0.0f)) - (VXK_CELL_REACH + 0.01f);
    const struct vxk_ray *beam[8];
    uint32_t n = 0;
    for (int32_t v = rect[0]; v <= rect[1]; v++) {
        for (int32_t u = rect[2]; u <= rect[3]; u++) {
            const int32_t c = vxk_turned_column(f, u), bin = v * f->width + c;
            if (c < 0 || !(s->depth[bin] > 0.0f) || vxk_clear_to(f, s->depth[bin]) < nearest)
                continue;
            beam[n++] = &s->ray[vxk_bin_ray(f, s, bin)];
            if (n == 8) {
                vxk_beams_ask8(b, beam, n);
                n = 0;
            }
        }
    }
    if (n)
        vxk_beams_ask8(b, beam, n);
}

VXK_FN void vxk_cell_beams(const struct vxk_frame_args *a, uint32_t i)
{
    const uint32_t cell = a->s.work[i] & 63;
    const struct vxk_frame_word *fw = &a->s.word[a->s.work[i] >> 6];
    struct vxk_beams b;
    struct vxk_heading h;
    int tile;
    const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, cell, &tile);
    int32_t rect[4];
    b.a = a;
    b.sight = vxk_sight_cell(a, fw, cell);
    for (int x = 0; x < 8; x++)
        b.clear[x] = a->fade.on ? 0 : old ? old->free[x] : tile ? ~0ull : 0;
    h = vxk_lidar_heading(&a->f, &b.sight.middle);
    if (vxk_heading_bins(&a->f, &a->s, &h, rect)) {
        if (a->f.bins_are_rays && rect[0] <= rect[1])
            vxk_heading_tighten(&a->f, &a->s, &h, b.sight.middle.z, rect);
        vxk_beams_ask(&b, rect);
    } else {
        vxk_voxels_ask(&b);
    }
    for (int x = 0; x < 8; x++)
        a->s.clear[(uint64_t)i * 8 + (uint32_t)x] = b.clear[x];
}

static void vxk_cpu_frame_beams(const struct vxk_frame_args *args, uint32_t begin, uint32_t end)
{
    const struct vxk_frame_args a = *args;
    for (uint32_t i = begin; i < end; i++) {
        if (a.s.skew.on || (a.s.word[a.s.work[i] >> 6].flags & VXK_WORD_QUIET))
            vxk_frame_beams(&a, i);
        else
            vxk_cell_beams(&a, i);
    }
}

#endif
