/*
 * query_ray.h - the first surface along a ray.
 *
 * The ray goes from box to box: chunks, words and cells without a leaf record in one step, voxels one by one.
 * In active voxels it samples the field where it enters the voxel and half way through: the TSDF interpolated
 * between the eight centres when all eight have a value, else that of the voxel.  The first negative sample
 * is a hit; the crossing between it and the sample before is found by bisection.  Occupancy maps hit where
 * the ray enters an occupied voxel.
 */
#ifndef VXK_BODY_QUERY_RAY_H
#define VXK_BODY_QUERY_RAY_H

#include "dda.h"
#include "query_point.h"

enum { VXK_RAY_BISECTIONS = 12 };

struct vxk_ray_answer { /* vx_ray_answer */
    float range_m;
    float normal[3];
    uint32_t state;
    float unknown_from_m;
};

struct vxk_walk {
    const struct vxk_query *q;
    struct vxk_dda w; /* in voxels of the map, unit direction */
    /* the chunk that was looked up last */
    uint64_t key;
    const struct vxk_chunk *chunk;
};

VXK_FN const struct vxk_chunk *vxk_ray_chunk(struct vxk_walk *r, int32_t x, int32_t y, int32_t z)
{
    uint64_t key;
    if (!vxk_cell_key(x >> 3, y >> 3, z >> 3, &key))
        return (const struct vxk_chunk *)0;
    if (key != r->key) {
        r->key = key;
        r->chunk = vxk_find_chunk(&r->q->grid, key);
    }
    return r->chunk;
}
VXK_FN int vxk_ray_voxel(struct vxk_walk *r, int32_t x, int32_t y, int32_t z, uint32_t *value)
{
    return vxk_chunk_voxel(&r->q->grid, vxk_ray_chunk(r, x, y, z), (uint32_t)x & 127, (uint32_t)y & 127,
                           (uint32_t)z & 127, value);
}

/* Field at t along the ray: interpolated where all eight centres have a value, else that of the voxel;
 * positive where that has none. */
VXK_FN float vxk_ray_sample(struct vxk_walk *r, double t)
{
    int32_t b[3];
    float f[3], d[8], g[3];
    uint32_t v = 0, all = !r->q->occupancy;
    for (int a = 0; a < 3; a++)
        if (!vxk_split(r->w.o[a] + t * r->w.d[a] - 0.5, &b[a], &f[a]))
            return 1.0f;
    for (int32_t k = 0; k < 8 && all; k++) {
        all = vxk_ray_voxel(r, b[0] + (k >> 2), b[1] + (k >> 1 & 1), b[2] + (k & 1), &v) == VXK_ACTIVE;
        d[k] = (float)vxk_tsdf_distance(v);
    }
    if (all)
        return vxk_trilinear(d, f, g);
    for (int a = 0; a < 3; a++)
        b[a] += f[a] >= 0.5f;
    if (vxk_ray_voxel(r, b[0], b[1], b[2], &v) != VXK_ACTIVE)
        return 1.0f;
    return r->q->occupancy ? (float)-vxk_tsdf_distance(v) : (float)vxk_tsdf_distance(v);
}

/* Difference of the field across the hit along an axis, from the voxels on both sides of `v`; 0 where none
 * counts. */
VXK_FN float vxk_ray_difference(struct vxk_walk *r, const int32_t v[3], int axis, float here)
{
    float sum = 0.0f, n = 0.0f;
    for (int32_t d = -1; d <= 1; d += 2) {
        uint32_t value = 0;
        int found = vxk_ray_voxel(r, v[0] + (axis == 0 ? d : 0), v[1] + (axis == 1 ? d : 0),
                                  v[2] + (axis == 2 ? d : 0), &value);
        uint32_t state = vxk_evidence(found, value, r->q->occupancy);
        float t = (float)vxk_tsdf_distance(value);
        if (r->q->occupancy ? state == VXK_STATE_UNKNOWN : found != VXK_ACTIVE)
            continue;
        if (r->q->occupancy)
            t = state == VXK_STATE_OCCUPIED ? -1.0f : 1.0f;
        sum = sum + (float)d * (t - here);
        n = n + 1.0f;
    }
    return n == 0.0f ? 0.0f : sum / n;
}

/* Fills the answer of a hit at t, found in voxel v. */
VXK_FN void vxk_ray_hit(struct vxk_walk *r, double t, const int32_t v[3], uint32_t value,
                        struct vxk_ray_answer *out)
{
    float here = (float)vxk_tsdf_distance(value), along = 0.0f;
    if (r->q->occupancy)
        here = -1.0f;
    out->range_m = (float)(t * r->q->voxel_m);
    out->state = VXK_STATE_OCCUPIED;
    for (int a = 0; a < 3; a++)
        out->normal[a] = vxk_ray_difference(r, v, a, here);
    for (int a = 0; a < 3; a++)
        along = along + out->normal[a] * (float)r->w.d[a];
    for (int a = 0; a < 3; a++)
        if (along > 0.0f) /* a surface met from behind: the normal still faces the ray's origin */
            out->normal[a] = -out->normal[a];
    if (vxk_unit(out->normal))
        return;
    for (int a = 0; a < 3; a++)
        out->normal[a] = (float)-r->w.d[a];
}

/* How many voxels a side have the same answer as v, and which: the box's size; *found and *value as
 * vxk_voxel. */
VXK_FN int32_t vxk_ray_look(struct vxk_walk *r, const int32_t v[3], int *found, uint32_t *value)
{
    const struct vxk_chunk *c = vxk_ray_chunk(r, v[0], v[1], v[2]);
    const struct vxk_word *w;
    uint32_t x = (uint32_t)v[0] & 127, y = (uint32_t)v[1] & 127, z = (uint32_t)v[2] & 127,
             cell = vxk_cell_of(x, y, z);
    *found = VXK_UNKNOWN;
    if (!c)
        return 128;
    w = &c->word[vxk_word_of(x, y, z)];
    if (w->leaf >> cell & 1) {
        *found = vxk_chunk_voxel(&r->q->grid, c, x, y, z, value);
        return 1;
    }
    *found = w->tile >> cell & 1 ? VXK_FREE : VXK_UNKNOWN;
    return w->tile == ~0ull || !(w->tile | w->leaf) ? 32 : 8;
}

/* Looks for a negative sample between t and next, in an active voxel; *positive = the last place that was not
 * negative. True with *hit = the crossing. */
VXK_FN int vxk_ray_search(struct vxk_walk *r, double t, double next, double *positive, double *hit)
{
    for (int half = 0; half < 2; half++) {
        double at = half ? t + 0.5 * (next - t) : t;
        if (!(vxk_ray_sample(r, at) < 0.0f)) {
            *positive = at;
            continue;
        }
        for (int k = 0; k < VXK_RAY_BISECTIONS && *positive < at; k++) {
            double mid = 0.5 * (*positive + at);
            if (vxk_ray_sample(r, mid) < 0.0f)
                at = mid;
            else
                *positive = mid;
        }
        *hit = at;
        return 1;
    }
    return 0;
}

VXK_FN void vxk_ray_walk(struct vxk_walk *r, struct vxk_ray_answer *out)
{
    double positive = r->w.t, unknown = -1.0, hit;
    int found;
    int32_t size;
    do {
        uint32_t value = 0;
        size = vxk_ray_look(r, r->w.i, &found, &value);
        vxk_dda_span(&r->w, size);
        if (unknown < 0.0 && vxk_evidence(found, value, r->q->occupancy) == VXK_STATE_UNKNOWN)
            unknown = r->w.t;
        if (found != VXK_ACTIVE) {
            positive = r->w.t_exit;
        } else if (vxk_ray_search(r, r->w.t, r->w.t_exit, &positive, &hit)) {
            vxk_ray_hit(r, hit, r->w.i, value, out);
            if (unknown >= 0.0 && unknown < hit)
                out->unknown_from_m = (float)(unknown * r->q->voxel_m);
            return;
        }
    } while (vxk_dda_step(&r->w, size));
    out->state = unknown < 0.0 ? VXK_STATE_FREE : VXK_STATE_UNKNOWN;
    if (unknown >= 0.0)
        out->unknown_from_m = (float)(unknown * r->q->voxel_m);
}

/* Element: a ray. */
struct vxk_query_rays_args {
    struct vxk_query q;
    const float *rays; /* [n][6] origin, direction: finite, not 0 (checked) */
    struct vxk_ray_answer *out;
    double max_range_m;
};
VXK_FN void vxk_query_rays(const struct vxk_query_rays_args *a, uint32_t i)
{
    const float *p = a->rays + 6 * (uint64_t)i;
    struct vxk_ray_answer *out = &a->out[i];
    struct vxk_spot spot;
    struct vxk_walk r;
    double o[3], d[3], n = 0.0, most = 0.0, length;
    int ok = vxk_locate(&a->q, p, &spot);
    out->range_m = a->q.undefined;
    out->normal[0] = out->normal[1] = out->normal[2] = 0.0f;
    out->state = VXK_STATE_UNKNOWN;
    out->unknown_from_m = 0.0f;
    for (int k = 0; k < 3; k++) {
        double along = (double)p[3 + k] < 0.0 ? -(double)p[3 + k] : (double)p[3 + k];
        most = along > most ? along : most;
    }
    if (!ok)
        return;
    for (int k = 0; k < 3; k++) {
        d[k] = (double)p[3 + k] / most;
        n += d[k] * d[k];
    }
    length =
        (double)vxk_sqrt((float)n); /* n is 1 .. 3; two steps of Newton make it exact to double's precision */
    length = 0.5 * (length + n / length);
    length = 0.5 * (length + n / length);
    for (int k = 0; k < 3; k++) {
        o[k] = ((double)p[k] + a->q.offset_m[k]) / a->q.voxel_m;
        d[k] = d[k] / length;
    }
    r.q = &a->q;
    r.key = VXK_NO_KEY;
    r.chunk = (const struct vxk_chunk *)0;
    if (!vxk_dda_begin(&r.w, o, d, 0.0, a->max_range_m / a->q.voxel_m))
        return;
    out->unknown_from_m = a->q.undefined;
    vxk_ray_walk(&r, out);
}

#endif
