/*
 * query_explain.h - the nearest unknown voxel, and why a place is what it is.
 */
#ifndef VXK_BODY_QUERY_EXPLAIN_H
#define VXK_BODY_QUERY_EXPLAIN_H

#include "esdf_site.h"
#include "query_sphere.h"

/* Squared distance from a spot (voxels from the spot's voxel) to the unknown voxels of a leaf, if less than
 * `best`. */
VXK_FN float vxk_unknown_leaf(const struct vxk_query *q, const struct vxk_ball *b, const struct vxk_leaf *l,
                              const int32_t first[3], float best)
{
    for (int32_t row = 0; row < 64; row++) {
        uint32_t shift = (uint32_t)(row & 7) << 3, active = (uint32_t)(l->active[row >> 3] >> shift) & 255,
                 left = ~(active | (uint32_t)(l->free[row >> 3] >> shift)) & 255;
        float gx = vxk_ball_gap(b, 0, first[0] + (row >> 3), first[0] + (row >> 3)),
              gy = vxk_ball_gap(b, 1, first[1] + (row & 7), first[1] + (row & 7));
        if (gx * gx + gy * gy >= best)
            continue;
        for (; q->occupancy && active; active &= active - 1) { /* log-odds of 0 say nothing */
            uint32_t z = vxk_ctz32(active),
                     v = q->grid.values[vxk_leaf_value_index(l, vxk_leaf_rank(l, (uint32_t)row << 3 | z))];
            if (vxk_evidence(VXK_ACTIVE, v, 1) == VXK_STATE_UNKNOWN)
                left |= 1u << z;
        }
        for (; left; left &= left - 1) {
            int32_t z = first[2] + (int32_t)vxk_ctz32(left);
            float gz = vxk_ball_gap(b, 2, z, z);
            best = vxk_min(best, gx * gx + gy * gy + gz * gz);
        }
    }
    return best;
}
/* Distance in voxels to the nearest unknown voxel's cube; at least `most` + 1: none within `most`. */
VXK_FN float vxk_nearest_unknown(const struct vxk_query *q, const struct vxk_spot *spot, float most)
{
    const struct vxk_chunk *c = (const struct vxk_chunk *)0;
    struct vxk_ball b;
    float best = (most + 1.0f) * (most + 1.0f);
    int32_t lo[3], hi[3], w[3], first[3], reach = (int32_t)vxk_ceil(most);
    uint64_t key, last = VXK_NO_KEY;
    b.at = *spot;
    for (int a = 0; a < 3; a++) {
        lo[a] = (spot->v[a] - reach) >> 3;
        hi[a] = (spot->v[a] + reach) >> 3;
    }
    for (w[0] = lo[0]; w[0] <= hi[0]; w[0]++)
        for (w[1] = lo[1]; w[1] <= hi[1]; w[1]++)
            for (w[2] = lo[2]; w[2] <= hi[2]; w[2]++) {
                float box;
                uint32_t place = vxk_place(w[0], w[1], w[2]), record = VXK_NONE;
                for (int a = 0; a < 3; a++)
                    first[a] = w[a] * 8 - spot->v[a];
                box = vxk_ball_box(&b, first, 8);
                if (box >= best)
                    continue;
                if (vxk_cell_key(w[0], w[1], w[2], &key)) {
                    if (key != last) {
                        last = key;
                        c = vxk_find_chunk(&q->grid, key);
                    }
                    record = vxk_record(c, place);
                }
                if (record == VXK_NONE)
                    best = vxk_min(best, box);
                else if (record != VXK_FREE_TILE)
                    best = vxk_unknown_leaf(q, &b, &q->grid.leaves[record], first, best);
            }
    return vxk_sqrt(best);
}

/* Element: a point. */
struct vxk_query_unknown_args {
    struct vxk_query q;
    const float *points; /* [n][3] */
    float *out;
    uint32_t radius; /* R, voxels */
};
VXK_FN void vxk_query_unknown(const struct vxk_query_unknown_args *a, uint32_t i)
{
    struct vxk_spot spot;
    float d = 0.0f;
    if (vxk_locate(&a->q, a->points + 3 * (uint64_t)i, &spot))
        d = vxk_nearest_unknown(&a->q, &spot, (float)a->radius);
    a->out[i] = d <= (float)a->radius ? d * (float)a->q.voxel_m : a->q.undefined;
}

struct vxk_point_unknown_answer { /* vx_point_unknown_answer */
    struct vxk_point_answer answer;
    float unknown_distance_m;
};
/* Element: a point. */
struct vxk_query_points_unknown_args {
    struct vxk_query q;
    const float *points; /* [n][3] */
    struct vxk_point_unknown_answer *out;
};
VXK_FN void vxk_query_points_unknown(const struct vxk_query_points_unknown_args *a, uint32_t i)
{
    struct vxk_query_points_args points;
    struct vxk_query_unknown_args unknown;
    points.q = a->q;
    points.points = unknown.points = a->points + 3 * (uint64_t)i;
    points.out = &a->out[i].answer;
    vxk_query_points(&points, 0);
    unknown.q = a->q;
    unknown.out = &a->out[i].unknown_distance_m;
    unknown.radius = a->q.esdf.radius;
    vxk_query_unknown(&unknown, 0);
}

/* vx_explanation; vx_why */
enum { VXK_WHY_OUTSIDE, VXK_WHY_NEVER_SEEN, VXK_WHY_SEEN_EMPTY, VXK_WHY_FREE_CELL, VXK_WHY_MEASURED };
struct vxk_explanation {
    struct vxk_point_answer answer;
    uint32_t why;
    int32_t voxel[3];
    float value;
    uint32_t weight, changed_epoch;
    float unknown_distance_m;
};
/* Element: a point. */
struct vxk_query_explain_args {
    struct vxk_query q;
    const float *points; /* [n][3] */
    struct vxk_explanation *out;
    float unit; /* of a stored distance, metres, or of log-odds */
};
VXK_FN void vxk_query_explain(const struct vxk_query_explain_args *a, uint32_t i)
{
    struct vxk_explanation *o = &a->out[i];
    struct vxk_query_points_args points;
    struct vxk_spot spot;
    const struct vxk_chunk *c;
    const struct vxk_word *w;
    uint32_t x, y, z, value = 0;
    int kind;
    float d;
    points.q = a->q;
    points.points = a->points + 3 * (uint64_t)i;
    points.out = &o->answer;
    vxk_query_points(&points, 0);
    o->why = VXK_WHY_OUTSIDE;
    o->voxel[0] = o->voxel[1] = o->voxel[2] = 0;
    o->value = a->q.undefined;
    o->weight = o->changed_epoch = 0;
    o->unknown_distance_m = 0.0f;
    if (!vxk_locate(&a->q, points.points, &spot))
        return;
    for (int k = 0; k < 3; k++)
        o->voxel[k] = spot.v[k];
    x = (uint32_t)spot.v[0] & 127;
    y = (uint32_t)spot.v[1] & 127;
    z = (uint32_t)spot.v[2] & 127;
    c = vxk_find_chunk(&a->q.grid, vxk_key(spot.v[0] >> 7, spot.v[1] >> 7, spot.v[2] >> 7));
    kind = vxk_chunk_voxel(&a->q.grid, c, x, y, z, &value);
    o->why = kind == VXK_ACTIVE ? VXK_WHY_MEASURED
             : kind == VXK_FREE ? VXK_WHY_SEEN_EMPTY
                                : VXK_WHY_NEVER_SEEN;
    if (c) {
        w = &c->word[vxk_word_of(x, y, z)];
        o->changed_epoch = w->changed_epoch;
        if (w->tile >> vxk_cell_of(x, y, z) & 1)
            o->why = VXK_WHY_FREE_CELL;
    }
    if (kind == VXK_ACTIVE) {
        o->value = (float)vxk_tsdf_distance(value) * a->unit;
        o->weight = a->q.occupancy ? 0 : vxk_tsdf_weight(value);
    }
    d = vxk_nearest_unknown(&a->q, &spot, (float)a->q.esdf.radius);
    o->unknown_distance_m = d <= (float)a->q.esdf.radius ? d * (float)a->q.voxel_m : a->q.undefined;
}

#endif
