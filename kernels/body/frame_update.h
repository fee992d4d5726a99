/*
 * frame_update.h - what a frame says about a voxel, and what becomes of the voxel.
 *
 * Two kernels ask the same question: vxk_frame_plane for the new masks, vxk_frame_values for the new values.  Both get
 * their answer from vxk_observe and vxk_merge, so that mask and value can't disagree.
 */
#ifndef VXK_BODY_FRAME_UPDATE_H
#define VXK_BODY_FRAME_UPDATE_H

#include "frame_select.h"

enum {
    VXK_OBS_NONE = 0,
    VXK_OBS_BAND = 1, /* TSDF: within the band; occupancy: hit */
    VXK_OBS_NEAR = 2, /* in front of the band, but the sensor's noise could have put it there: only moves active voxels */
    VXK_OBS_FREE = 3  /* seen through */
};

struct vxk_obs {
    int32_t what;
    int32_t q;      /* TSDF: observed distance, stored units */
    int32_t weight;
};

VXK_FN int32_t vxk_obs_weight(const struct vxk_frame *f, float d)
{
    int32_t w = vxk_rint(vxk_min(f->weight_scale / (d * d), 1024.0f));
    return vxk_mini(vxk_maxi(w, 1), f->weight_max);
}

/* A leaf as the frame sees it. */
struct vxk_view {
    struct vxk_vec3 first; /* sensor coordinates of its first voxel's centre */
    float corner[3];       /* the same in map axes, from the sensor */
    uint32_t hit;          /* touched leaf (LiDAR) or VXK_NONE */
};

VXK_FN struct vxk_view vxk_view_cell(const struct vxk_frame_args *a, const struct vxk_frame_word *fw, uint32_t cell)
{
    struct vxk_view v;
    int32_t base[3];
    vxk_frame_cell_base(a, fw, cell, base);
    v.first = vxk_to_sensor(&a->f, (float)base[0] + 0.5f, (float)base[1] + 0.5f, (float)base[2] + 0.5f);
    for (int k = 0; k < 3; k++)
        v.corner[k] = ((float)base[k] + 0.5f) - a->f.t[k];
    v.hit = a->f.sensor == VXK_SENSOR_LIDAR ? vxk_touched_leaf(&a->s, a->s.chunk[fw->chunk >> 6].slot, fw->chunk & 63, cell) : VXK_NONE;
    return v;
}

VXK_FN struct vxk_obs vxk_observe(const struct vxk_frame_args *a, const struct vxk_view *v, uint32_t n)
{
    const struct vxk_frame *f = &a->f;
    struct vxk_vec3 p = vxk_voxel_in_sensor(f, &v->first, n);
    struct vxk_obs o;
    o.what = VXK_OBS_NONE;
    o.q = 0;
    o.weight = 1;
    if (f->sensor == VXK_SENSOR_DEPTH) {
        int32_t px = vxk_project(f, &p);
        float d, sdf;
        if (px < 0)
            return o;
        d = a->s.depth[px];
        if (!(d > 0.0f))
            return o;
        if (d >= VXK_D_OPEN) {
            if (f->carve && p.z <= f->max_d)
                o.what = VXK_OBS_FREE;
            return o;
        }
        sdf = d - p.z;
        if (sdf < -f->trunc)
            return o;
        o.weight = vxk_obs_weight(f, d);
        o.q = vxk_quantise(f, vxk_min(sdf, f->trunc));
        if (sdf <= f->trunc)
            o.what = VXK_OBS_BAND;
        else if (p.z < vxk_free_limit(f, d))
            o.what = f->carve ? VXK_OBS_FREE : VXK_OBS_NONE;
        else
            o.what = VXK_OBS_NEAR;
        return o;
    }
    if (v->hit != VXK_NONE) {
        uint32_t place = vxk_hit_place(&a->s, v->hit, n);
        if (place != VXK_NONE) {
            o.what = VXK_OBS_BAND;
            o.q = vxk_hit_mean(a->s.acc[place], &o.weight);
            o.weight = vxk_mini(o.weight, 255);
            return o;
        }
    }
    if (f->carve) {
        float w[3];
        w[0] = v->corner[0] + (float)(n >> 6);
        w[1] = v->corner[1] + (float)(n >> 3 & 7);
        w[2] = v->corner[2] + (float)(n & 7);
        if (vxk_lidar_free(f, &a->s, &p, w)) {
            o.what = VXK_OBS_FREE;
            o.q = vxk_quantise(f, f->trunc);
        }
    }
    return o;
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
VXK_FN int32_t vxk_occ_logodds(uint32_t v) { return (int32_t)(int16_t)(uint16_t)(v & 0xffff); }
VXK_FN uint32_t vxk_occ_pack(int32_t l) { return (uint32_t)(uint16_t)(int16_t)l; }

/*
 * The voxel's value after an observation; *gone = 1 when it is free beyond doubt and needs no value any more.
 * state: VXK_UNKNOWN, VXK_FREE or VXK_ACTIVE before the frame (old = its value when active).
 * Called for BAND in any state, for NEAR and FREE when active.
 */
VXK_FN uint32_t vxk_merge(const struct vxk_frame *f, int state, uint32_t old, const struct vxk_obs *o, int *gone)
{
    *gone = 0;
    if (f->mode == 0) {
        uint32_t v = state == VXK_ACTIVE ? old : 0;
        if (o->what == VXK_OBS_FREE)
            v = vxk_tsdf_pack(vxk_tsdf_distance(v), vxk_tsdf_weight(v) >> 1); /* what was seen through outweighs what was there */
        v = vxk_tsdf_merge(v, o->q, o->weight);
        *gone = o->what == VXK_OBS_FREE && vxk_tsdf_distance(v) >= vxk_quantise(f, f->trunc * (31.0f / 32.0f));
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
VXK_FN const struct vxk_leaf *vxk_frame_old_leaf(const struct vxk_frame_args *a, const struct vxk_frame_word *fw, uint32_t cell, int *tile)
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
    struct vxk_view view = vxk_view_cell(a, fw, cell);
    int tile, gone;
    const struct vxk_leaf *old = vxk_frame_old_leaf(a, fw, cell, &tile);
    uint64_t was_active = old ? old->active[x] : 0, was_free = old ? old->free[x] : tile ? ~0ull : 0;
    uint64_t active = was_active, freed = was_free;
    uint8_t changes = 0;
    for (uint32_t j = 0; j < 64; j++) {
        uint64_t bit = 1ull << j;
        struct vxk_obs o = vxk_observe(a, &view, x << 6 | j);
        if (o.what == VXK_OBS_NONE)
            continue;
        if (was_active & bit) {
            changes = 1;
            if (o.what == VXK_OBS_FREE) {
                vxk_merge(&a->f, VXK_ACTIVE, a->g.values[vxk_leaf_value_index(old, vxk_leaf_rank(old, x << 6 | j))], &o, &gone);
                if (gone) {
                    active &= ~bit;
                    freed |= bit;
                }
            }
        } else if (o.what == VXK_OBS_BAND) {
            active |= bit;
            freed &= ~bit;
        } else if (o.what == VXK_OBS_FREE) {
            freed |= bit;
        }
    }
    if (active != was_active || freed != was_free)
        changes = 1;
    a->s.active[i] = active;
    a->s.free[i] = freed;
    a->s.seen[i] = changes;
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
    now = &a->leaves[(uint64_t)a->s.new_leaf_page[fw->leaf_page + (rank >> 3)] * VXK_LEAVES_A_PAGE + (rank & 7)];
    bits = now->active[x];
    if (!bits)
        return;
    old = vxk_frame_old_leaf(a, fw, cell, &tile);
    if (a->s.code[where] == VXK_CELL_WORK)
        work = a->s.work_of[where];
    if (work != VXK_NONE && !a->s.seen[work * 8 + x])
        work = VXK_NONE;
    if (work != VXK_NONE)
        view = vxk_view_cell(a, fw, cell);
    rank = x ? (uint32_t)(now->prefix >> (9 * (x - 1)) & 511) : 0;
    while (bits) {
        uint32_t j = vxk_ctz64(bits), n = x << 6 | j, v = 0;
        int state = VXK_UNKNOWN;
        bits &= bits - 1;
        if (old && old->active[x] >> j & 1) {
            state = VXK_ACTIVE;
            v = a->g.values[vxk_leaf_value_index(old, vxk_leaf_rank(old, n))];
        } else if (tile || (old && old->free[x] >> j & 1)) {
            state = VXK_FREE;
        }
        if (work != VXK_NONE) {
            struct vxk_obs o = vxk_observe(a, &view, n);
            if (o.what == VXK_OBS_BAND || (o.what != VXK_OBS_NONE && state == VXK_ACTIVE))
                v = vxk_merge(&a->f, state, v, &o, &gone);
        }
        a->values[vxk_leaf_value_index(now, rank++)] = v;
    }
}

#endif
