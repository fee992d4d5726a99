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
    b.min_all = VXK_D_OPEN;
    b.min_hit = VXK_D_OPEN;
    b.max_hit = VXK_D_INVALID;
    b.max_all = VXK_D_INVALID;
    return b;
}
VXK_FN void vxk_bounds_add(struct vxk_bounds *b, float d)
{
    b->min_all = vxk_min(b->min_all, d);
    b->max_all = vxk_max(b->max_all, d);
    if (d > 0.0f && d < VXK_D_OPEN) {
        b->min_hit = vxk_min(b->min_hit, d);
        b->max_hit = vxk_max(b->max_hit, d);
    }
}
VXK_FN void vxk_bounds_join(struct vxk_bounds *b, const struct vxk_bounds *o)
{
    b->min_all = vxk_min(b->min_all, o->min_all);
    b->min_hit = vxk_min(b->min_hit, o->min_hit);
    b->max_hit = vxk_max(b->max_hit, o->max_hit);
    b->max_all = vxk_max(b->max_all, o->max_all);
}

/* Element: 8 readings of a row.  Writes s.depth and s.strip, counts by reason. */
#define vxk_frame_prepare_args vxk_frame_args
VXK_FN void vxk_frame_prepare(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame *f = &a->f;
    int row = (int)i / f->n_tx[0], u0 = ((int)i - row * f->n_tx[0]) * VXK_TILE;
    int u1 = vxk_mini(u0 + VXK_TILE, f->width);
    uint32_t n[VXK_N_COUNTS];
    struct vxk_bounds b = vxk_bounds_none();
    for (int k = 0; k < VXK_N_COUNTS; k++)
        n[k] = 0;
    for (int u = u0; u < u1; u++) {
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
        n[why]++;
        vxk_bounds_add(&b, d);
    }
    a->s.strip[i] = b;
    for (int k = 0; k < VXK_N_COUNTS; k++)
        if (n[k])
            vxk_atomic_add64(&a->s.c->counts[k], n[k]);
}

/* Element: a tile of level 0 (8 strips) or above (4 x 4 tiles of the level below). */
#define vxk_frame_level_args vxk_frame_args
VXK_FN void vxk_frame_level(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame *f = &a->f;
    int level = a->level, n_tx = f->n_tx[level], ty = (int)i / n_tx, tx = (int)i - ty * n_tx;
    struct vxk_bounds b = vxk_bounds_none();
    if (level == 0) {
        int r1 = vxk_mini(ty * VXK_TILE + VXK_TILE, f->height);
        for (int r = ty * VXK_TILE; r < r1; r++)
            vxk_bounds_join(&b, &a->s.strip[r * n_tx + tx]);
    } else {
        int y1 = vxk_mini(ty * 4 + 4, f->n_ty[level - 1]), x1 = vxk_mini(tx * 4 + 4, f->n_tx[level - 1]);
        for (int y = ty * 4; y < y1; y++)
            for (int x = tx * 4; x < x1; x++)
                vxk_bounds_join(&b, &a->s.level[level - 1][y * f->n_tx[level - 1] + x]);
    }
    a->s.level[level][i] = b;
}

/* Level whose tiles cover a span of pixels with few looks. */
VXK_FN int vxk_level_for(int span) { return span > 192 ? 2 : span > 48 ? 1 : 0; }

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

/*
 * Bounds of the readings behind a sphere (sensor coordinates, voxels).
 * 0: the sphere is out of view.  1: *b holds.  2: too near to say.  *whole = 1 when every point of it is in view.
 */
VXK_FN int vxk_depth_bounds(const struct vxk_frame *f, const struct vxk_frame_space *s, const struct vxk_vec3 *q, float r, struct vxk_bounds *b, int *whole)
{
    float zl = q->z - r, zh = q->z + r, il, ih, ul, uh, vl, vh, w = (float)f->width, h = (float)f->height;
    int u0, u1, v0, v1, level, shift;
    *whole = 0;
    if (zh <= 0.5f)
        return 0;
    if (zl < 1.0f)
        return 2;
    il = 1.0f / zl;
    ih = 1.0f / zh;
    /* half a pixel and a little more than the rounding of vxk_project */
    ul = f->fx * (q->x - r) * (q->x - r < 0 ? il : ih) + f->cx + 0.45f;
    uh = f->fx * (q->x + r) * (q->x + r > 0 ? il : ih) + f->cx + 0.55f;
    vl = f->fy * (q->y - r) * (q->y - r < 0 ? il : ih) + f->cy + 0.45f;
    vh = f->fy * (q->y + r) * (q->y + r > 0 ? il : ih) + f->cy + 0.55f;
    if (!(uh >= 0.0f && vh >= 0.0f && ul < w && vl < h))
        return 0;
    *whole = ul >= 0.0f && vl >= 0.0f && uh < w && vh < h;
    u0 = (int)vxk_max(ul, 0.0f);
    u1 = (int)vxk_min(uh, w - 1.0f);
    v0 = (int)vxk_max(vl, 0.0f);
    v1 = (int)vxk_min(vh, h - 1.0f);
    level = vxk_level_for(vxk_maxi(u1 - u0, v1 - v0));
    shift = 3 + 2 * level;
    *b = vxk_bounds_none();
    for (int v = v0 >> shift; v <= v1 >> shift; v++)
        for (int u = u0 >> shift; u <= u1 >> shift; u++)
            vxk_bounds_join(b, &s->level[level][v * f->n_tx[level] + u]);
    return 1;
}

#endif
