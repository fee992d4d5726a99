/*
 * query_tint.h - colour and label at a point.
 *
 * Colour is interpolated between the eight voxel centres around the point, over those that have one; on an
 * edge between two voxels, where a mesh has its vertices, that is between its two ends.  The label is that of
 * the centre that counts most among those with a label.
 */
#ifndef VXK_BODY_QUERY_TINT_H
#define VXK_BODY_QUERY_TINT_H

#include "query_point.h"

enum { VXK_TINT_GREY = 128 /* of what has no colour */ };

struct vxk_tint_answer { /* vx_tint, 8 bytes */
    uint8_t colour[3];
    uint8_t label;
    uint8_t weight, trust;
    uint16_t reserved;
};

/* Colour and label of a voxel, 0 where it has none. */
VXK_FN void vxk_voxel_tint(const struct vxk_grid *g, const int32_t v[3], uint32_t *colour, uint32_t *label)
{
    const struct vxk_chunk *c;
    const struct vxk_word *w;
    const struct vxk_leaf *l;
    uint32_t x = (uint32_t)v[0] & 127, y = (uint32_t)v[1] & 127, z = (uint32_t)v[2] & 127, cell, n;
    uint64_t at;
    *colour = *label = 0;
    for (int k = 0; k < 3; k++)
        if (v[k] < -134217728 || v[k] >= 134217728)
            return;
    c = vxk_find_chunk(g, vxk_key(v[0] >> 7, v[1] >> 7, v[2] >> 7));
    if (!c)
        return;
    w = &c->word[vxk_word_of(x, y, z)];
    cell = vxk_cell_of(x, y, z);
    if (!(w->leaf >> cell & 1))
        return;
    l = vxk_leaf_at(g, w, cell);
    n = vxk_voxel_of(x, y, z);
    if (!(l->active[n >> 6] >> (n & 63) & 1))
        return;
    at = vxk_leaf_value_index(l, vxk_leaf_rank(l, n));
    *colour = g->colours ? g->colours[at] : 0;
    *label = g->labels ? g->labels[at] : 0;
}

/* Between the eight voxel centres from `low` on, at f (0 .. 1 on each axis). */
VXK_FN void vxk_tint_between(const struct vxk_grid *g, const int32_t low[3], const float f[3],
                             struct vxk_tint_answer *o)
{
    double sum[3] = {0, 0, 0}, all = 0, heaviest = 0, most = 0;
    for (uint32_t c = 0; c < 8; c++) {
        double share = 1;
        uint32_t colour, label;
        int32_t v[3];
        for (uint32_t k = 0; k < 3; k++) {
            uint32_t up = c >> k & 1;
            v[k] = low[k] + (int32_t)up;
            share *= up ? (double)f[k] : 1.0 - (double)f[k];
        }
        if (!(share > 0))
            continue;
        vxk_voxel_tint(g, v, &colour, &label);
        if (vxk_colour_weight(colour)) {
            all += share;
            for (uint32_t k = 0; k < 3; k++)
                sum[k] += share * (double)vxk_colour_part(colour, k);
            if (share > heaviest) {
                heaviest = share;
                o->weight = (uint8_t)vxk_colour_weight(colour);
            }
        }
        if (vxk_label_of(label) && share > most) {
            most = share;
            o->label = (uint8_t)vxk_label_of(label);
            o->trust = (uint8_t)vxk_label_trust(label);
        }
    }
    for (uint32_t k = 0; k < 3 && all > 0; k++)
        o->colour[k] = (uint8_t)vxk_minu((uint32_t)(sum[k] / all * 0.5 + 0.5), 255);
}
VXK_FN void vxk_tint_none(struct vxk_tint_answer *o)
{
    o->colour[0] = o->colour[1] = o->colour[2] = VXK_TINT_GREY;
    o->label = o->weight = o->trust = 0;
    o->reserved = 0;
}

/* Element: a point. */
struct vxk_query_tints_args {
    struct vxk_query q;  /* grid, offset_m, voxel_m */
    const float *points; /* [n][3] */
    struct vxk_tint_answer *out;
};
VXK_FN void vxk_query_tints(const struct vxk_query_tints_args *a, uint32_t i)
{
    int32_t low[3];
    float f[3];
    int ok = 1;
    vxk_tint_none(&a->out[i]);
    for (int k = 0; k < 3; k++)
        ok &= vxk_split(((double)a->points[3 * (uint64_t)i + (uint32_t)k] + a->q.offset_m[k]) / a->q.voxel_m -
                            0.5,
                        &low[k], &f[k]);
    if (ok)
        vxk_tint_between(&a->q.grid, low, f, &a->out[i]);
}

#endif
