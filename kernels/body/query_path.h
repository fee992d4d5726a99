/*
 * query_path.h - a robot of spheres along a path: first contact, least clearance, where it meets unknown
 * space.
 *
 * An element sweeps one sphere between two way-points.  It advances by what the distance field says is clear,
 * so that nothing between the samples is missed.  Results of a path's elements meet in minima.
 */
#ifndef VXK_BODY_QUERY_PATH_H
#define VXK_BODY_QUERY_PATH_H

#include "query_sphere.h"

/* vx_unknown */
enum { VXK_UNKNOWN_REPORT = 0, VXK_UNKNOWN_FREE = 1, VXK_UNKNOWN_OCCUPIED = 2 };
enum { VXK_PATH_MOST = 4096 /* voxels between way-points */ };

struct vxk_path_answer { /* vx_path_answer; before vxk_query_path_end: order-preserving numbers */
    uint64_t first;      /* sphere below, place above: the least is the first contact */
    uint32_t clearance, unknown;
    uint32_t status, reserved;
};
union vxk_bits {
    float f;
    uint32_t u;
};
/* Floats as numbers in the same order, and back. */
VXK_FN uint32_t vxk_order_of(float f)
{
    union vxk_bits b;
    b.f = f;
    return b.u >> 31 ? ~b.u : b.u | 0x80000000u;
}
VXK_FN float vxk_ordered(uint32_t o)
{
    union vxk_bits b;
    b.u = o >> 31 ? o & 0x7fffffffu : ~o;
    return b.f;
}

struct vxk_query_path_args {
    struct vxk_query q;
    const float *poses;   /* [n][n_waypoints][7] */
    const float *spheres; /* [n_spheres][4] */
    struct vxk_path_answer *out;
    uint32_t n_waypoints, n_segments, n_spheres, unknown;
    uint32_t first; /* element of this launch of vxk_query_path */
};

/* Element: a path. */
#define vxk_query_path_begin_args vxk_query_path_args
VXK_FN void vxk_query_path_begin(const struct vxk_query_path_args *a, uint32_t i)
{
    struct vxk_path_answer *o = &a->out[i];
    o->first = ~0ull;
    o->clearance = o->unknown = VXK_NONE;
    o->status = o->reserved = 0;
}

/* One sphere's way between two poses; lengths in voxels. */
struct vxk_way {
    double from[3], step[3]; /* position at s = 0, and what it gains up to s = 1 */
    float q[4], turn[4];     /* rotation at s = 0 and what the quaternion gains, unnormalised */
    float c[3], radius;      /* the sphere in the robot's frame */
    float length;            /* no way that its centre goes is longer */
};
/* Reads a pose: false when it is not finite or its quaternion is off by more than 1e-3. */
VXK_FN int vxk_pose(const struct vxk_query *q, const float *p, double at[3], float rotation[4])
{
    float n = 0.0f;
    int ok = 1;
    for (int k = 0; k < 3; k++) {
        at[k] = ((double)p[k] + q->offset_m[k]) / q->voxel_m;
        ok &= at[k] > -1e12 && at[k] < 1e12;
    }
    for (int k = 0; k < 4; k++) {
        rotation[k] = p[3 + k];
        n = n + p[3 + k] * p[3 + k];
    }
    n = vxk_sqrt(n);
    if (!ok || !(n > 0.999f && n < 1.001f))
        return 0;
    for (int k = 0; k < 4; k++)
        rotation[k] = rotation[k] / n;
    return 1;
}
VXK_FN int vxk_way_make(const struct vxk_query_path_args *a, uint32_t path, uint32_t segment, uint32_t sphere,
                        struct vxk_way *w)
{
    const float *p = a->poses + ((uint64_t)path * a->n_waypoints + segment) * 7,
                *s = a->spheres + 4 * (uint64_t)sphere;
    double to[3];
    float q2[4], dot = 0.0f, turned = 0.0f, moved = 0.0f, off = 0.0f;
    if (!vxk_pose(&a->q, p, w->from, w->q) || !vxk_pose(&a->q, a->n_waypoints > 1 ? p + 7 : p, to, q2))
        return 0;
    for (int k = 0; k < 4; k++)
        dot = dot + w->q[k] * q2[k];
    for (int k = 0; k < 4; k++) {
        w->turn[k] = (dot < 0.0f ? -q2[k] : q2[k]) - w->q[k];
        turned = turned + w->turn[k] * w->turn[k];
    }
    for (int k = 0; k < 3; k++) {
        w->step[k] = to[k] - w->from[k];
        moved = moved + (float)(w->step[k] * w->step[k]);
        w->c[k] = (float)((double)s[k] / a->q.voxel_m);
        off = off + w->c[k] * w->c[k];
    }
    w->radius = (float)((double)s[3] / a->q.voxel_m);
    /* The rotation's rate is at most 2 |turn| / |q in the middle|, and that is at least sqrt(1/2). */
    w->length = vxk_sqrt(moved) + vxk_sqrt(off) * 2.83f * vxk_sqrt(turned);
    return w->length <= (float)VXK_PATH_MOST;
}
/* The sphere's centre at s: false outside the voxel range. */
VXK_FN int vxk_way_at(const struct vxk_way *w, float s, struct vxk_spot *out)
{
    float q[4], n = 0.0f, u[3], v[3];
    int ok = 1;
    for (int k = 0; k < 4; k++) {
        q[k] = w->q[k] + s * w->turn[k];
        n = n + q[k] * q[k];
    }
    n = vxk_sqrt(n);
    for (int k = 0; k < 4; k++)
        q[k] = q[k] / n;
    for (int k = 0; k < 3; k++) { /* c + 2 w (q x c) + 2 q x (q x c) */
        int x = (k + 1) % 3, y = (k + 2) % 3;
        u[k] = 2.0f * (q[x] * w->c[y] - q[y] * w->c[x]);
    }
    for (int k = 0; k < 3; k++) {
        int x = (k + 1) % 3, y = (k + 2) % 3;
        v[k] = w->c[k] + q[3] * u[k] + (q[x] * u[y] - q[y] * u[x]);
        ok &= vxk_split(w->from[k] + (double)s * w->step[k] + (double)v[k], &out->v[k], &out->f[k]);
    }
    return ok;
}

VXK_FN void vxk_path_flag(struct vxk_path_answer *o, uint32_t bits)
{
    if ((vxk_load32(&o->status) & bits) != bits)
        vxk_atomic_or32(&o->status, bits);
}
VXK_FN void vxk_path_least(uint32_t *at, uint32_t value)
{
    if (value < vxk_load32(at))
        vxk_atomic_min32(at, value);
}
VXK_FN void vxk_path_contact(struct vxk_path_answer *o, float place, uint32_t sphere)
{
    union vxk_bits b;
    uint64_t first;
    b.f = place;
    first = (uint64_t)b.u << 32 | sphere;
    if (first < vxk_load64(&o->first))
        vxk_atomic_min64(&o->first, first);
    vxk_path_flag(o, VXK_Q_COLLIDES);
}

/* What is at a sample, in voxels. */
struct vxk_path_sample {
    float clear; /* no surface is nearer to the sphere's skin */
    int has;     /* clear is a distance and not the end of reach */
    int touches; /* something known */
    uint32_t state;
};
VXK_FN void vxk_path_look(const struct vxk_query_path_args *a, const struct vxk_way *w,
                          const struct vxk_spot *spot, struct vxk_esdf_cursor *cursor,
                          struct vxk_path_sample *out)
{
    float d;
    out->has = vxk_probe_distance(&a->q, cursor, spot, &d, &out->state);
    out->clear = (out->has ? vxk_min(d, (float)a->q.esdf.radius) : (float)a->q.esdf.radius) - w->radius;
    out->touches = (out->has && d <= w->radius) || out->state == VXK_STATE_OCCUPIED;
}
/* True when an unknown voxel's cube is within r of a spot. */
VXK_FN int vxk_path_unknown(const struct vxk_query *q, const struct vxk_spot *spot, float r)
{
    struct vxk_ball b;
    b.at = *spot;
    b.r = r;
    b.status = VXK_Q_COLLIDES; /* known surfaces are not asked for */
    vxk_ball_scan(q, &b);
    return (b.status & VXK_Q_TOUCHES_UNKNOWN) != 0;
}

/* How far a sphere may go from a sample.  Half of its clearance, so that what lies between two samples is
 * known to half of that; less what a centre's distance may be off inside its voxel.  Where unknown space
 * counts, occupied space behind it counts too, and that has no surface: short steps. */
VXK_FN float vxk_path_step(const struct vxk_query_path_args *a, const struct vxk_path_sample *now)
{
    float step = vxk_max(vxk_min(now->clear - 0.9f, 0.5f * now->clear), 0.25f);
    if (a->unknown == VXK_UNKNOWN_FREE)
        return step;
    return vxk_min(step, now->state == VXK_STATE_UNKNOWN ? 0.5f : 1.0f);
}
/* Sweeps; *least = no surface is nearer to the sphere's skin anywhere on the way. */
VXK_FN void vxk_path_sweep(const struct vxk_query_path_args *a, const struct vxk_way *w, uint32_t segment,
                           uint32_t sphere, struct vxk_path_answer *o, float *least)
{
    struct vxk_path_sample now, last;
    struct vxk_esdf_cursor cursor;
    struct vxk_spot spot;
    float s = 0.0f, gone = 0.0f; /* gone: from the last sample, voxels */
    int look = a->unknown != VXK_UNKNOWN_FREE;
    vxk_esdf_cursor_init(&cursor);
    last.has = 0;
    last.clear = 0.0f;
    for (;;) {
        float step, next;
        if (!vxk_way_at(w, s, &spot)) {
            vxk_path_flag(o, VXK_Q_OUTSIDE);
            return;
        }
        vxk_path_look(a, w, &spot, &cursor, &now);
        if (now.has)
            *least = vxk_min(*least, now.clear);
        if (s > 0.0f && (now.has || last.has))
            *least = vxk_min(*least, 0.5f * (last.clear + now.clear - gone));
        if (now.touches) {
            vxk_path_contact(o, (float)segment + s, sphere);
            return;
        }
        step = vxk_path_step(a, &now);
        if (look && vxk_path_unknown(&a->q, &spot, w->radius + 0.5f * vxk_max(step, gone))) {
            union vxk_bits place;
            place.f = (float)segment + s;
            vxk_path_least(&o->unknown, place.u);
            vxk_path_flag(o, VXK_Q_TOUCHES_UNKNOWN);
            if (a->unknown == VXK_UNKNOWN_OCCUPIED) {
                vxk_path_contact(o, place.f, sphere);
                return;
            }
            look = 0; /* the first of this element is known */
        }
        if (s >= 1.0f || w->length <= 0.0f)
            return;
        next = vxk_min(s + step / w->length, 1.0f);
        gone = (next - s) * w->length;
        s = next;
        last = now;
    }
}
/* Element first + i: path n / (segments x spheres), segment, sphere. */
VXK_FN void vxk_query_path(const struct vxk_query_path_args *a, uint32_t i)
{
    uint32_t n = a->first + i, path = n / (a->n_segments * a->n_spheres),
             segment = n / a->n_spheres % a->n_segments, sphere = n % a->n_spheres;
    struct vxk_path_answer *o = &a->out[path];
    struct vxk_way w;
    float least = 1e30f;
    if (!vxk_way_make(a, path, segment, sphere, &w)) {
        vxk_path_flag(o, VXK_Q_OUTSIDE);
        return;
    }
    vxk_path_sweep(a, &w, segment, sphere, o, &least);
    if (least < 1e29f)
        vxk_path_least(&o->clearance, vxk_order_of(least));
}
/* Element: a path. */
#define vxk_query_path_end_args vxk_query_path_args
VXK_FN void vxk_query_path_end(const struct vxk_query_path_args *a, uint32_t i)
{
    struct vxk_path_answer *o = &a->out[i];
    union vxk_bits b;
    b.f = o->clearance == VXK_NONE ? a->q.undefined : vxk_ordered(o->clearance) * (float)a->q.voxel_m;
    o->clearance = b.u;
    b.f = a->q.undefined;
    if (o->unknown == VXK_NONE)
        o->unknown = b.u;
    if (o->first == ~0ull)
        o->first = (uint64_t)b.u << 32 | VXK_NONE;
}

#endif
