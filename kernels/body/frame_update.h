/*
 * frame_update.h - what a frame says about a voxel, and what becomes of the voxel.
 *
 * Two kernels ask the same question: vxk_frame_plane for the new masks, vxk_frame_values for the new values.
 * Both get their answer from vxk_observe_row, vxk_row_obs and vxk_merge, so that mask and value can't
 * disagree.
 */
#ifndef VXK_BODY_FRAME_UPDATE_H
#define VXK_BODY_FRAME_UPDATE_H

#include "frame_select.h"

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

/* Falls with the square of the depth, and with the angle at which the surface is seen. */
VXK_FN int32_t vxk_obs_weight(const struct vxk_frame *f, float d, float slope)
{
    int32_t w = vxk_rint(vxk_min(f->weight_scale * slope / (d * d), 1024.0f));
    return vxk_mini(vxk_maxi(w, 1), f->weight_max);
}

/* A leaf as the frame sees it. */
struct vxk_view {
    struct vxk_vec3 first; /* sensor coordinates of its first voxel's centre */
    float corner[3];       /* the same in map axes, from the sensor */
    uint32_t hit;          /* touched leaf (LiDAR) or VXK_NONE */
    uint32_t column;       /* de-skewed scans: whose pose `first` is in */
    const uint64_t *clear; /* LiDAR: what its beams cleared, or NULL: voxels ask their bins */
};

/* work: the cell's place in the work list. */
VXK_FN struct vxk_view vxk_view_cell(const struct vxk_frame_args *a, const struct vxk_frame_word *fw,
                                     uint32_t cell, uint32_t work)
{
    struct vxk_view v;
    int32_t base[3];
    vxk_frame_cell_base(a, fw, cell, base);
    v.first = vxk_to_sensor(&a->f, (float)base[0] + 0.5f, (float)base[1] + 0.5f, (float)base[2] + 0.5f);
    for (int k = 0; k < 3; k++)
        v.corner[k] = ((float)base[k] + 0.5f) - a->f.t[k];
    v.column = 0;
    if (a->s.skew.on) {
        float middle[3] = {v.corner[0] + 3.5f, v.corner[1] + 3.5f, v.corner[2] + 3.5f};
        v.column = vxk_skew_column(&a->f, &a->s, middle);
        v.first = vxk_column_local(&a->s.skew.column[v.column], v.corner);
    }
    v.hit = a->f.sensor == VXK_SENSOR_LIDAR
                ? vxk_touched_leaf(&a->s, a->s.chunk[fw->chunk >> 6].slot, fw->chunk & 63, cell)
                : VXK_NONE;
    v.clear = a->f.sensor == VXK_SENSOR_LIDAR && a->f.carve && a->s.by_beam[work]
                  ? &a->s.clear[(uint64_t)work * 8]
                  : (const uint64_t *)0;
    return v;
}

/* What the frame says about a row of eight voxels along z: bit k of each mask is voxel k. */
struct vxk_row {
    uint32_t band, near, free;
    float d[8];   /* depth: reading of the voxel's pixel */
    float sdf[8]; /* depth: distance to the surface's plane */
    float g[8];   /* depth: slope of the voxel's pixel */
};

/* Sensor coordinates of the row's first voxel. */
VXK_FN struct vxk_vec3 vxk_row_start(const float *R, const struct vxk_view *v, uint32_t x, uint32_t y)
{
    struct vxk_vec3 p;
    p.x = v->first.x + ((float)x * R[0] + (float)y * R[3]);
    p.y = v->first.y + ((float)x * R[1] + (float)y * R[4]);
    p.z = v->first.z + ((float)x * R[2] + (float)y * R[5]);
    return p;
}

/* Written without branches: a CPU runs the eight voxels in one go. */
VXK_FN void vxk_row_depth(const struct vxk_frame_args *a, const struct vxk_vec3 *p, struct vxk_row *o)
{
    const struct vxk_frame *f = &a->f;
    const float *depth = a->s.depth, *slope = a->s.slope, *front = a->s.front;
    const float w = (float)f->width, h = (float)f->height, cu = f->cx + 0.5f, cv = f->cy + 0.5f, fx = f->fx,
                fy = f->fy;
    const float sx = f->R[6], sy = f->R[7], sz = f->R[8], trunc = f->trunc, noise3 = 3.0f * f->noise,
                max_d = f->max_d;
    const int32_t width = f->width;
    uint32_t band[8], near[8], freed[8];
    int32_t at[8];
    float seen[8], zs[8], fr[8];
    for (int k = 0; k < 8; k++) {
        float z = p->z + (float)k * sz, inv = 1.0f / vxk_max(z, 0.5f);
        float u = fx * (p->x + (float)k * sx) * inv + cu, v = fy * (p->y + (float)k * sy) * inv + cv;
        int ok = (u >= 0.0f) & (v >= 0.0f) & (u < w) & (v < h) & (z > 0.5f);
        u = vxk_min(vxk_max(u, 0.0f), w - 1.0f);
        v = vxk_min(vxk_max(v, 0.0f), h - 1.0f);
        at[k] = (int32_t)v * width + (int32_t)u;
        seen[k] = ok ? 0.0f : 2.0f * VXK_D_INVALID;
        zs[k] = z;
    }
    for (int k = 0; k < 8; k++) {
        o->d[k] = depth[at[k]] + seen[k];
        o->g[k] = slope[at[k]];
        fr[k] = front[at[k]] + seen[k];
    }
    for (int k = 0; k < 8; k++) {
        float d = o->d[k], z = zs[k], sdf = (d - z) * o->g[k];
        uint32_t valid = d > 0.0f, open = d >= VXK_D_OPEN, hit = valid & (open ^ 1u), beyond = sdf > trunc;
        uint32_t through = open ? z <= max_d : (d - z - noise3 * d * d) * o->g[k] > trunc;
        float over = fr[k] - z;
        uint32_t thin = beyond & (fr[k] > 0.0f) & (fr[k] < d) & (vxk_abs(over) <= trunc);
        o->sdf[k] = thin ? over : sdf;
        o->d[k] = thin ? fr[k] : d;
        o->g[k] = thin ? 1.0f : o->g[k];
        band[k] = (hit & (d - z >= -trunc) & (beyond ^ 1u)) | thin;
        freed[k] = valid & beyond & through & (thin ^ 1u);
        near[k] = hit & beyond & (through ^ 1u) & (thin ^ 1u);
    }
    for (int k = 0; k < 8; k++) {
        o->band |= band[k] << k;
        o->near |= near[k] << k;
        o->free |= freed[k] << k;
    }
}

VXK_FN void vxk_row_lidar(const struct vxk_frame_args *a, const struct vxk_view *v, uint32_t x, uint32_t y,
                          const struct vxk_vec3 *p, struct vxk_row *o)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_frame_space *s = &a->s;
    int32_t bin[8];
    float range[8];
    float sx = f->R[6], sy = f->R[7], sz = f->R[8];
    uint32_t maybe[8];
    if (v->hit < s->room_touch_leaf)
        o->band = (uint32_t)(s->hit_mask[(uint64_t)v->hit * 8 + x] >> (8 * y)) & 255;
    if (!f->carve || o->band == 255)
        return;
    if (v->clear) {
        o->free = (uint32_t)(v->clear[x] >> (8 * y)) & 255 & ~o->band;
        return;
    }
    if (s->skew.on) {
        const float *R = s->skew.column[v->column].R;
        sx = R[6];
        sy = R[7];
        sz = R[8];
    }
    for (int k = 0; k < 8; k++)
        bin[k] = vxk_lidar_bin(f, s, p->x + (float)k * sx, p->y + (float)k * sy, p->z + (float)k * sz);
    for (int k = 0; k < 8; k++)
        range[k] = s->depth[vxk_maxi(bin[k], 0)];
    for (int k = 0; k < 8; k++) {
        float px = p->x + (float)k * sx, py = p->y + (float)k * sy, pz = p->z + (float)k * sz;
        float dist = vxk_sqrt(px * px + py * py + pz * pz);
        /* the beam's own test follows; within half a voxel of it, `along` is less than a voxel short of the
         * distance */
        maybe[k] = (bin[k] >= 0) & (range[k] > 0.0f) &
                   (vxk_min(range[k], f->max_d + f->clear) - dist > f->clear - 1.0f);
    }
    for (uint32_t k = 0; k < 8; k++) {
        float w[3];
        if (!maybe[k] || o->band >> k & 1)
            continue;
        w[0] = v->corner[0] + (float)x;
        w[1] = v->corner[1] + (float)y;
        w[2] = v->corner[2] + (float)k;
        if (vxk_ray_clears(f, s, vxk_bin_ray(f, s, bin[k]), w))
            o->free |= 1u << k;
    }
}

VXK_FN void vxk_observe_row(const struct vxk_frame_args *a, const struct vxk_view *v, uint32_t x, uint32_t y,
                            struct vxk_row *o)
{
    struct vxk_vec3 p =
        a->s.skew.on ? vxk_row_start(a->s.skew.column[v->column].R, v, x, y) : vxk_row_start(a->f.R, v, x, y);
    o->band = o->near = o->free = 0;
    if (a->f.sensor == VXK_SENSOR_DEPTH) {
        vxk_row_depth(a, &p, o);
        if (!a->f.carve)
            o->near = o->free = 0;
    } else {
        vxk_row_lidar(a, v, x, y, &p, o);
    }
}

/* The observation of voxel k of a row (voxel n of the leaf). */
VXK_FN struct vxk_obs vxk_row_obs(const struct vxk_frame_args *a, const struct vxk_view *v,
                                  const struct vxk_row *row, uint32_t k, uint32_t n)
{
    const struct vxk_frame *f = &a->f;
    struct vxk_obs o;
    o.what = row->band >> k & 1   ? VXK_OBS_BAND
             : row->free >> k & 1 ? VXK_OBS_FREE
             : row->near >> k & 1 ? VXK_OBS_NEAR
                                  : VXK_OBS_NONE;
    o.q = 0;
    o.weight = 1;
    if (f->sensor == VXK_SENSOR_DEPTH) {
        o.q = vxk_quantise(f, vxk_min(row->sdf[k], f->trunc));
        o.weight = vxk_obs_weight(f, row->d[k], row->g[k]);
    } else if (o.what == VXK_OBS_BAND) {
        uint32_t place = vxk_hit_place(&a->s, v->hit, n);
        if (place != VXK_NONE)
            o.q = vxk_hit_mean(a->s.acc[place], &o.weight);
        o.weight = vxk_mini(o.weight, 255);
    } else {
        o.q = vxk_quantise(f, f->trunc);
    }
    return o;
}

enum { VXK_FEW_BEAMS = 96 };

/* Clears the voxels of a cell that lie within half a voxel of a ray: in each of the eight slices across the
 * ray's main axis the centres near where it passes are tried. */
VXK_FN void vxk_beam_clears(const struct vxk_frame *f, const struct vxk_frame_space *s, uint32_t i,
                            const float first[3], uint64_t clear[8])
{
    const struct vxk_ray *ray = &s->ray[i];
    float corner[3] = {first[0], first[1], first[2]}, centre[3], along = 0.0f, c0, c1, c2;
    int m = vxk_abs(ray->d[0]) >= vxk_abs(ray->d[1]) ? 0 : 1, p, q;
    for (uint32_t k = 0; k < 3; k++) {
        if (s->skew.on)
            corner[k] -= s->skew.origin[3 * (uint64_t)i + k];
        centre[k] = corner[k] + 3.5f;
        along += centre[k] * ray->d[k];
    }
    c0 = centre[1] * ray->d[2] - centre[2] * ray->d[1];
    c1 = centre[2] * ray->d[0] - centre[0] * ray->d[2];
    c2 = centre[0] * ray->d[1] - centre[1] * ray->d[0];
    if (c0 * c0 + c1 * c1 + c2 * c2 > 6.6f * 6.6f || along < -6.6f)
        return;
    if (along - 6.6f > (ray->r < VXK_D_OPEN ? ray->r - f->clear : f->max_d))
        return;
    if (vxk_abs(ray->d[2]) > vxk_abs(ray->d[m]))
        m = 2;
    p = m == 0 ? 1 : 0;
    q = m == 2 ? 1 : 2;
    for (int slice = 0; slice < 8; slice++) {
        float t = (corner[m] + (float)slice) / ray->d[m];
        float a = vxk_floor(t * ray->d[p] - corner[p]), b = vxk_floor(t * ray->d[q] - corner[q]);
        if (!(a >= -1.0f && a <= 7.0f && b >= -1.0f && b <= 7.0f))
            continue;
        for (int k = 0; k < 4; k++) {
            int at[3];
            float w[3];
            at[m] = slice;
            at[p] = (int)a + (k & 1);
            at[q] = (int)b + (k >> 1);
            if (at[p] < 0 || at[p] > 7 || at[q] < 0 || at[q] > 7)
                continue;
            for (int j = 0; j < 3; j++)
                w[j] = corner[j] + (float)at[j];
            if (vxk_line_clears(f, ray, w))
                clear[at[0]] |= 1ull << (at[1] << 3 | at[2]);
        }
    }
}

/* Element: a work cell of a LiDAR frame.  Where few beams can meet it, walks them; else leaves it to the
 * voxels. */
#define vxk_frame_beams_args vxk_frame_args
VXK_FN void vxk_frame_beams(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_frame *f = &a->f;
    const struct vxk_frame_space *s = &a->s;
    const struct vxk_frame_word *fw = &s->word[s->work[i] >> 6];
    uint64_t clear[8];
    struct vxk_view view;
    struct vxk_vec3 q;
    int32_t base[3], rect[4], turn = (int32_t)vxk_floor(f->az_turn + 0.5f);
    float slack = 0.0f;
    a->s.by_beam[i] = 0;
    view = vxk_view_cell(a, fw, s->work[i] & 63, i);
    vxk_frame_cell_base(a, fw, s->work[i] & 63, base);
    q = vxk_to_sensor(f, (float)base[0] + 4.0f, (float)base[1] + 4.0f, (float)base[2] + 4.0f);
    if (s->skew.on) {
        float middle[3] = {view.corner[0] + 3.5f, view.corner[1] + 3.5f, view.corner[2] + 3.5f};
        q = vxk_column_local(&s->skew.column[view.column], middle);
        slack = VXK_SKEW_SLACK;
    }
    if (!vxk_lidar_rect(f, s, &q, 6.6f, slack, rect) ||
        (rect[1] - rect[0] + 1) * (rect[3] - rect[2] + 1) > VXK_FEW_BEAMS)
        return;
    for (int x = 0; x < 8; x++)
        clear[x] = 0;
    for (int32_t v = rect[0]; v <= rect[1]; v++) {
        for (int32_t u = rect[2]; u <= rect[3]; u++) {
            int32_t c = f->full_turn ? (u < 0           ? u + turn
                                        : u >= f->width ? u - turn
                                                        : u)
                                     : u,
                    bin = v * f->width + c;
            if (c >= 0 && c < f->width && s->depth[bin] > 0.0f)
                vxk_beam_clears(f, s, vxk_bin_ray(f, s, bin), view.corner, clear);
        }
    }
    for (int x = 0; x < 8; x++)
        a->s.clear[(uint64_t)i * 8 + (uint32_t)x] = clear[x];
    a->s.by_beam[i] = 1;
}

enum { VXK_WEIGHT_CAP = 255 };

/* Running average of a stored distance; |sum| < 2^24, so that single precision holds it exactly. */
VXK_FN uint32_t vxk_tsdf_merge(uint32_t old, int32_t q, int32_t weight)
{
    int32_t t = vxk_tsdf_distance(old), w = (int32_t)vxk_tsdf_weight(old), sum = w + weight;
    int32_t r = vxk_rint((float)(t * w + q * weight) / (float)sum);
    return vxk_tsdf_pack(r, (uint32_t)vxk_mini(sum, VXK_WEIGHT_CAP));
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
 * The voxel's value after an observation; *gone = 1 when it is free beyond doubt and needs no value any more.
 * state: VXK_UNKNOWN, VXK_FREE or VXK_ACTIVE before the frame (old = its value when active).
 * Called for BAND in any state, for NEAR and FREE when active.
 */
VXK_FN uint32_t vxk_merge(const struct vxk_frame *f, int state, uint32_t old, const struct vxk_obs *o,
                          int *gone)
{
    *gone = 0;
    if (f->mode == 0) {
        uint32_t v = state == VXK_ACTIVE ? old : 0;
        if (o->what == VXK_OBS_FREE && vxk_tsdf_distance(v) < 0) {
            /* Seen through where something was: its evidence halves, and with the last of it the voxel is
             * free.  It never turns into a near surface by averaging. */
            v = vxk_tsdf_pack(vxk_tsdf_distance(v), vxk_tsdf_weight(v) >> 1);
            *gone = vxk_tsdf_weight(v) == 0;
            return v;
        }
        v = vxk_tsdf_merge(v, o->q, o->weight);
        *gone =
            o->what == VXK_OBS_FREE && vxk_tsdf_distance(v) >= vxk_quantise(f, f->trunc * (31.0f / 32.0f));
        return v;
    } else {
        int32_t l = state == VXK_ACTIVE ? vxk_occ_logodds(old) : state == VXK_FREE ? f->lo_miss : 0;
        l += o->what == VXK_OBS_BAND ? f->lo_hit : f->lo_miss;
        l = vxk_mini(vxk_maxi(l, f->lo_min), f->lo_max);
        *gone = l <= f->lo_min;
        return vxk_occ_pack(l);
    }
}

/* Record of the cell before the frame, or NULL; *tile = 1 when it was a free tile. */
VXK_FN const struct vxk_leaf *vxk_frame_old_leaf(const struct vxk_frame_args *a,
                                                 const struct vxk_frame_word *fw, uint32_t cell, int *tile)
{
    const struct vxk_word *w = vxk_frame_old_word(a, &a->s.chunk[fw->chunk >> 6], fw->chunk & 63);
    *tile = w ? (int)(w->tile >> cell & 1) : 0;
    return w && (w->leaf >> cell & 1) ? vxk_leaf_at(&a->g, w, cell) : (const struct vxk_leaf *)0;
}

/* Element: a plane (64 voxels with one x) of a work cell: its new masks. */
#define vxk_frame_plane_args vxk_frame_args
VXK_FN void vxk_frame_plane(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t where = a->s.work[i >> 3], cell = where & 63, x = i & 7;
    const struct vxk_frame_word *fw = &a->s.word[where >> 6];
    struct vxk_view view = vxk_view_cell(a, fw, cell, i >> 3);
    int tile, gone;
    const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, cell, &tile);
    uint64_t was_active = old ? old->active[x] : 0, was_free = old ? old->free[x] : tile ? ~0ull : 0;
    uint64_t band = 0, moved = 0, freed = 0, cleared = 0, active, free_now;
    for (uint32_t y = 0; y < 8; y++) {
        struct vxk_row row;
        uint32_t had = (uint32_t)(was_active >> (8 * y)) & 255, through;
        vxk_observe_row(a, &view, x, y, &row);
        band |= (uint64_t)row.band << (8 * y);
        freed |= (uint64_t)row.free << (8 * y);
        moved |= (uint64_t)(row.near | row.free) << (8 * y);
        for (through = row.free & had; through; through &= through - 1) {
            uint32_t k = vxk_ctz32(through), n = x << 6 | y << 3 | k;
            struct vxk_obs o = vxk_row_obs(a, &view, &row, k, n);
            vxk_merge(&a->f, VXK_ACTIVE, a->g.values[vxk_leaf_value_index(old, vxk_leaf_rank(old, n))], &o,
                      &gone);
            if (gone)
                cleared |= 1ull << (8 * y + k);
        }
    }
    active = (was_active | band) & ~cleared;
    free_now = ((was_free | (freed & ~was_active)) & ~band) | cleared;
    a->s.active[i] = active;
    a->s.free[i] = free_now;
    a->s.seen[i] =
        (uint8_t)(active != was_active || free_now != was_free || ((band | moved) & was_active) ? 1 : 0);
}

/* Element: a work cell: sums over its planes. */
#define vxk_frame_sum_args vxk_frame_args
VXK_FN void vxk_frame_sum(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t n_active = 0, n_free = 0, changed = 0;
    for (uint32_t x = 0; x < 8; x++) {
        n_active += vxk_popc64(a->s.active[i * 8 + x]);
        n_free += vxk_popc64(a->s.free[i * 8 + x]);
        changed |= a->s.seen[i * 8 + x];
    }
    a->s.sum[i] = n_active | n_free << 10 | changed << 20;
}

/* Element: an active plane of a record of a changed word: its values, carried over or updated. */
#define vxk_frame_values_args vxk_frame_args
VXK_FN void vxk_frame_values(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t where = a->s.record[i >> 3], cell = where & 63, x = i & 7, rank, work = VXK_NONE;
    const struct vxk_frame_word *fw = &a->s.word[where >> 6];
    const struct vxk_leaf *now, *old;
    struct vxk_view view;
    int tile, gone;
    uint64_t bits;
    rank = vxk_popc64(fw->leaf & ((1ull << cell) - 1));
    now = &a->leaves[(uint64_t)a->s.new_leaf_page[fw->leaf_page + (rank >> 3)] * VXK_LEAVES_A_PAGE +
                     (rank & 7)];
    bits = now->active[x];
    if (!bits)
        return;
    old = vxk_frame_old_leaf(a, fw, cell, &tile);
    if (a->s.code[where] == VXK_CELL_WORK)
        work = a->s.work_of[where];
    if (work != VXK_NONE && !a->s.seen[work * 8 + x])
        work = VXK_NONE;
    if (work != VXK_NONE)
        view = vxk_view_cell(a, fw, cell, work);
    rank = x ? (uint32_t)(now->prefix >> (9 * (x - 1)) & 511) : 0;
    for (uint32_t y = 0; y < 8; y++) {
        struct vxk_row row;
        uint32_t on = (uint32_t)(bits >> (8 * y)) & 255;
        row.band = row.near = row.free = 0;
        if (on && work != VXK_NONE)
            vxk_observe_row(a, &view, x, y, &row);
        for (; on; on &= on - 1) {
            uint32_t k = vxk_ctz32(on), n = x << 6 | y << 3 | k, v = 0;
            int state = VXK_UNKNOWN;
            if (old && old->active[x] >> (n & 63) & 1) {
                state = VXK_ACTIVE;
                v = a->g.values[vxk_leaf_value_index(old, vxk_leaf_rank(old, n))];
            } else if (tile || (old && old->free[x] >> (n & 63) & 1)) {
                state = VXK_FREE;
            }
            if ((row.band | (state == VXK_ACTIVE ? row.near | row.free : 0)) >> k & 1) {
                struct vxk_obs o = vxk_row_obs(a, &view, &row, k, n);
                v = vxk_merge(&a->f, state, v, &o, &gone);
            }
            a->values[vxk_leaf_value_index(now, rank++)] = v;
        }
    }
}

#endif
