/*
 * frame_update.h - what a frame says about a voxel, and what becomes of the voxel.
 *
 * Two kernels ask the same question: vxk_frame_cell for the new masks, vxk_frame_leaf for the new values.
 * Both get their answer from vxk_observe_plane, vxk_row_obs and vxk_merge, so that mask and value can't
 * disagree.
 */
#ifndef VXK_BODY_FRAME_UPDATE_H
#define VXK_BODY_FRAME_UPDATE_H

#include "frame_select.h"

#include <stdbool.h>

enum {
    VXK_OBS_NONE = 0,
    VXK_OBS_BAND = 1, /* TSDF: within the band; occupancy: hit */
    VXK_OBS_NEAR = 2, /* in front of the band, but the sensor's noise could have put it there: only moves
                         active voxels */
    VXK_OBS_FREE = 3  /* seen through */
};

struct vxk_obs {
    int32_t what;
    int32_t q; /* TSDF: observed distance, stored units */
    int32_t weight;
};

/* A leaf as the frame sees it. */
struct vxk_view {
    struct vxk_vec3 first; /* depth: sensor coordinates of its first voxel's centre */
    uint32_t hit;          /* LiDAR: touched leaf or VXK_NONE */
    const uint64_t *clear; /* LiDAR: what its beams cleared, or NULL: nothing */
};

/* work: the cell's place in the work list. */
VXK_FN struct vxk_view vxk_view_cell(const struct vxk_frame_args *a, const struct vxk_frame_word *fw,
                                     uint32_t cell, uint32_t work)
{
    struct vxk_view v;
    int32_t base[3];
    v.first.x = v.first.y = v.first.z = 0.0f;
    v.hit = VXK_NONE;
    v.clear = (const uint64_t *)0;
    if (a->f.sensor == VXK_SENSOR_DEPTH) {
        vxk_frame_cell_base(a, fw, cell, base);
        v.first = vxk_to_sensor(&a->f, (float)base[0] + 0.5f, (float)base[1] + 0.5f, (float)base[2] + 0.5f);
    } else {
        v.hit = vxk_touched_leaf(&a->s, a->s.chunk[fw->chunk >> 6].slot, fw->chunk & 63, cell);
        if (a->f.carve)
            v.clear = &a->s.clear[(uint64_t)work * 8];
    }
    return v;
}

/* What the frame says about a row of eight voxels along z: bit k of each mask is voxel k. */
struct vxk_row {
    uint32_t band, near, free;
    uint32_t thin;    /* depth: in the band of what is in front of the pixel's surface */
    int32_t pixel[8]; /* depth: the voxel's pixel */
    float z[8];       /* depth: the voxel's depth */
};

/* Where voxel (x, y, z) of a leaf is, from its first one's centre, in the axes R. */
VXK_FN struct vxk_vec3 vxk_leaf_offset(const float *R, uint32_t x, uint32_t y, uint32_t z)
{
    struct vxk_vec3 p;
    p.x = ((float)x * R[0] + (float)y * R[3]) + (float)z * R[6];
    p.y = ((float)x * R[1] + (float)y * R[4]) + (float)z * R[7];
    p.z = ((float)x * R[2] + (float)y * R[5]) + (float)z * R[8];
    return p;
}
VXK_FN struct vxk_vec3 vxk_add3(const struct vxk_vec3 *a, const struct vxk_vec3 *b)
{
    struct vxk_vec3 p;
    p.x = a->x + b->x;
    p.y = a->y + b->y;
    p.z = a->z + b->z;
    return p;
}
/* Sensor coordinates of the row's first voxel. */
VXK_FN struct vxk_vec3 vxk_row_start(const float *R, const struct vxk_vec3 *first, uint32_t x, uint32_t y)
{
    struct vxk_vec3 o = vxk_leaf_offset(R, x, y, 0);
    return vxk_add3(first, &o);
}

/* Pixel of a point in sensor coordinates; *z: its depth, put beyond all where it has no pixel. */
VXK_FN int32_t vxk_pixel_of(const struct vxk_frame *f, float x, float y, float *z)
{
    float w = (float)f->width, h = (float)f->height, inv = vxk_reciprocal(vxk_max(*z, VXK_NEAREST));
    float u = f->fx * x * inv + (f->cx + 0.5f), v = f->fy * y * inv + (f->cy + 0.5f);
    int ok = (u >= 0.0f) & (v >= 0.0f) & (u < w) & (v < h) & (*z > VXK_NEAREST);
    u = vxk_min(vxk_max(u, 0.0f), w - 1.0f);
    v = vxk_min(vxk_max(v, 0.0f), h - 1.0f);
    *z = ok ? *z : 3.0f * VXK_PIXEL_NONE;
    return vxk_pixel_place(f, (int32_t)u, (int32_t)v);
}

/* The same for a point that is surely in view, a voxel or more in front of the sensor. */
VXK_FN int32_t vxk_pixel_in_view(const struct vxk_frame *f, float x, float y, float z)
{
    float inv = vxk_reciprocal(z);
    float u = f->fx * x * inv + (f->cx + 0.5f), v = f->fy * y * inv + (f->cy + 0.5f);
    return vxk_pixel_place(f, (int32_t)u, (int32_t)v);
}

/* What a pixel says about a voxel at depth z. */
struct vxk_said {
    bool surface; /* in the band of the surface, or */
    bool thin;    /* of what is in front of it */
    bool near, free;
};
VXK_FN struct vxk_said vxk_pixel_says(const struct vxk_frame *f, const struct vxk_pixel *p, float z)
{
    struct vxk_said o;
    const bool before = z < p->lo, close = vxk_abs(p->front - z) <= f->trunc, through = z <= p->free;
    o.surface = !before & (z <= p->hi);
    o.thin = before & close;
    o.free = before & !close & through;
    o.near = before & !close & !through;
    return o;
}

/*
 * The rows of plane x whose bits are set in `asked`.  All pixels are found before the first is asked: they
 * come from memory meanwhile.  Inner loops have no branches and use arrays that nothing else can name: a CPU
 * runs the eight voxels in one go.
 */
VXK_FN_APART void vxk_plane_depth(const struct vxk_frame_args *a, const struct vxk_vec3 *first, uint32_t x,
                                  uint32_t asked, struct vxk_row row[8])
{
    const struct vxk_frame f = a->f;
    const struct vxk_pixel *pixel = a->s.pixel;
    const struct vxk_vec3 p0 = *first;
    const float sx = f.R[6], sy = f.R[7], sz = f.R[8];
    for (uint32_t left = asked; left; left &= left - 1) {
        const uint32_t y = vxk_ctz32(left);
        const float ox = (float)x * f.R[0] + (float)y * f.R[3], oy = (float)x * f.R[1] + (float)y * f.R[4],
                    oz = (float)x * f.R[2] + (float)y * f.R[5];
        int32_t at[8];
        float zs[8];
        for (int k = 0; k < 8; k++) {
            float z = p0.z + (oz + (float)k * sz);
            at[k] = vxk_pixel_of(&f, p0.x + (ox + (float)k * sx), p0.y + (oy + (float)k * sy), &z);
            zs[k] = z;
        }
        vxk_copy8(row[y].pixel, at);
        vxk_copy8(row[y].z, zs);
        for (int k = 0; k < 8; k++)
            vxk_prefetch(&pixel[at[k]]);
    }
    for (uint32_t left = asked; left; left &= left - 1) {
        const uint32_t y = vxk_ctz32(left);
        uint32_t said[8], all = 0;
        float lo[8], hi[8], free[8], front[8], zs[8];
        vxk_copy8(zs, row[y].z);
        vxk_gather8(&pixel->lo, row[y].pixel, lo, hi, free, front);
        for (int k = 0; k < 8; k++) {
            struct vxk_pixel p;
            struct vxk_said v;
            p.lo = lo[k];
            p.hi = hi[k];
            p.free = free[k];
            p.front = front[k];
            v = vxk_pixel_says(&f, &p, zs[k]);
            said[k] = ((uint32_t)(v.surface | v.thin) | (uint32_t)v.near << 8 | (uint32_t)v.free << 16 |
                       (uint32_t)v.thin << 24)
                      << k;
        }
        for (int k = 0; k < 8; k++)
            all |= said[k];
        row[y].band = all & 255;
        row[y].near = f.carve ? all >> 8 & 255 : 0;
        row[y].free = f.carve ? all >> 16 & 255 : 0;
        row[y].thin = all >> 24;
    }
}

VXK_FN void vxk_row_lidar(const struct vxk_frame_args *a, const struct vxk_view *v, uint32_t x, uint32_t y,
                          struct vxk_row *o)
{
    if (v->hit < a->s.room_touch_leaf)
        o->band = (uint32_t)(a->s.hit_mask[(uint64_t)v->hit * 8 + x] >> (8 * y)) & 255;
    if (v->clear)
        o->free = (uint32_t)(v->clear[x] >> (8 * y)) & 255 & ~o->band;
}

/* The rows of a plane that have something: bit y. */
VXK_FN uint32_t vxk_rows_of(uint64_t plane)
{
    uint32_t rows = 0;
    for (uint32_t y = 0; y < 8; y++)
        rows |= plane >> (8 * y) & 255 ? 1u << y : 0;
    return rows;
}

/* What the frame says about the rows of plane x whose bits are set in `asked`; nothing about the others. */
VXK_FN void vxk_observe_plane(const struct vxk_frame_args *a, const struct vxk_view *v, uint32_t x,
                              uint32_t asked, struct vxk_row row[8])
{
    for (uint32_t y = 0; y < 8; y++)
        row[y].band = row[y].near = row[y].free = row[y].thin = 0;
    if (a->f.sensor == VXK_SENSOR_DEPTH)
        vxk_plane_depth(a, &v->first, x, asked, row);
    else
        for (; asked; asked &= asked - 1)
            vxk_row_lidar(a, v, x, vxk_ctz32(asked), &row[vxk_ctz32(asked)]);
}

/* A depth camera's observation of a voxel at depth z; front: of its pixel. */
VXK_FN struct vxk_obs vxk_obs_depth(const struct vxk_frame *f, uint32_t what, uint32_t thin,
                                    const struct vxk_sample *s, float front, float z)
{
    struct vxk_obs o;
    float sdf = thin ? front - z : (s->d - z) * s->g;
    o.what = (int32_t)what;
    o.q = vxk_quantise(f, vxk_min(sdf, f->trunc));
    o.weight = thin ? s->thin : s->weight;
    return o;
}

/* A LiDAR's observation of voxel n of touched leaf `hit`. */
VXK_FN struct vxk_obs vxk_obs_lidar(const struct vxk_frame_args *a, uint32_t what, uint32_t hit, uint32_t n)
{
    struct vxk_obs o;
    o.what = (int32_t)what;
    o.q = 0;
    o.weight = 1;
    if (what == VXK_OBS_BAND) {
        uint32_t place = vxk_hit_place(&a->s, hit, n);
        if (place != VXK_NONE)
            o.q = vxk_hit_mean(a->s.acc[place], &o.weight);
        o.weight = vxk_mini(o.weight, 255);
    } else {
        o.q = vxk_quantise(&a->f, a->f.trunc);
    }
    return o;
}

VXK_FN uint32_t vxk_what(uint32_t band, uint32_t near, uint32_t freed)
{
    return band ? VXK_OBS_BAND : freed ? VXK_OBS_FREE : near ? VXK_OBS_NEAR : VXK_OBS_NONE;
}

/* The observation of voxel k of a row (voxel n of the leaf). */
VXK_FN struct vxk_obs vxk_row_obs(const struct vxk_frame_args *a, const struct vxk_view *v,
                                  const struct vxk_row *row, uint32_t k, uint32_t n)
{
    uint32_t what = vxk_what(row->band >> k & 1, row->near >> k & 1, row->free >> k & 1);
    int32_t at = row->pixel[k];
    return a->f.sensor == VXK_SENSOR_DEPTH ? vxk_obs_depth(&a->f, what, row->thin >> k & 1, &a->s.sample[at],
                                                           a->s.pixel[at].front, row->z[k])
                                           : vxk_obs_lidar(a, what, v->hit, n);
}

/* Where a beam passes a cell. */
struct vxk_pass {
    int m, p, q; /* the ray's main axis, and the other two in order */
};
VXK_FN struct vxk_pass vxk_pass_of(int main_axis)
{
    struct vxk_pass o;
    o.m = main_axis;
    o.p = main_axis == 0 ? 1 : 0;
    o.q = main_axis == 2 ? 1 : 2;
    return o;
}

/* Can the ray clear voxels of the cell whose first voxel's centre is `corner` (map axes, from where it
 * began)? */
VXK_FN int vxk_beam_meets(const struct vxk_frame *f, const struct vxk_ray *ray, const float corner[3],
                          struct vxk_pass *o)
{
    float centre[3], along = 0.0f, c0, c1, c2;
    for (int k = 0; k < 3; k++) {
        centre[k] = corner[k] + 3.5f;
        along += centre[k] * ray->d[k];
    }
    c0 = centre[1] * ray->d[2] - centre[2] * ray->d[1];
    c1 = centre[2] * ray->d[0] - centre[0] * ray->d[2];
    c2 = centre[0] * ray->d[1] - centre[1] * ray->d[0];
    if (c0 * c0 + c1 * c1 + c2 * c2 > VXK_CELL_REACH * VXK_CELL_REACH || along < -VXK_CELL_REACH)
        return 0;
    if (along - VXK_CELL_REACH > vxk_clear_to(f, ray->r))
        return 0;
    *o = vxk_pass_of(vxk_abs(ray->d[2]) > vxk_max(vxk_abs(ray->d[0]), vxk_abs(ray->d[1])) ? 2
                     : vxk_abs(ray->d[0]) >= vxk_abs(ray->d[1])                           ? 0
                                                                                          : 1);
    return 1;
}

VXK_FN float vxk_of_axis(const float v[3], int axis)
{
    return axis == 0 ? v[0] : axis == 1 ? v[1] : v[2];
}

/* Where a ray crosses a slice of a cell. */
struct vxk_crossing {
    int32_t i, j;  /* the voxel on the near side of the crossing, along the other axes; -1 .. 7 */
    uint32_t near; /* bit k: voxel (i + (k & 1), j + (k >> 1)) lies in the cell and near the ray */
};

/* Crosses slice `slice` along the main axis.  Left out: centres that surely lie more than half a voxel from
 * the ray, whose distance in the slice shrinks by no more than the ray's part along the main axis. */
VXK_FN struct vxk_crossing vxk_beam_slice(const struct vxk_ray *ray, const float corner[3],
                                          const struct vxk_pass *o, int slice)
{
    struct vxk_crossing x;
    float cp = vxk_of_axis(corner, o->p), cq = vxk_of_axis(corner, o->q), dm = vxk_of_axis(ray->d, o->m);
    float t = (vxk_of_axis(corner, o->m) + (float)slice) / dm;
    float a = t * vxk_of_axis(ray->d, o->p) - cp, b = t * vxk_of_axis(ray->d, o->q) - cq;
    float fa = vxk_floor(a), fb = vxk_floor(b);
    x.near = 0;
    x.i = x.j = 0;
    if (!(fa >= -1.0f && fa <= 7.0f && fb >= -1.0f && fb <= 7.0f))
        return x;
    x.i = (int32_t)fa;
    x.j = (int32_t)fb;
    a -= fa;
    b -= fb;
    dm *= dm;
    for (uint32_t k = 0; k < 4; k++) {
        float u = k & 1 ? 1.0f - a : a, v = k >> 1 ? 1.0f - b : b;
        int32_t i = x.i + (int32_t)(k & 1), j = x.j + (int32_t)(k >> 1);
        x.near |= (uint32_t)((u * u + v * v) * dm < 0.27f) & (uint32_t)(i >= 0) & (uint32_t)(i <= 7) &
                          (uint32_t)(j >= 0) & (uint32_t)(j <= 7)
                      ? 1u << k
                      : 0;
    }
    return x;
}

/* Number of voxel k of a crossing in the leaf. */
VXK_FN uint32_t vxk_crossing_voxel(const struct vxk_pass *o, int slice, const struct vxk_crossing *at,
                                   uint32_t k)
{
    int32_t i = at->i + (int32_t)(k & 1), j = at->j + (int32_t)(k >> 1);
    int32_t x = o->m == 0 ? slice : i, y = o->m == 1 ? slice : o->m == 0 ? i : j, z = o->m == 2 ? slice : j;
    return (uint32_t)(x << 6 | y << 3 | z);
}

/* Does the ray clear voxel n of the cell whose first voxel's centre is `corner`? */
VXK_FN int vxk_beam_clears(const struct vxk_frame *f, const struct vxk_ray *ray, const float corner[3],
                           uint32_t n)
{
    float w[3];
    w[0] = corner[0] + (float)(n >> 6);
    w[1] = corner[1] + (float)(n >> 3 & 7);
    w[2] = corner[2] + (float)(n & 7);
    return vxk_line_clears(f, ray, w);
}

/* Could the range of a voxel's bin clear it, at this distance?  Within half a voxel of the beam, `along` is
 * less than a voxel short of the distance; the beam's own test follows. */
VXK_FN uint32_t vxk_bin_may_clear(const struct vxk_frame *f, int32_t bin, float range, float dist)
{
    return (bin >= 0) & (range > 0.0f) & (vxk_min(range, f->max_d + f->clear) - dist > f->clear - 1.0f);
}

/* A cell as a LiDAR sees it: in the axes that the sensor had when it looked there. */
struct vxk_sight {
    float corner[3];        /* its first voxel's centre, map axes, from f.t */
    const float *R;         /* axes */
    struct vxk_vec3 first;  /* its first voxel's centre and */
    struct vxk_vec3 middle; /* its own in those axes */
};

VXK_FN struct vxk_sight vxk_sight_cell(const struct vxk_frame_args *a, const struct vxk_frame_word *fw,
                                       uint32_t cell)
{
    struct vxk_sight o;
    int32_t base[3];
    vxk_frame_cell_base(a, fw, cell, base);
    for (int k = 0; k < 3; k++)
        o.corner[k] = ((float)base[k] + 0.5f) - a->f.t[k];
    if (a->s.skew.on) {
        float middle[3] = {o.corner[0] + 3.5f, o.corner[1] + 3.5f, o.corner[2] + 3.5f};
        const struct vxk_column *c = &a->s.skew.column[vxk_skew_column(&a->f, &a->s, middle)];
        o.R = c->R;
        o.first = vxk_column_local(c, o.corner);
        o.middle = vxk_column_local(c, middle);
    } else {
        o.R = a->f.R;
        o.first = vxk_to_sensor(&a->f, (float)base[0] + 0.5f, (float)base[1] + 0.5f, (float)base[2] + 0.5f);
        o.middle = vxk_to_sensor(&a->f, (float)base[0] + 4.0f, (float)base[1] + 4.0f, (float)base[2] + 4.0f);
    }
    return o;
}

/* A cell's first voxel from where ray i began. */
VXK_FN void vxk_ray_corner(const struct vxk_frame_space *s, uint32_t i, const float corner[3], float o[3])
{
    for (uint32_t k = 0; k < 3; k++)
        o[k] = s->skew.on ? corner[k] - s->skew.origin[3 * (uint64_t)i + k] : corner[k];
}

/* Record of the cell before the frame, or NULL; *tile = 1 when it was a free tile. */
VXK_FN const struct vxk_leaf *vxk_frame_old_leaf(const struct vxk_frame_args *a,
                                                 const struct vxk_frame_word *fw, uint32_t cell, int *tile)
{
    const struct vxk_word *w = vxk_frame_old_word(a, &a->s.chunk[fw->chunk >> 6], fw->chunk & 63);
    *tile = w ? (int)(w->tile >> cell & 1) : 0;
    return w && (w->leaf >> cell & 1) ? vxk_leaf_at(&a->g, w, cell) : (const struct vxk_leaf *)0;
}

/* Asks the bins of a row's voxels for their beams: bit k of the result is set where voxel k is cleared; those
 * in `done` are not asked about. */
VXK_FN uint32_t vxk_row_clears(const struct vxk_frame_args *a, const struct vxk_sight *v, uint32_t x,
                               uint32_t y, uint32_t done)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_frame_space *s = &a->s;
    struct vxk_vec3 p = vxk_row_start(v->R, &v->first, x, y);
    const float sx = v->R[6], sy = v->R[7], sz = v->R[8];
    uint32_t maybe[8], clear = 0;
    int32_t bin[8];
    float range[8];
    for (int k = 0; k < 8; k++)
        bin[k] = vxk_lidar_bin(f, s, p.x + (float)k * sx, p.y + (float)k * sy, p.z + (float)k * sz);
    for (int k = 0; k < 8; k++)
        range[k] = s->depth[vxk_maxi(bin[k], 0)];
    for (int k = 0; k < 8; k++) {
        float px = p.x + (float)k * sx, py = p.y + (float)k * sy, pz = p.z + (float)k * sz;
        maybe[k] = vxk_bin_may_clear(f, bin[k], range[k], vxk_sqrt(px * px + py * py + pz * pz));
    }
    for (uint32_t k = 0; k < 8; k++) {
        float w[3];
        w[0] = v->corner[0] + (float)x;
        w[1] = v->corner[1] + (float)y;
        w[2] = v->corner[2] + (float)k;
        if (maybe[k] && !(done >> k & 1) && vxk_ray_clears(f, s, vxk_bin_ray(f, s, bin[k]), w))
            clear |= 1u << k;
    }
    return clear;
}

/* Element: a work cell of a LiDAR frame: the voxels that beams clear.  Where few beams can meet it, walks
 * them; else its voxels ask their bins.  Voxels that are free already stay so whatever is found: the mask
 * begins with them, and nothing is asked about what it holds. */
#define vxk_frame_beams_args vxk_frame_args
VXK_FN void vxk_frame_beams(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_frame_space *s = &a->s;
    const struct vxk_frame_word *fw = &s->word[s->work[i] >> 6];
    struct vxk_sight sight = vxk_sight_cell(a, fw, s->work[i] & 63);
    int tile;
    const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, s->work[i] & 63, &tile);
    uint64_t clear[8];
    int32_t rect[4];
    for (int x = 0; x < 8; x++)
        clear[x] = a->fade.on ? 0 : old ? old->free[x] : tile ? ~0ull : 0;
    if (fw->flags & VXK_WORD_QUIET) {
        for (int x = 0; x < 8; x++)
            a->s.clear[(uint64_t)i * 8 + (uint32_t)x] = 0;
        return;
    }
    if (vxk_cell_bins(f, s, &sight.middle, rect)) {
        for (int32_t v = rect[0]; v <= rect[1]; v++) {
            for (int32_t u = rect[2]; u <= rect[3]; u++) {
                int32_t c = vxk_turned_column(f, u), bin = v * f->width + c;
                struct vxk_pass pass;
                float corner[3];
                uint32_t ray;
                if (c < 0 || !(s->depth[bin] > 0.0f))
                    continue;
                ray = vxk_bin_ray(f, s, bin);
                vxk_ray_corner(s, ray, sight.corner, corner);
                if (!vxk_beam_meets(f, &s->ray[ray], corner, &pass))
                    continue;
                for (int slice = 0; slice < 8; slice++) {
                    struct vxk_crossing x = vxk_beam_slice(&s->ray[ray], corner, &pass, slice);
                    for (; x.near; x.near &= x.near - 1) {
                        uint32_t n = vxk_crossing_voxel(&pass, slice, &x, vxk_ctz32(x.near));
                        if (!(clear[n >> 6] >> (n & 63) & 1) && vxk_beam_clears(f, &s->ray[ray], corner, n))
                            clear[n >> 6] |= 1ull << (n & 63);
                    }
                }
            }
        }
    } else {
        for (uint32_t x = 0; x < 8; x++)
            for (uint32_t y = 0; y < 8; y++) {
                uint32_t done = (uint32_t)(clear[x] >> (8 * y)) & 255;
                if (done != 255)
                    clear[x] |= (uint64_t)vxk_row_clears(a, &sight, x, y, done) << (8 * y);
            }
    }
    for (int x = 0; x < 8; x++)
        a->s.clear[(uint64_t)i * 8 + (uint32_t)x] = clear[x];
}

enum { VXK_FRONT_CAP = 255 };

/* Running average of a stored distance; |sum| < 2^24, so that single precision holds it exactly. */
VXK_FN int32_t vxk_tsdf_mean(int32_t t, int32_t w, int32_t q, int32_t weight)
{
    return vxk_rint(vxk_quotient((float)(t * w + q * weight), (float)(w + weight)));
}

/*
 * An observation of a voxel that has a distance, a weight and a front; after FREE a weight of 0 says that it
 * is free.
 *
 * Seen through, half of the evidence goes, and with the last of it the voxel is free; what was behind a
 * surface never turns into the front of one by averaging.  But a voxel in front of a surface is seen through
 * from the side, and is there all the same: its front counts what saw it there, less twice what saw it behind
 * and half of what saw through.  While any is left, being seen through only moves the surface away.
 */
VXK_FN uint32_t vxk_tsdf_observe(uint32_t v, const struct vxk_obs *o)
{
    const int32_t t = vxk_tsdf_distance(v), w = (int32_t)vxk_tsdf_weight(v),
                  front = (int32_t)vxk_tsdf_front(v);
    const bool through = o->what == VXK_OBS_FREE, hollow = through & !front;
    /* one average, whatever was seen: lanes of a GPU that differ take turns */
    const int32_t had = hollow ? w >> 1 : w, from = through & !hollow ? vxk_maxi(t, 0) : t,
                  mean = vxk_tsdf_mean(from, had, o->q, o->weight),
                  sign = o->what == VXK_OBS_BAND ? o->q < 0 ? -4 : 2
                         : through               ? -1
                                                 : 0,
                  seen = front + sign * o->weight;
    return vxk_tsdf_pack(hollow & ((had == 0) | (t < 0)) ? t : mean,
                         (uint32_t)(hollow ? had : vxk_mini(w + o->weight, VXK_WEIGHT_CAP))) |
           (uint32_t)vxk_mini(vxk_maxi(seen, 0), VXK_FRONT_CAP) << 24;
}

/* Occupancy value: log-odds in 1/1024 in the low 16 bits (signed), the high 16 bits are 0. */
VXK_FN int32_t vxk_occ_logodds(uint32_t v)
{
    return (int32_t)(int16_t)(uint16_t)(v & 0xffff);
}
VXK_FN uint32_t vxk_occ_pack(int32_t l)
{
    return (uint32_t)(uint16_t)(int16_t)l;
}

/*
 * The voxel's value after an observation; *gone = 1 when it is free and needs no value any more.
 * state: VXK_UNKNOWN, VXK_FREE or VXK_ACTIVE before the frame (old = its value when active).
 * Called for BAND in any state, for NEAR and FREE when active.
 *
 * Frames that repeat must come to rest.  So one number decides alone when a voxel leaves the active ones, its
 * log-odds or its weight: free is the lowest value of that number, to which it falls and from which it starts
 * again, and every observation keeps the order of two values.  At the end of pass after pass over the same
 * frames it can then only rise or only fall, so it ends at a fixed point and never goes round.  The weight
 * hangs on whether the front is 0, which is such a number itself; neither hangs on the distance.
 */
VXK_FN uint32_t vxk_merge(const struct vxk_frame *f, int state, uint32_t old, const struct vxk_obs *o,
                          int *gone)
{
    *gone = 0;
    if (f->mode == 0) {
        uint32_t v = vxk_tsdf_observe(state == VXK_ACTIVE ? old : 0, o);
        *gone = o->what == VXK_OBS_FREE && vxk_tsdf_weight(v) == 0;
        return v;
    } else {
        int32_t l = state == VXK_ACTIVE ? vxk_occ_logodds(old) : state == VXK_FREE ? f->lo_free : 0;
        l += o->what == VXK_OBS_BAND ? f->lo_hit : f->lo_miss;
        l = vxk_mini(vxk_maxi(l, f->lo_free), f->lo_max);
        *gone = l <= f->lo_free;
        return vxk_occ_pack(l);
    }
}

/* What the frame can say about the quarters of a depth frame's cell, 4 x 4 x 8 voxels: number 2 (x >> 2) + (y
 * >> 2). */
VXK_FN void vxk_cell_looks(const struct vxk_frame_args *a, const struct vxk_frame_word *fw, uint32_t cell,
                           struct vxk_look look[4], uint32_t may[4])
{
    struct vxk_stride all = {0, 0, 1, 1};
    int32_t base[3];
    vxk_frame_cell_base(a, fw, cell, base);
    for (uint32_t k = 0; k < 4; k++) {
        struct vxk_vec3 q = vxk_to_sensor(&a->f, (float)base[0] + (k & 2 ? 6.0f : 2.0f),
                                          (float)base[1] + (k & 1 ? 6.0f : 2.0f), (float)base[2] + 4.0f);
        look[k] = vxk_frame_look(&a->f, &a->s, &q, 4.2f, 4.2f, &all);
        may[k] = vxk_look_says(&a->f, &look[k]);
    }
}

/* The same for one row of a quarter, by its own depths. */
VXK_FN uint32_t vxk_row_may(const struct vxk_frame_args *a, const struct vxk_view *v,
                            const struct vxk_look *quarter, uint32_t may, uint32_t x, uint32_t y)
{
    struct vxk_look row = *quarter;
    float z0, z1;
    if (may == 0 || quarter->found != 1)
        return may;
    z0 = vxk_row_start(a->f.R, &v->first, x, y).z;
    z1 = z0 + 7.0f * a->f.R[8];
    row.lo = vxk_min(z0, z1) - 0.1f;
    row.hi = vxk_max(z0, z1) + 0.1f;
    return vxk_look_says(&a->f, &row);
}

/* Element: a work cell: its new masks, what changes, sums. */
#define vxk_frame_cell_args vxk_frame_args
VXK_FN void vxk_frame_cell(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t where = a->s.work[i], cell = where & 63, n_active = 0, n_free = 0, changed = 0, may[4];
    const struct vxk_frame_word *fw = &a->s.word[where >> 6];
    struct vxk_look look[4];
    struct vxk_view view = vxk_view_cell(a, fw, cell, i);
    int tile, gone;
    const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, cell, &tile);
    const struct vxk_fading fading = vxk_fading_of(a, fw, cell);
    const uint32_t fades = fw->flags & VXK_WORD_STALE, quiet = fw->flags & VXK_WORD_QUIET;
    if (a->f.sensor == VXK_SENSOR_DEPTH && !quiet)
        vxk_cell_looks(a, fw, cell, look, may);
    for (uint32_t x = 0; x < 8; x++) {
        uint64_t had_active = old ? old->active[x] : 0, had_free = old ? old->free[x] : tile ? ~0ull : 0;
        uint64_t was_active = had_active, was_free = fw->flags & VXK_WORD_UNFREE ? 0 : had_free;
        uint64_t band = 0, moved = 0, freed = 0, cleared = 0, active, free_now;
        uint32_t seen, asked = quiet ? 0 : 255;
        struct vxk_row rows[8];
        if (a->f.sensor == VXK_SENSOR_DEPTH && !quiet) {
            for (uint32_t y = 0; y < 8; y++) {
                uint32_t quarter = (x >> 2) * 2 + (y >> 2),
                         says = vxk_row_may(a, &view, &look[quarter], may[quarter], x, y);
                if ((says & VXK_ALL_FREE) && !(says & VXK_MAY_HIT) && !(was_active >> (8 * y) & 255)) {
                    freed |= 255ull << (8 * y);
                    says = 0;
                }
                asked &= ~((uint32_t)!says << y);
            }
        }
        vxk_observe_plane(a, &view, x, asked, rows);
        for (uint32_t y = 0; y < 8; y++) {
            const struct vxk_row *row = &rows[y];
            uint32_t had = (uint32_t)(was_active >> (8 * y)) & 255, through;
            if (!(asked >> y & 1) && !(fades && had))
                continue;
            band |= (uint64_t)row->band << (8 * y);
            freed |= (uint64_t)row->free << (8 * y);
            moved |= (uint64_t)(row->near | row->free) << (8 * y);
            for (through = (fades ? ~0u : row->free) & had; through; through &= through - 1) {
                uint32_t k = vxk_ctz32(through), n = x << 6 | y << 3 | k, v;
                v = vxk_faded(a, &fading, a->g.values[vxk_leaf_value_index(old, vxk_leaf_rank(old, n))], n,
                              (row->band | row->near | row->free) >> k & 1, &gone);
                if (gone) {
                    was_active &= ~(1ull << (8 * y + k));
                } else if (row->free >> k & 1) {
                    struct vxk_obs o = vxk_row_obs(a, &view, row, k, n);
                    vxk_merge(&a->f, VXK_ACTIVE, v, &o, &gone);
                    if (gone)
                        cleared |= 1ull << (8 * y + k);
                }
            }
        }
        active = (was_active | band) & ~cleared;
        free_now = ((was_free | (freed & ~was_active)) & ~band) | cleared;
        seen = active != had_active || free_now != had_free || ((band | moved) & was_active) ||
                       (fades && had_active)
                   ? 1
                   : 0;
        a->s.active[i * 8 + x] = active;
        a->s.free[i * 8 + x] = free_now;
        a->s.seen[i * 8 + x] = (uint8_t)seen;
        n_active += vxk_popc64(active);
        n_free += vxk_popc64(free_now);
        changed |= seen;
    }
    a->s.sum[i] = n_active | n_free << 10 | changed << 20;
}

#endif
