/*
 * frame_channels.h - colour and label of the voxels that a frame sees, in maps that keep them.
 *
 * A pass of its own behind vxk_frame_leaf, over the records that the commit writes: masks and places are
 * there, and what the frame says about a voxel is asked again from the same functions.  A voxel takes the
 * colour and label of one reading: of its pixel where it is in the band of that pixel's surface; of the ray
 * whose end is nearest to it in a LiDAR scan (vxk_frame_hit_owner).  It keeps what it has while it is active
 * and loses it with its value.
 */
#ifndef VXK_BODY_FRAME_CHANNELS_H
#define VXK_BODY_FRAME_CHANNELS_H

#include "frame_clean.h"
#include "frame_commit.h"

enum {
    VXK_COLOUR_CAP = 31,    /* of a colour's weight: it follows what was seen last */
    VXK_LABEL_CAP = 255,    /* of a label's confidence */
    VXK_CHANNEL_WEIGHT = 4, /* most that one observation has */
    VXK_OWNER_RAYS = (1 << 24) - 1
};

/* What a frame says about a voxel's channels. */
struct vxk_tint {
    uint32_t colour[3]; /* levels 0 .. 255 */
    uint32_t has_colour;
    uint32_t label; /* 0: none */
    uint32_t weight;
};

/* Element: a ray.  Every voxel of its band belongs to the ray whose surface is nearest to it, of several the
 * first. */
#define vxk_frame_hit_owner_args vxk_frame_args
VXK_FN void vxk_frame_hit_owner(const struct vxk_frame_args *a, uint32_t i)
{
    const struct vxk_ray *ray = &a->s.ray[i];
    struct vxk_band_walk b;
    float o[3] = {a->f.t[0], a->f.t[1], a->f.t[2]};
    if (!vxk_band_walk_begin(&b, a, i))
        return;
    if (a->s.skew.on)
        for (uint32_t k = 0; k < 3; k++)
            o[k] += a->s.skew.origin[3 * (uint64_t)i + k];
    do {
        float off = 0.0f;
        uint32_t place = vxk_hit_place(&a->s, b.leaf, b.voxel), claim;
        if (place == VXK_NONE)
            continue;
        for (int k = 0; k < 3; k++) {
            float d = ((float)b.w.i[k] + 0.5f) - (o[k] + ray->r * ray->d[k]);
            off += d * d;
        }
        claim = 255 - (uint32_t)vxk_mini(vxk_rint(vxk_min(off, 64.0f) * 3.0f), 192);
        vxk_atomic_max32(&a->channels.owner[place], claim << 24 | (VXK_OWNER_RAYS - i));
    } while (vxk_band_walk_next(&b, a));
}

/* Colour of reading i; 0 = it has none. */
VXK_FN uint32_t vxk_reading_colour(const struct vxk_channels *c, uint32_t i, uint32_t colour[3])
{
    float grey;
    if (c->colour) {
        for (uint32_t k = 0; k < 3; k++)
            colour[k] = c->colour[3 * (uint64_t)i + k];
        return 1;
    }
    if (!c->intensity)
        return 0;
    grey = c->intensity[i] * c->intensity_scale;
    if (!(grey >= 0.0f)) /* NaN too */
        return 0;
    colour[0] = colour[1] = colour[2] = (uint32_t)vxk_rint(vxk_min(grey, 255.0f));
    return 1;
}

/* Running average of a colour.  Rounds up where the remainder passes a threshold drawn from `dice`, so that a
 * small step is not lost for ever and the mean of many steps is right. */
VXK_FN uint32_t vxk_colour_merge(uint32_t old, const uint32_t colour[3], uint32_t weight, uint64_t dice)
{
    uint32_t w = vxk_colour_weight(old), sum = w + weight, out = 0;
    for (uint32_t k = 0; k < 3; k++) {
        uint32_t threshold = ((uint32_t)(dice >> (16 * k)) & 0xffff) * sum >> 16;
        out |= (vxk_colour_part(old, k) * w + 2 * colour[k] * weight + threshold) / sum << (9 * k);
    }
    return out | vxk_minu(sum, VXK_COLOUR_CAP) << 27;
}

/* A vote: for the label it gains confidence, against it loses it; below nothing the other takes its place. */
VXK_FN uint32_t vxk_label_merge(uint32_t old, uint32_t label, uint32_t weight)
{
    uint32_t is = vxk_label_of(old), trust = vxk_label_trust(old);
    if (label == is)
        return is | vxk_minu(trust + weight, VXK_LABEL_CAP) << 8;
    return trust >= weight && is ? is | (trust - weight) << 8 : label | (weight - (is ? trust : 0)) << 8;
}

/* Reading of a ray: those of a range image are numbered from the highest row down. */
VXK_FN uint32_t vxk_ray_reading(const struct vxk_frame *f, uint32_t ray)
{
    uint32_t width = (uint32_t)f->width, row = ray / width;
    return f->bins_are_rays && f->rows_rise ? ((uint32_t)f->height - 1 - row) * width + (ray - row * width)
                                            : ray;
}

/* The reading of a pixel by its place (vxk_pixel_place), VXK_NONE: none. */
VXK_FN uint32_t vxk_pixel_reading(const struct vxk_frame_args *a, int32_t at)
{
    const int32_t line = a->f.step_u == 1 ? a->f.width : a->f.height, across = at / line,
                  along = at - across * line;
    int32_t u = a->f.step_u == 1 ? along : across, v = a->f.step_u == 1 ? across : along;
    return !a->clean.bent || vxk_bent_pixel(a, &u, &v) ? (uint32_t)(v * a->f.width + u) : VXK_NONE;
}
/* What an observation of its surface is worth. */
VXK_FN uint32_t vxk_pixel_weight(int32_t sample_weight)
{
    return vxk_minu(((uint32_t)sample_weight + 3) / 4, VXK_CHANNEL_WEIGHT);
}

/* The reading of the ray that owns a hit voxel, VXK_NONE: none.  place: of its accumulator. */
VXK_FN uint32_t vxk_owner_reading(const struct vxk_frame_args *a, uint32_t place)
{
    uint32_t claim = place == VXK_NONE ? 0 : a->channels.owner[place];
    return claim ? vxk_ray_reading(&a->f, VXK_OWNER_RAYS - (claim & VXK_OWNER_RAYS)) : VXK_NONE;
}

/* The reading whose colour and label voxel n takes, VXK_NONE: none.  It is voxel k of a row in the band. */
VXK_FN uint32_t vxk_tint_reading(const struct vxk_frame_args *a, const struct vxk_view *view,
                                 const struct vxk_row *row, uint32_t n, uint32_t *weight)
{
    uint32_t k = n & 7;
    *weight = 1;
    if (a->f.sensor == VXK_SENSOR_LIDAR)
        return vxk_owner_reading(a, vxk_hit_place(&a->s, view->hit, n));
    if (row->thin >> k & 1) /* it is held by the edge of a surface that another pixel shows */
        return VXK_NONE;
    *weight = vxk_pixel_weight(a->s.sample[row->pixel[k]].weight);
    return vxk_pixel_reading(a, row->pixel[k]);
}

/* What reading i says; it may be VXK_NONE. */
VXK_FN struct vxk_tint vxk_tint_of(const struct vxk_frame_args *a, uint32_t i, uint32_t weight)
{
    struct vxk_tint o;
    o.has_colour = o.label = 0;
    o.weight = weight;
    if (i == VXK_NONE)
        return o;
    if (a->colours)
        o.has_colour = vxk_reading_colour(&a->channels, i, o.colour);
    if (a->labels && a->channels.label)
        o.label = a->channels.label[i];
    return o;
}

/* A voxel's channels. */
struct vxk_channel_values {
    uint32_t colour, label;
};
/* dice: of the voxel in this frame. */
VXK_FN void vxk_tint_merge(struct vxk_channel_values *v, const struct vxk_tint *o, uint64_t dice)
{
    if (o->has_colour)
        v->colour = vxk_colour_merge(v->colour, o->colour, o->weight, vxk_mix64(dice));
    if (o->label)
        v->label = vxk_label_merge(v->label, o->label, o->weight);
}
/* Where the dice of a cell's voxels begin. */
VXK_FN uint64_t vxk_channels_salt(const struct vxk_frame_args *a, const struct vxk_frame_word *fw,
                                  uint32_t cell)
{
    return vxk_mix64(a->channels.salt ^ a->s.chunk[fw->chunk >> 6].key) + (fw->chunk & 63) * 32768u +
           cell * 512;
}
/* Does the frame bring any? */
VXK_FN int vxk_brings_channels(const struct vxk_channels *c)
{
    return c->colour || c->intensity || c->label;
}

/* Channels of a plane as they were; the values before it may have moved it. */
VXK_FN void vxk_channels_copy(const struct vxk_frame_args *a, const struct vxk_leaf *now,
                              const struct vxk_leaf *old, uint32_t x)
{
    uint32_t to = vxk_leaf_rank(now, x << 6), from = vxk_leaf_rank(old, x << 6),
             n = vxk_popc64(now->active[x]);
    for (uint32_t k = 0; k < n; k++) {
        uint64_t i = vxk_leaf_value_index(now, to + k), j = vxk_leaf_value_index(old, from + k);
        if (a->colours)
            a->colours[i] = a->g.colours[j];
        if (a->labels)
            a->labels[i] = a->g.labels[j];
    }
}

/* Those of active voxel n before the frame; observed: the frame sees it. */
VXK_FN struct vxk_channel_values vxk_old_channels(const struct vxk_frame_args *a,
                                                  const struct vxk_fading *fading, const struct vxk_leaf *old,
                                                  uint32_t n, uint32_t observed)
{
    uint64_t from = vxk_leaf_value_index(old, vxk_leaf_rank(old, n));
    struct vxk_channel_values o;
    int dead = 0;
    if (fading->flags & VXK_WORD_STALE) /* it may have faded away and be back by this frame */
        vxk_faded(a, fading, a->g.values[from], n, observed, &dead);
    o.colour = !dead && a->colours ? a->g.colours[from] : 0;
    o.label = !dead && a->labels ? a->g.labels[from] : 0;
    return o;
}

/* Element: plane i & 7 of record i >> 3 of the commit. */
#define vxk_frame_channels_args vxk_frame_args
VXK_FN void vxk_frame_channels(const struct vxk_frame_args *a, uint32_t i)
{
    uint32_t where = a->s.record[i >> 3], x = i & 7, cell = where & 63, rank;
    uint32_t work = a->s.code[where] == VXK_CELL_WORK ? a->s.work_of[where] : VXK_NONE;
    const struct vxk_frame_word *fw = &a->s.word[where >> 6];
    const struct vxk_leaf *now = vxk_new_leaf(a, fw, cell), *old;
    const int brings = vxk_brings_channels(&a->channels),
              looks = (brings || fw->flags & VXK_WORD_STALE) && !(fw->flags & VXK_WORD_QUIET);
    const uint64_t salt = vxk_channels_salt(a, fw, cell);
    struct vxk_view view;
    struct vxk_fading fading;
    struct vxk_row rows[8];
    int tile;
    if (!now->active[x])
        return;
    old = vxk_frame_old_leaf(a, fw, cell, &tile);
    if (work == VXK_NONE || !a->s.seen[work * 8 + x]) {
        vxk_channels_copy(a, now, old, x);
        return;
    }
    rank = vxk_leaf_rank(now, x << 6);
    view = vxk_view_cell(a, fw, cell, work);
    fading = vxk_fading_of(a, fw, cell);
    vxk_observe_plane(a, &view, x, looks ? vxk_rows_of(now->active[x]) : 0, rows);
    for (uint32_t y = 0; y < 8; y++) {
        const struct vxk_row *row = &rows[y];
        uint32_t on = (uint32_t)(now->active[x] >> (8 * y)) & 255;
        for (; on; on &= on - 1) {
            uint32_t k = vxk_ctz32(on), n = x << 6 | y << 3 | k;
            uint64_t to = vxk_leaf_value_index(now, rank++);
            struct vxk_channel_values v = {0, 0};
            if (old && old->active[x] >> (n & 63) & 1)
                v = vxk_old_channels(a, &fading, old, n, (row->band | row->near | row->free) >> k & 1);
            if (brings && row->band >> k & 1) {
                uint32_t weight, reading = vxk_tint_reading(a, &view, row, n, &weight);
                struct vxk_tint o = vxk_tint_of(a, reading, weight);
                vxk_tint_merge(&v, &o, salt + n);
            }
            if (a->colours)
                a->colours[to] = v.colour;
            if (a->labels)
                a->labels[to] = (uint16_t)v.label;
        }
    }
}

#endif
