/*
 * query_point.h - distance, gradient and state of points and spheres.
 *
 * Distances are interpolated between the eight voxel centres around a point when all eight have a state and a
 * surface within R; else they are those of the centre of the voxel that holds the point.  (A centre without a
 * state carries the distance to known surfaces unsigned: mixing it with signed ones would make zero crossings
 * where no surface is.)
 */
#ifndef VXK_BODY_QUERY_POINT_H
#define VXK_BODY_QUERY_POINT_H

#include "esdf_field.h"

/* Status bits, those of vx/query.h. */
enum {
    VXK_Q_DISTANCE = 1,
    VXK_Q_GRADIENT = 2,
    VXK_Q_OUTSIDE = 4,
    VXK_Q_TOUCHES_UNKNOWN = 8,
    VXK_Q_COLLIDES = 16
};

struct vxk_point_answer { /* vx_point_answer */
    float distance_m;
    float gradient[3];
    uint32_t state;
    uint32_t status;
};

/* What every query reads. */
struct vxk_query {
    struct vxk_grid grid;
    struct vxk_esdf esdf;
    double offset_m[3]; /* origin of the batch minus origin of the map */
    double voxel_m;
    float undefined; /* NaN */
    uint32_t occupancy;
};

/* A place in the map: a voxel and the part of a voxel from its lower corner, 0 .. 1. */
struct vxk_spot {
    int32_t v[3];
    float f[3];
};

/* Coordinate in voxels to voxel and part; false when it is NaN or outside the voxel range. */
VXK_FN int vxk_split(double x, int32_t *v, float *f)
{
    int32_t i;
    *v = 0;
    *f = 0.0f;
    if (!(x >= -134217728.0 && x < 134217728.0))
        return 0;
    i = (int32_t)x;
    if ((double)i > x)
        i--;
    *v = i;
    *f = (float)(x - (double)i);
    return 1;
}
/* A position of the batch, in doubles so that a map far from the origin is as fine as one at it. */
VXK_FN int vxk_locate(const struct vxk_query *q, const float p[3], struct vxk_spot *out)
{
    int ok = 1;
    for (int a = 0; a < 3; a++)
        ok &= vxk_split(((double)p[a] + q->offset_m[a]) / q->voxel_m, &out->v[a], &out->f[a]);
    return ok;
}

/* Looks voxels of the field up; neighbours are mostly of one leaf, and of one chunk nearly always. */
struct vxk_esdf_cursor {
    int32_t x, y, z; /* cell */
    int known;
    uint64_t key;
    uint32_t chunk;
    const uint16_t *leaf;
};
VXK_FN void vxk_esdf_cursor_init(struct vxk_esdf_cursor *c)
{
    c->known = 0;
    c->x = c->y = c->z = 0;
    c->key = VXK_NO_KEY;
    c->chunk = VXK_NONE;
    c->leaf = (const uint16_t *)0;
}
/* Moves to a cell. */
VXK_FN void vxk_esdf_seek(const struct vxk_esdf *e, struct vxk_esdf_cursor *c, int32_t x, int32_t y,
                          int32_t z)
{
    uint64_t key;
    if (c->known && c->x == x && c->y == y && c->z == z)
        return;
    c->known = 1;
    c->x = x;
    c->y = y;
    c->z = z;
    c->leaf = (const uint16_t *)0;
    if (!vxk_cell_key(x, y, z, &key))
        return;
    if (key != c->key) {
        c->key = key;
        c->chunk = vxk_esdf_find(e, key);
    }
    c->leaf = vxk_esdf_leaf_of(e, c->chunk, x, y, z);
}
/* Stored value of a voxel; VXK_ESDF_FAR with an unknown state where no leaf is. */
VXK_FN uint32_t vxk_esdf_at(const struct vxk_esdf *e, struct vxk_esdf_cursor *c, int32_t x, int32_t y,
                            int32_t z)
{
    vxk_esdf_seek(e, c, x >> 3, y >> 3, z >> 3);
    return c->leaf ? c->leaf[vxk_voxel_of((uint32_t)x, (uint32_t)y, (uint32_t)z)] : (uint32_t)VXK_ESDF_FAR;
}
VXK_FN int vxk_esdf_has_distance(uint32_t stored)
{
    return (stored & VXK_ESDF_FAR) != VXK_ESDF_FAR;
}
VXK_FN int vxk_esdf_has_state(uint32_t stored)
{
    return stored >> 14 != VXK_STATE_UNKNOWN;
}
/* In units of 1 / (256 K) voxel, negative where occupied. */
VXK_FN float vxk_esdf_signed(uint32_t stored)
{
    float d = (float)(stored & VXK_ESDF_FAR);
    return stored >> 14 == VXK_STATE_OCCUPIED ? -d : d;
}

/* Makes g unit length; false when it has no direction. */
VXK_FN int vxk_unit(float g[3])
{
    float n = vxk_sqrt(g[0] * g[0] + g[1] * g[1] + g[2] * g[2]);
    if (!(n > 0.0f))
        return 0;
    for (int a = 0; a < 3; a++)
        g[a] = g[a] / n;
    return 1;
}

/* A distance rises by one a voxel.  Where interpolated centres rise by clearly less, they belong to different
 * surfaces (the medial axis): there is no direction to speak of.  Close to a surface its sites, about a voxel
 * apart, flatten the field too.  Makes g (in stored units a voxel) unit length; false when it has no
 * direction.  distance: in voxels. */
VXK_FN int vxk_esdf_direction(const struct vxk_esdf *e, float distance, float g[3])
{
    float unit = 256.0f * (float)e->scale, least = vxk_abs(distance) < 2.0f ? 0.5f * unit : 0.8f * unit;
    return g[0] * g[0] + g[1] * g[1] + g[2] * g[2] >= least * least && vxk_unit(g);
}

/* Trilinear value and gradient (per voxel) from d[x << 2 | y << 1 | z] at f. */
VXK_FN float vxk_trilinear(const float d[8], const float f[3], float g[3])
{
    float z0 = d[0] + f[2] * (d[1] - d[0]), z1 = d[2] + f[2] * (d[3] - d[2]);
    float z2 = d[4] + f[2] * (d[5] - d[4]), z3 = d[6] + f[2] * (d[7] - d[6]);
    float y0 = z0 + f[1] * (z1 - z0), y1 = z2 + f[1] * (z3 - z2);
    float s0 = (d[1] - d[0]) + f[1] * ((d[3] - d[2]) - (d[1] - d[0]));
    float s1 = (d[5] - d[4]) + f[1] * ((d[7] - d[6]) - (d[5] - d[4]));
    g[0] = y1 - y0;
    g[1] = (z1 - z0) + f[0] * ((z3 - z2) - (z1 - z0));
    g[2] = s0 + f[0] * (s1 - s0);
    return y0 + f[0] * (y1 - y0);
}

/* Gradient at the centre of voxel v by differences with the face neighbours of the same kind: those that have
 * a distance and, like v, have a state or have none.  False when an axis has none, or without a direction. */
VXK_FN int vxk_esdf_differences(const struct vxk_esdf *e, struct vxk_esdf_cursor *c, const int32_t v[3],
                                uint32_t stored, float g[3])
{
    float here = vxk_esdf_signed(stored);
    for (int a = 0; a < 3; a++) {
        float sum = 0.0f, n = 0.0f;
        for (int32_t d = -1; d <= 1; d += 2) {
            uint32_t s =
                vxk_esdf_at(e, c, v[0] + (a == 0 ? d : 0), v[1] + (a == 1 ? d : 0), v[2] + (a == 2 ? d : 0));
            if (!vxk_esdf_has_distance(s) || vxk_esdf_has_state(s) != vxk_esdf_has_state(stored))
                continue;
            sum = sum + (float)d * (vxk_esdf_signed(s) - here);
            n = n + 1.0f;
        }
        if (n == 0.0f)
            return 0;
        g[a] = sum / n;
    }
    return vxk_esdf_direction(e, here / (256.0f * (float)e->scale), g);
}

/* The eight centres around a spot, b the lowest: false when one has no state or no distance. */
VXK_FN int vxk_esdf_corners(const struct vxk_esdf *e, struct vxk_esdf_cursor *c, const int32_t b[3],
                            float d[8])
{
    uint32_t all = 1, stored[8];
    if (((b[0] & 7) != 7) & ((b[1] & 7) != 7) & ((b[2] & 7) != 7)) { /* of one leaf: eight loads at once */
        uint32_t n = vxk_voxel_of((uint32_t)b[0], (uint32_t)b[1], (uint32_t)b[2]);
        vxk_esdf_seek(e, c, b[0] >> 3, b[1] >> 3, b[2] >> 3);
        if (!c->leaf)
            return 0;
        for (uint32_t k = 0; k < 8; k++)
            stored[k] = c->leaf[n + (k >> 2) * 64 + (k >> 1 & 1) * 8 + (k & 1)];
    } else {
        for (int32_t k = 0; k < 8; k++)
            stored[k] = vxk_esdf_at(e, c, b[0] + (k >> 2), b[1] + (k >> 1 & 1), b[2] + (k & 1));
    }
    for (uint32_t k = 0; k < 8; k++) {
        all &= (uint32_t)(vxk_esdf_has_distance(stored[k]) & vxk_esdf_has_state(stored[k]));
        d[k] = vxk_esdf_signed(stored[k]);
    }
    return (int)all;
}
/* What a spot is asked for first: its voxel's stored value and its state. */
VXK_FN uint32_t vxk_probe_voxel(const struct vxk_query *q, struct vxk_esdf_cursor *c,
                                const struct vxk_spot *s, uint32_t *state)
{
    uint32_t stored = vxk_esdf_at(&q->esdf, c, s->v[0], s->v[1], s->v[2]), value = 0;
    *state = stored >> 14;
    if (!c->leaf) {
        int evidence = vxk_voxel(&q->grid, s->v[0], s->v[1], s->v[2], &value);
        *state = vxk_evidence(evidence, value, q->occupancy);
    }
    return stored;
}
/* The lowest of the eight centres around a spot, and where it lies between them. */
VXK_FN void vxk_spot_corner(const struct vxk_spot *s, int32_t b[3], float f[3])
{
    for (int a = 0; a < 3; a++) {
        b[a] = s->f[a] < 0.5f ? s->v[a] - 1 : s->v[a];
        f[a] = s->f[a] < 0.5f ? s->f[a] + 0.5f : s->f[a] - 0.5f;
    }
}
/* Distance in voxels (valid with VXK_Q_DISTANCE), gradient and state of a spot: the status bits. */
VXK_FN uint32_t vxk_probe(const struct vxk_query *q, const struct vxk_spot *s, float *distance, float g[3],
                          uint32_t *state)
{
    struct vxk_esdf_cursor cursor;
    int32_t b[3];
    float f[3], d[8], unit = 1.0f / (256.0f * (float)q->esdf.scale);
    uint32_t stored;
    vxk_esdf_cursor_init(&cursor);
    stored = vxk_probe_voxel(q, &cursor, s, state);
    g[0] = g[1] = g[2] = 0.0f;
    *distance = 0.0f;
    if (!vxk_esdf_has_distance(stored))
        return 0;
    vxk_spot_corner(s, b, f);
    if (vxk_esdf_corners(&q->esdf, &cursor, b, d)) {
        *distance = vxk_trilinear(d, f, g) * unit;
        if (vxk_esdf_direction(&q->esdf, *distance, g))
            return VXK_Q_DISTANCE | VXK_Q_GRADIENT;
    } else {
        *distance = vxk_esdf_signed(stored) * unit;
        if (vxk_esdf_differences(&q->esdf, &cursor, s->v, stored, g))
            return VXK_Q_DISTANCE | VXK_Q_GRADIENT;
    }
    g[0] = g[1] = g[2] = 0.0f;
    return VXK_Q_DISTANCE;
}
/* The same without a gradient: false when nothing is within R.  Without `states` a voxel that is not within R
 * counts as free. */
VXK_FN int vxk_probe_distance(const struct vxk_query *q, struct vxk_esdf_cursor *c, const struct vxk_spot *s,
                              int states, float *distance, uint32_t *state)
{
    int32_t b[3];
    float f[3], d[8], g[3], unit = 1.0f / (256.0f * (float)q->esdf.scale);
    uint32_t stored;
    if (states) {
        stored = vxk_probe_voxel(q, c, s, state);
    } else {
        stored = vxk_esdf_at(&q->esdf, c, s->v[0], s->v[1], s->v[2]);
        *state = c->leaf ? stored >> 14 : (uint32_t)VXK_STATE_FREE;
    }
    *distance = 0.0f;
    if (!vxk_esdf_has_distance(stored))
        return 0;
    vxk_spot_corner(s, b, f);
    *distance =
        (vxk_esdf_corners(&q->esdf, c, b, d) ? vxk_trilinear(d, f, g) : vxk_esdf_signed(stored)) * unit;
    return 1;
}

VXK_FN void vxk_answer_nothing(const struct vxk_query *q, uint32_t status, struct vxk_point_answer *out)
{
    out->distance_m = q->undefined;
    out->gradient[0] = out->gradient[1] = out->gradient[2] = 0.0f;
    out->state = VXK_STATE_UNKNOWN;
    out->status = status;
}

/* Element: a point. */
struct vxk_query_points_args {
    struct vxk_query q;
    const float *points; /* [n][3] */
    struct vxk_point_answer *out;
};
VXK_FN void vxk_query_points(const struct vxk_query_points_args *a, uint32_t i)
{
    struct vxk_point_answer *out = &a->out[i];
    struct vxk_spot spot;
    float d, g[3];
    if (!vxk_locate(&a->q, a->points + 3 * (uint64_t)i, &spot)) {
        vxk_answer_nothing(&a->q, VXK_Q_OUTSIDE, out);
        return;
    }
    out->status = vxk_probe(&a->q, &spot, &d, g, &out->state);
    out->distance_m = out->status & VXK_Q_DISTANCE ? d * (float)a->q.voxel_m : a->q.undefined;
    for (int k = 0; k < 3; k++)
        out->gradient[k] = g[k];
}

#endif
