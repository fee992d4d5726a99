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
    b->hit_lo = vxk_min(b->hit_lo, o->hit_lo);
    b->hit_hi = vxk_max(b->hit_hi, o->hit_hi);
    b->free_all = vxk_min(b->free_all, o->free_all);
    b->free_any = vxk_max(b->free_any, o->free_any);
}
/* Adds a reading d whose band reaches `before` to the near side and `behind` to the far side, and which
 * clears everything nearer than `clear`. */
VXK_FN void vxk_bounds_add(struct vxk_bounds *b, float d, float before, float behind, float clear)
{
    if (d > 0.0f && d < VXK_D_OPEN) {
        b->hit_lo = vxk_min(b->hit_lo, d - before);
        b->hit_hi = vxk_max(b->hit_hi, d + behind);
    }
    b->free_all = vxk_min(b->free_all, d > 0.0f ? clear : -1e30f);
    b->free_any = vxk_max(b->free_any, d > 0.0f ? clear : -1e30f);
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

/* Element: 8 readings of a row.  Writes s.depth and s.inverse, counts by reason. */
#define vxk_frame_prepare_args vxk_frame_args
VXK_FN void vxk_frame_prepare(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame *f = &a->f;
    int row = (int)i / f->n_strips, u0 = ((int)i - row * f->n_strips) * VXK_STRIP;
    int u1 = vxk_mini(u0 + VXK_STRIP, f->width);
    uint32_t n[VXK_N_COUNTS];
    for (int k = 0; k < VXK_N_COUNTS; k++)
        n[k] = 0;
    for (int u = u0; u < u1; u++) {
        int why = vxk_prepare_pixel(a, row, u);
        n[why]++;
    }
    for (int k = 0; k < VXK_N_COUNTS; k++)
        if (n[k])
            vxk_atomic_add64(&a->s.c->counts[k], n[k]);
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

/* Falls with the square of the depth, and with the angle at which the surface is seen. */
VXK_FN int32_t vxk_obs_weight(const struct vxk_frame *f, float d, float slope)
{
    int32_t w = vxk_rint(vxk_min(f->weight_scale * slope / (d * d), 1024.0f));
    return vxk_mini(vxk_maxi(w, 1), f->weight_max);
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
    float q = m->sum / m->n, det = 4.0f * (m->suu * m->svv - m->suv * m->suv), band, near, g;
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
    o.lo = hit ? o.d - band : VXK_PIXEL_NONE;
    o.hi = hit ? o.d + f->trunc : -VXK_PIXEL_NONE;
    o.free = hit ? o.lo - 3.0f * f->noise * o.d * o.d : o.d > 0.0f ? f->max_d : -VXK_PIXEL_NONE;
    o.b.hit_lo = vxk_min(o.lo, thin ? near - f->trunc : VXK_PIXEL_NONE);
    o.b.hit_hi = vxk_max(o.hi, thin ? near + f->trunc : -VXK_PIXEL_NONE);
    o.b.free_any = o.free;
    o.b.free_all = vxk_min(o.free, thin ? near - f->trunc : VXK_PIXEL_NONE);
    return o;
}

VXK_FN void vxk_store_pixel(const struct vxk_frame_args *a, uint32_t at, const struct vxk_smoothed *o)
{
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

/* The sums of the readings of a strip. */
struct vxk_smooth_strip {
    float q0[VXK_STRIP], sum[VXK_STRIP], n[VXK_STRIP], near[VXK_STRIP], suu[VXK_STRIP], suv[VXK_STRIP],
        svv[VXK_STRIP], sqx[VXK_STRIP], sqy[VXK_STRIP];
};

/* The first n readings of a strip, from their sums: writes s.pixel and s.strip. */
VXK_FN_APART void vxk_smooth_end(const struct vxk_frame_args *a, int row, int u0, int n,
                                 const struct vxk_smooth_strip *in)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_smooth_strip s = *in;
    float raw[VXK_STRIP];
    struct vxk_smoothed o[VXK_STRIP];
    for (int k = 0; k < VXK_STRIP; k++)
        raw[k] = k < n ? a->s.depth[row * f->width + u0 + k] : 0.0f;
    for (int k = 0; k < VXK_STRIP; k++) {
        struct vxk_smooth m;
        m.q0 = s.q0[k];
        m.sum = s.sum[k];
        m.n = s.n[k];
        m.near = s.near[k];
        m.suu = s.suu[k];
        m.suv = s.suv[k];
        m.svv = s.svv[k];
        m.sqx = s.sqx[k];
        m.sqy = s.sqy[k];
        o[k] = vxk_smooth_solve(f, row, u0 + k, raw[k], &m);
    }
    for (int k = 0; k < n; k++)
        vxk_store_pixel(a, (uint32_t)(row * f->width + u0 + k), &o[k]);
    for (int k0 = 0; k0 < n; k0 += VXK_TILE) {
        struct vxk_bounds b = vxk_bounds_none();
        for (int k = k0; k < vxk_mini(k0 + VXK_TILE, n); k++)
            vxk_bounds_join(&b, &o[k].b);
        a->s.strip[row * f->n_tx[0] + (u0 + k0) / VXK_TILE] = b;
    }
}

#define vxk_frame_smooth_args vxk_frame_args
VXK_FN void vxk_frame_smooth(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame *f = &a->f;
    const float *inverse = a->s.inverse;
    const int row = (int)i / f->n_strips, u0 = ((int)i - row * f->n_strips) * VXK_STRIP, width = f->width;
    const int n = vxk_mini(VXK_STRIP, width - u0);
    const float gate = 7.5f * f->noise;
    float most = 0.0f;
    struct vxk_smooth_strip s;
    int step;
    for (int k = 0; k < VXK_STRIP; k++) {
        s.near[k] = s.q0[k] = k < n ? inverse[row * width + u0 + k] : 0.0f;
        s.sum[k] = s.q0[k];
        s.n[k] = 1.0f;
        s.suu[k] = s.suv[k] = s.svv[k] = s.sqx[k] = s.sqy[k] = 0.0f;
        most = vxk_max(most, s.q0[k]);
    }
    step = vxk_smooth_step(f, most);
    for (int j = 0; j <= 2; j++) {
        int dv = j * step;
        if (row - dv < 0 || row + dv >= f->height)
            continue;
        for (int h = j ? -2 : 1; h <= 2; h++) {
            int du = h * step;
            const float *p, *m;
            float x = (float)du, y = (float)dv, close = (j <= 1) & (h >= -1) & (h <= 1) ? 1.0f : 0.0f;
            if (u0 - vxk_maxi(du, -du) < 0 || u0 + VXK_STRIP - 1 + vxk_maxi(du, -du) >= width)
                continue;
            p = inverse + (row + dv) * width + u0 + du;
            m = inverse + (row - dv) * width + u0 - du;
            for (int k = 0; k < VXK_STRIP; k++) {
                float qp = p[k], qm = m[k], q0 = s.q0[k], off = vxk_abs(qp + qm - 2.0f * q0);
                float w = (qp > 0.0f) & (qm > 0.0f) & (off < gate + 0.25f * q0 * q0) ? 1.0f : 0.0f;
                s.near[k] = vxk_max(s.near[k], close * vxk_max(qp, qm));
                s.sum[k] += w * (qp + qm);
                s.n[k] += 2.0f * w;
                s.suu[k] += w * (x * x);
                s.suv[k] += w * (x * y);
                s.svv[k] += w * (y * y);
                s.sqx[k] += w * (x * (qp - qm));
                s.sqy[k] += w * (y * (qp - qm));
            }
        }
    }
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
    il = 1.0f / vxk_max(zl, VXK_NEAREST); /* nearer voxels have no pixel */
    ih = 1.0f / zh;
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
