/*
 * frame_depth.h - a depth image: readings to voxel units, bounds of tiles, projection of voxels into pixels.
 */
#ifndef VXK_BODY_FRAME_DEPTH_H
#define VXK_BODY_FRAME_DEPTH_H

#include "frame_types.h"

struct vxk_vec3 {
    float x, y, z;
};

/* Classifies a reading in metres.  Gives voxels, VXK_D_INVALID or VXK_D_OPEN, and the reason. */
VXK_FN float vxk_reading(const struct vxk_frame *f, float m, int *reason)
{
    float d;
    if (m != m) {
        *reason = VXK_C_NAN;
        return VXK_D_INVALID;
    }
    if (m == f->no_return_m) {
        *reason = VXK_C_NO_RETURN;
        return VXK_D_OPEN;
    }
    if (m == 0.0f) {
        *reason = f->zero_is_open ? VXK_C_NO_RETURN : VXK_C_ZERO;
        return f->zero_is_open ? VXK_D_OPEN : VXK_D_INVALID;
    }
    if (m < 0.0f) {
        *reason = VXK_C_NEGATIVE;
        return VXK_D_INVALID;
    }
    d = m * f->inv_voxel;
    if (d > f->max_d) {
        *reason = VXK_C_NO_RETURN;
        return VXK_D_OPEN;
    }
    if (d < f->min_d) {
        *reason = VXK_C_NEAR;
        return VXK_D_INVALID;
    }
    *reason = VXK_C_USED;
    return d;
}

/* True when the chunk-relative point (voxels) lies beyond the map's range, with 128 voxels to spare. */
VXK_FN int vxk_beyond_range(const struct vxk_frame *f, const float p[3])
{
    for (int a = 0; a < 3; a++) {
        float c = vxk_floor(p[a] * (1.0f / 128.0f)) + (float)f->oc[a];
        if (!(c >= (float)(1 - VXK_KEY_BIAS) && c <= (float)(VXK_KEY_BIAS - 2)))
            return 1;
    }
    return 0;
}

VXK_FN struct vxk_bounds vxk_bounds_none(void)
{
    struct vxk_bounds b;
    b.hit_lo = b.free_all = 1e30f;
    b.hit_hi = b.free_any = -1e30f;
    return b;
}
VXK_FN void vxk_bounds_join(struct vxk_bounds *b, const struct vxk_bounds *o)
{
    b->hit_lo = vxk_least(b->hit_lo, o->hit_lo);
    b->hit_hi = vxk_most(b->hit_hi, o->hit_hi);
    b->free_all = vxk_least(b->free_all, o->free_all);
    b->free_any = vxk_most(b->free_any, o->free_any);
}
/* Adds a reading d whose band reaches `before` to the near side and `behind` to the far side, and which
 * clears everything nearer than `clear`. */
VXK_FN void vxk_bounds_add(struct vxk_bounds *b, float d, float before, float behind, float clear)
{
    if (d > 0.0f && d < VXK_D_OPEN) {
        b->hit_lo = vxk_least(b->hit_lo, d - before);
        b->hit_hi = vxk_most(b->hit_hi, d + behind);
    }
    b->free_all = vxk_least(b->free_all, d > 0.0f ? clear : -1e30f);
    b->free_any = vxk_most(b->free_any, d > 0.0f ? clear : -1e30f);
}

/* Reads one pixel: writes s.depth and s.inverse, returns why the reading was or was not used. */
VXK_FN int vxk_prepare_pixel(const struct vxk_frame_args *a, int row, int u)
{
    const struct vxk_frame *f = &a->f;
    uint32_t at = (uint32_t)row * (uint32_t)f->width + (uint32_t)u;
    int why;
    float d, m;
    if (f->encoding == VXK_IMAGE_U16) {
        uint32_t raw = ((const uint16_t *)a->image)[at];
        m = (float)raw * f->unit;
        if (raw == 65535 && m != f->no_return_m) {
            why = VXK_C_SATURATED;
            d = VXK_D_INVALID;
        } else {
            d = vxk_reading(f, m, &why);
        }
    } else {
        d = vxk_reading(f, ((const float *)a->image)[at], &why);
    }
    if (f->edge && why == VXK_C_USED) {
        float p[3], x = ((float)u - f->cx) / f->fx * d, y = ((float)row - f->cy) / f->fy * d;
        for (int k = 0; k < 3; k++)
            p[k] = f->t[k] + (f->R[3 * k] * x + f->R[3 * k + 1] * y + f->R[3 * k + 2] * d);
        if (vxk_beyond_range(f, p)) {
            why = VXK_C_OUTSIDE;
            d = VXK_D_INVALID;
        }
    }
    a->s.depth[at] = d;
    a->s.inverse[at] = why == VXK_C_USED ? 1.0f / d : 0.0f;
    return why;
}

/* Eight readings in metres at once, when all of them are used as they are (vxk_reading says when); else 0. */
VXK_FN_WOVEN int vxk_prepare_plain(const struct vxk_frame_args *a, uint32_t at)
{
    const struct vxk_frame *f = &a->f;
    const vxk_f8 m = vxk_load8((const float *)a->image + at), d = m * vxk_all8(f->inv_voxel);
    const vxk_m8 not_used = vxk_less8(vxk_all8(f->max_d), d) | vxk_less8(d, vxk_all8(f->min_d)) |
                            vxk_same8(m, vxk_all8(f->no_return_m));
    if (!vxk_holds8(vxk_less8(vxk_all8(0.0f), m) & ~not_used))
        return 0;
    vxk_store8(a->s.depth + at, d);
    vxk_store8(a->s.inverse + at, vxk_all8(1.0f) / d);
    return 1;
}

/* Element: 8 readings of a row.  Writes s.depth and s.inverse, counts by reason (used ones are the rest). */
#define vxk_frame_prepare_args vxk_frame_args
VXK_FN void vxk_frame_prepare(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame *f = &a->f;
    int row = (int)i / f->n_strips, u0 = ((int)i - row * f->n_strips) * VXK_STRIP;
    int n = vxk_mini(VXK_STRIP, f->width - u0);
    uint32_t counts = 0; /* four bits each */
    if (f->encoding == VXK_IMAGE_F32 && !f->edge && n == VXK_STRIP &&
        vxk_prepare_plain(a, (uint32_t)row * (uint32_t)f->width + (uint32_t)u0))
        return;
    for (int k = 0; k < n; k++)
        counts += 1u << (4 * vxk_prepare_pixel(a, row, u0 + k));
    for (int k = 1; k < VXK_N_COUNTS && counts >> (4 * k); k++)
        if (counts >> (4 * k) & 15)
            vxk_atomic_add64(&a->s.c->counts[k], counts >> (4 * k) & 15);
}

/*
 * Element: 8 readings of a row again: each is averaged with its neighbours, and the slope of its surface is
 * found.
 *
 * Along a plane 1/depth is linear in the pixel, so pairs of pixels on opposite sides of a reading average to
 * it exactly, and a pair that does not (by more than the sensor's noise explains) lies across an edge and is
 * left out.  The 5 x 5 samples reach about one voxel; a voxel thus sees the mean of what falls on it and not
 * one noisy pixel.  A pair of samples that leaves the image for one of eight readings is left out for all of
 * them: the outermost strips are averaged along the columns only, so have no slope, and the last strip of a
 * row that is no multiple of eight stays as it is.  Writes s.pixel and s.strip.
 */

/* Sums over the pairs of a reading's neighbourhood, (x, y) = a pair's offset in pixels. */
struct vxk_smooth {
    float q0;   /* 1 / depth of the reading */
    float sum;  /* of 1 / depth */
    float n;    /* samples in it */
    float near; /* largest 1 / depth of the samples next to the reading */
    float suu, suv, svv, sqx, sqy;
};

/* Distance in pixels of the samples: near half a voxel at the nearest of the eight, whose 1 / depth is
 * `most`. */
VXK_FN int vxk_smooth_step(const struct vxk_frame *f, float most)
{
    return vxk_mini(vxk_maxi((int)(0.5f * f->fx * most + 0.5f), 1), f->smooth_max);
}

/* Falls with the square of the depth, and with the angle at which the surface is seen, to 1; with a scale of
 * 0 it is 1 everywhere. */
VXK_FN int32_t vxk_obs_weight(const struct vxk_frame *f, float d, float slope)
{
    int32_t w = vxk_rint(vxk_min(f->weight_scale * slope / (d * d), 1024.0f));
    return vxk_mini(vxk_maxi(w, 1), f->weight_max);
}

/* The same where the frame brings a weight for the pixel: `by` that many times as much. */
VXK_FN int32_t vxk_obs_weighed(const struct vxk_frame *f, float d, float slope, float by)
{
    float w = vxk_min(vxk_max(f->weight_scale * slope / (d * d), 1.0f), (float)f->weight_max);
    return vxk_maxi(vxk_rint(vxk_min(w * by, (float)VXK_WEIGHT_CAP)), 1);
}

/* What smoothing makes of a reading, and its part in the bounds of its strip. */
struct vxk_smoothed {
    float d, g;                /* as in struct vxk_sample */
    float lo, hi, free, front; /* as in struct vxk_pixel */
    struct vxk_bounds b;
};

/* Reading (u, row), `raw` before it is smoothed; without branches. */
VXK_FN struct vxk_smoothed vxk_smooth_solve(const struct vxk_frame *f, int row, int u, float raw,
                                            const struct vxk_smooth *m)
{
    struct vxk_smoothed o;
    float q = m->sum / m->n, det = 4.0f * (m->suu * m->svv - m->suv * m->suv), band, near, open, g;
    int hit = m->q0 > 0.0f, thin;
    /* the plane A x + B y + C z = 1 in camera axes */
    float A = f->fx * 2.0f * (m->sqx * m->svv - m->sqy * m->suv) / det;
    float B = f->fy * 2.0f * (m->sqy * m->suu - m->sqx * m->suv) / det;
    float C = q - A * (((float)u - f->cx) / f->fx) - B * (((float)row - f->cy) / f->fy);
    g = q / vxk_sqrt(A * A + B * B + C * C);
    g = vxk_min(vxk_max(g, 0.25f), 1.0f);
    o.d = hit ? 1.0f / q : raw;
    o.g = det * m->q0 > 0.0f ? g : 1.0f;
    near = vxk_min(m->near > 0.0f ? 1.0f / m->near : 1e30f, o.d);
    thin = (near > 0.0f) & (near < o.d);
    band = f->trunc / o.g; /* g is 1 where there is no reading */
    o.front = thin ? near : -VXK_PIXEL_NONE;
    open = o.d > 0.0f ? f->max_d : -VXK_PIXEL_NONE;
    o.lo = hit ? o.d - band : thin ? vxk_max(open, near + f->trunc) : open;
    o.hi = hit ? o.d + f->trunc : -VXK_PIXEL_NONE;
    o.free = hit ? o.lo - 3.0f * f->noise * o.d * o.d : open;
    o.b.hit_lo = vxk_min(hit ? o.lo : VXK_PIXEL_NONE, thin ? near - f->trunc : VXK_PIXEL_NONE);
    o.b.hit_hi = vxk_max(o.hi, thin ? near + f->trunc : -VXK_PIXEL_NONE);
    o.b.free_any = o.free;
    o.b.free_all = vxk_min(o.free, thin ? near - f->trunc : VXK_PIXEL_NONE);
    return o;
}

/* Place of a pixel in s.pixel and s.sample. */
VXK_FN int32_t vxk_pixel_place(const struct vxk_frame *f, int32_t u, int32_t v)
{
    return u * f->step_u + v * f->step_v;
}
VXK_FN void vxk_store_pixel(const struct vxk_frame_args *a, int row, int u, const struct vxk_smoothed *o)
{
    const int32_t at = vxk_pixel_place(&a->f, u, row);
    struct vxk_pixel *p = &a->s.pixel[at];
    struct vxk_sample *s = &a->s.sample[at];
    p->lo = o->lo;
    p->hi = o->hi;
    p->free = o->free;
    p->front = o->front;
    s->d = o->d;
    s->g = o->g;
    s->weight = vxk_obs_weight(&a->f, o->d, o->g);
    s->thin = vxk_obs_weight(&a->f, o->front, 1.0f);
}

/* Its sample again, in a frame that brings weights. */
VXK_FN void vxk_weigh_pixel(const struct vxk_frame_args *a, int row, int u, const struct vxk_smoothed *o)
{
    struct vxk_sample *s = &a->s.sample[vxk_pixel_place(&a->f, u, row)];
    const float by = a->s.weight[row * a->f.width + u];
    s->weight = vxk_obs_weighed(&a->f, o->d, o->g, by);
    s->thin = vxk_obs_weighed(&a->f, o->front, 1.0f, by);
}

/* What a pair at (h, j) steps adds to the sums of whole numbers, which share a word: pairs | h^2 << 8 | j^2
 * << 16 | h j << 24 (signed). */
VXK_FN uint32_t vxk_smooth_counts(int h, int j)
{
    return 1u | (uint32_t)(h * h) << 8 | (uint32_t)(j * j) << 16 | (uint32_t)(h * j) << 24;
}
/* Those sums as the fields of m; area: of a step squared. */
VXK_FN void vxk_smooth_counted(struct vxk_smooth *m, uint32_t pairs, float area)
{
    m->n = (float)(int32_t)(1 + 2 * (pairs & 255));
    m->suu = area * (float)(int32_t)(pairs >> 8 & 255);
    m->suv = area * (float)((int32_t)pairs >> 24);
    m->svv = area * (float)(int32_t)(pairs >> 16 & 255);
}

/* The sums of a strip's eight readings, while they are made. */
struct vxk_smooth_sums {
    vxk_f8 sum, near, sqx, sqy;
    vxk_f8 twice, gate; /* 2 / depth, and how far a pair may be off it */
    vxk_m8 pairs;
};
/* The same when they are done. */
struct vxk_smooth_strip {
    float q0[VXK_STRIP], sum[VXK_STRIP], near[VXK_STRIP], sqx[VXK_STRIP], sqy[VXK_STRIP];
    uint32_t pairs[VXK_STRIP];
    int32_t step;
};

/* Adds the pairs of samples at p and m, (h, j) steps to either side. */
VXK_FN_WOVEN void vxk_smooth_pair(struct vxk_smooth_sums *s, const float *p, const float *m, int step, int h,
                                  int j)
{
    const vxk_f8 qp = vxk_load8(p), qm = vxk_load8(m), both = qp + qm, apart = qp - qm, none = vxk_all8(0.0f);
    const vxk_m8 in =
        vxk_less8(none, qp) & vxk_less8(none, qm) & vxk_less8(vxk_abs8(both - s->twice), s->gate);
    if ((j <= 1) & (h >= -1) & (h <= 1)) {
        const vxk_f8 more = vxk_where8(vxk_less8(qm, qp), qp, qm);
        s->near = vxk_where8(vxk_less8(more, s->near), s->near, more);
    }
    s->sum = s->sum + vxk_keep8(in, both);
    s->pairs = s->pairs + (in & vxk_bits8(vxk_smooth_counts(h, j)));
    if (h)
        s->sqx = s->sqx + vxk_keep8(in, vxk_all8((float)(h * step)) * apart);
    if (j)
        s->sqy = s->sqy + vxk_keep8(in, vxk_all8((float)(j * step)) * apart);
}

/* All twelve, where none leaves the image; at: the strip's first reading. */
VXK_FN_WOVEN void vxk_smooth_inside(struct vxk_smooth_sums *s, const float *at, int width, int step)
{
    const int32_t u = step, v = step * width;
    vxk_smooth_pair(s, at + u, at - u, step, 1, 0);
    vxk_smooth_pair(s, at + 2 * u, at - 2 * u, step, 2, 0);
    vxk_smooth_pair(s, at + v - 2 * u, at - v + 2 * u, step, -2, 1);
    vxk_smooth_pair(s, at + v - u, at - v + u, step, -1, 1);
    vxk_smooth_pair(s, at + v, at - v, step, 0, 1);
    vxk_smooth_pair(s, at + v + u, at - v - u, step, 1, 1);
    vxk_smooth_pair(s, at + v + 2 * u, at - v - 2 * u, step, 2, 1);
    vxk_smooth_pair(s, at + 2 * v - 2 * u, at - 2 * v + 2 * u, step, -2, 2);
    vxk_smooth_pair(s, at + 2 * v - u, at - 2 * v + u, step, -1, 2);
    vxk_smooth_pair(s, at + 2 * v, at - 2 * v, step, 0, 2);
    vxk_smooth_pair(s, at + 2 * v + u, at - 2 * v - u, step, 1, 2);
    vxk_smooth_pair(s, at + 2 * v + 2 * u, at - 2 * v - 2 * u, step, 2, 2);
}

/* The first n readings of a strip, 0 behind them. */
VXK_FN_WOVEN vxk_f8 vxk_strip_of(const float *p, int n)
{
    float part[VXK_STRIP];
    if (n == VXK_STRIP)
        return vxk_load8(p);
    for (int k = 0; k < VXK_STRIP; k++)
        part[k] = k < n ? p[k] : 0.0f;
    return vxk_load8(part);
}

/* The first n readings of a strip, from their sums: writes s.pixel and s.strip. */
VXK_FN_APART void vxk_smooth_end(const struct vxk_frame_args *a, int row, int u0, int n,
                                 const struct vxk_smooth_strip *in)
{
    const struct vxk_frame *f = &a->f;
    const uint32_t at = (uint32_t)(row * f->width + u0);
    struct vxk_smooth_strip s;
    const float area = (float)(in->step * in->step);
    float raw[VXK_STRIP];
    struct vxk_smoothed o[VXK_STRIP];
    vxk_copy8(s.q0, in->q0);
    vxk_copy8(s.sum, in->sum);
    vxk_copy8(s.near, in->near);
    vxk_copy8(s.sqx, in->sqx);
    vxk_copy8(s.sqy, in->sqy);
    vxk_copy8(s.pairs, in->pairs);
    vxk_store8(raw, vxk_strip_of(a->s.depth + at, n));
    for (int k = 0; k < VXK_STRIP; k++) {
        struct vxk_smooth m;
        m.q0 = s.q0[k];
        m.sum = s.sum[k];
        m.near = s.near[k];
        vxk_smooth_counted(&m, s.pairs[k], area);
        m.sqx = s.sqx[k];
        m.sqy = s.sqy[k];
        o[k] = vxk_smooth_solve(f, row, u0 + k, raw[k], &m);
    }
    for (int k = 0; k < n; k++)
        vxk_store_pixel(a, row, u0 + k, &o[k]);
    for (int k = 0; a->s.weight && k < n; k++)
        vxk_weigh_pixel(a, row, u0 + k, &o[k]);
    for (int k0 = 0; k0 < n; k0 += VXK_TILE) {
        struct vxk_bounds b = vxk_bounds_none();
        for (int k = k0; k < vxk_mini(k0 + VXK_TILE, n); k++)
            vxk_bounds_join(&b, &o[k].b);
        a->s.strip[row * f->n_tx[0] + (u0 + k0) / VXK_TILE] = b;
    }
}

/* The sums of the n readings of a strip, which begins at column u0 of a row. */
VXK_FN_WOVEN void vxk_smooth_sum(const struct vxk_frame_args *a, int row, int u0, int n,
                                 struct vxk_smooth_strip *o)
{
    const struct vxk_frame *f = &a->f;
    const int width = f->width;
    const float *at = a->s.inverse + row * width + u0;
    float most = 0.0f;
    struct vxk_smooth_strip s;
    struct vxk_smooth_sums t;
    vxk_f8 q0 = vxk_strip_of(at, n);
    vxk_store8(s.q0, q0);
    for (int k = 0; k < VXK_STRIP; k++)
        most = vxk_max(most, s.q0[k]);
    s.step = vxk_smooth_step(f, most);
    t.near = t.sum = q0;
    t.twice = vxk_all8(2.0f) * q0;
    t.gate = vxk_all8(7.5f * f->noise) + vxk_all8(0.25f) * q0 * q0;
    t.sqx = t.sqy = vxk_all8(0.0f);
    t.pairs = vxk_bits8(0);
    if (row >= 2 * s.step && row + 2 * s.step < f->height && u0 >= 2 * s.step &&
        u0 + VXK_STRIP + 2 * s.step <= width) {
        vxk_smooth_inside(&t, at, width, s.step);
    } else {
        for (int j = 0; j <= 2; j++) {
            for (int h = j ? -2 : 1; h <= 2; h++) {
                int dv = j * s.step, du = h * s.step, out = vxk_maxi(du, -du);
                if (row >= dv && row + dv < f->height && u0 >= out && u0 + VXK_STRIP + out <= width)
                    vxk_smooth_pair(&t, at + dv * width + du, at - dv * width - du, s.step, h, j);
            }
        }
    }
    vxk_store8(s.sum, t.sum);
    vxk_store8(s.near, t.near);
    vxk_store8(s.sqx, t.sqx);
    vxk_store8(s.sqy, t.sqy);
    vxk_store_bits8(s.pairs, t.pairs);
    *o = s;
}

#define vxk_frame_smooth_args vxk_frame_args
VXK_FN void vxk_frame_smooth(const struct vxk_frame_args *a, uint32_t i)
{
    const int row = (int)i / a->f.n_strips, u0 = ((int)i - row * a->f.n_strips) * VXK_STRIP;
    const int n = vxk_mini(VXK_STRIP, a->f.width - u0);
    struct vxk_smooth_strip s;
    vxk_smooth_sum(a, row, u0, n, &s);
    vxk_smooth_end(a, row, u0, n, &s);
}

/* Bounds of a tile of level 0 from its strips; stores them. */
VXK_FN struct vxk_bounds vxk_level_0(const struct vxk_frame_args *a, int tx, int ty)
{
    const struct vxk_frame *f = &a->f;
    int n_tx = f->n_tx[0], r1 = vxk_mini(ty * VXK_TILE + VXK_TILE, f->height);
    struct vxk_bounds b = vxk_bounds_none();
    for (int r = ty * VXK_TILE; r < r1; r++)
        vxk_bounds_join(&b, &a->s.strip[r * n_tx + tx]);
    a->s.level[0][ty * n_tx + tx] = b;
    return b;
}

/* Element: a tile of the highest level: its bounds, and those of the 4 x 4 tiles below it, and so on. */
#define vxk_frame_levels_args vxk_frame_args
VXK_FN void vxk_frame_levels(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame *f = &a->f;
    int ty = (int)i / f->n_tx[2], tx = (int)i - ty * f->n_tx[2];
    struct vxk_bounds b2 = vxk_bounds_none();
    for (int y1 = ty * 4; y1 < vxk_mini(ty * 4 + 4, f->n_ty[1]); y1++) {
        for (int x1 = tx * 4; x1 < vxk_mini(tx * 4 + 4, f->n_tx[1]); x1++) {
            struct vxk_bounds b1 = vxk_bounds_none();
            for (int y0 = y1 * 4; y0 < vxk_mini(y1 * 4 + 4, f->n_ty[0]); y0++) {
                for (int x0 = x1 * 4; x0 < vxk_mini(x1 * 4 + 4, f->n_tx[0]); x0++) {
                    struct vxk_bounds b0 = vxk_level_0(a, x0, y0);
                    vxk_bounds_join(&b1, &b0);
                }
            }
            a->s.level[1][y1 * f->n_tx[1] + x1] = b1;
            vxk_bounds_join(&b2, &b1);
        }
    }
    a->s.level[2][i] = b2;
}

/* Level whose tiles cover a span of pixels with few looks. */
VXK_FN int vxk_level_for(int span)
{
    return span > 64 ? 2 : span > 16 ? 1 : 0;
}

/* Sensor coordinates of a point given in voxels from the corner of chunk oc. */
VXK_FN struct vxk_vec3 vxk_to_sensor(const struct vxk_frame *f, float x, float y, float z)
{
    struct vxk_vec3 r;
    float dx = x - f->t[0], dy = y - f->t[1], dz = z - f->t[2];
    r.x = f->R[0] * dx + f->R[3] * dy + f->R[6] * dz;
    r.y = f->R[1] * dx + f->R[4] * dy + f->R[7] * dz;
    r.z = f->R[2] * dx + f->R[5] * dy + f->R[8] * dz;
    return r;
}

/* The tiles that one of several who share a look takes: every nx-th of a row and ny-th of a column, from (x,
 * y) on; all: 0, 0, 1, 1. */
struct vxk_stride {
    int32_t x, y, nx, ny;
};

/* Voxels whose centres lie no farther along z take no reading, voxels. */
#define VXK_NEAREST 0.5f

/* Columns and rows of pixels that a sphere (sensor coordinates, voxels) covers; may leave the image. */
struct vxk_window {
    float u0, u1, v0, v1;
    int whole; /* every point of the sphere is in view */
};
/* 0: the sphere is out of view.  1: *o holds. */
VXK_FN int vxk_depth_window(const struct vxk_frame *f, const struct vxk_vec3 *q, float r,
                            struct vxk_window *o)
{
    float zl = q->z - r, zh = q->z + r, il, ih, w = (float)f->width, h = (float)f->height;
    o->whole = 0;
    if (zh <= VXK_NEAREST)
        return 0;
    il = vxk_reciprocal(vxk_max(zl, VXK_NEAREST)); /* nearer voxels have no pixel */
    ih = vxk_reciprocal(zh);
    /* half a pixel and a little more than the rounding of vxk_pixel_of */
    o->u0 = f->fx * (q->x - r) * (q->x - r < 0 ? il : ih) + f->cx + 0.45f;
    o->u1 = f->fx * (q->x + r) * (q->x + r > 0 ? il : ih) + f->cx + 0.55f;
    o->v0 = f->fy * (q->y - r) * (q->y - r < 0 ? il : ih) + f->cy + 0.45f;
    o->v1 = f->fy * (q->y + r) * (q->y + r > 0 ? il : ih) + f->cy + 0.55f;
    if (!(o->u1 >= 0.0f && o->v1 >= 0.0f && o->u0 < w && o->v0 < h))
        return 0;
    o->whole = zl >= 1.0f && o->u0 >= 0.0f && o->v0 >= 0.0f && o->u1 < w && o->v1 < h;
    return 1;
}

/* Bounds of the readings behind a sphere; results as of vxk_depth_window. */
VXK_FN int vxk_depth_bounds(const struct vxk_frame *f, const struct vxk_frame_space *s,
                            const struct vxk_vec3 *q, float r, const struct vxk_stride *by,
                            struct vxk_bounds *b, int *whole)
{
    struct vxk_window o;
    int u0, u1, v0, v1, level, shift;
    if (!vxk_depth_window(f, q, r, &o)) {
        *whole = 0;
        return 0;
    }
    *whole = o.whole;
    u0 = (int)vxk_max(o.u0, 0.0f);
    u1 = (int)vxk_min(o.u1, (float)f->width - 1.0f);
    v0 = (int)vxk_max(o.v0, 0.0f);
    v1 = (int)vxk_min(o.v1, (float)f->height - 1.0f);
    level = vxk_level_for(vxk_maxi(u1 - u0, v1 - v0));
    shift = 2 + 2 * level;
    *b = vxk_bounds_none();
    for (int v = (v0 >> shift) + by->y; v <= v1 >> shift; v += by->ny)
        for (int u = (u0 >> shift) + by->x; u <= u1 >> shift; u += by->nx)
            vxk_bounds_join(b, &s->level[level][v * f->n_tx[level] + u]);
    return 1;
}

#endif
