/*
 * query_path.h - a robot of spheres along a path: first contact, least clearance, where it meets unknown
 * space.
 *
 * An element is the way of one sphere between two way-points.  Most are decided by the outlines of the few
 * words around: nothing is near.  The others are listed and marched along: by what the distance field says is
 * clear, so that nothing between the samples is missed.  Results of a path's elements meet in minima, and
 * what lies behind the first contact does not count: elements there may or may not be marched.
 */
#ifndef VXK_BODY_QUERY_PATH_H
#define VXK_BODY_QUERY_PATH_H

#include "query_sphere.h"

/* vx_unknown */
enum { VXK_UNKNOWN_REPORT = 0, VXK_UNKNOWN_FREE = 1, VXK_UNKNOWN_OCCUPIED = 2 };
enum {
    VXK_PATH_MOST = 4096, /* voxels between way-points */
    VXK_PATH_WIDE = 32,   /* voxels: longer ways are decided in pieces, and marched apart */
    VXK_PATH_GROUP = 8    /* places that are held against unknown space at once */
};

/* vx_path_answer.  Before vxk_query_path_end: numbers in the order of what they stand for, all ones = none.
 */
struct vxk_path_answer {
    uint64_t first; /* sphere below, place above: the least is the first contact */
    uint32_t clearance, unknown;
    uint32_t status, outside; /* outside: place from which on there is no answer; 0 in the end */
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

/* What the spheres of a robot share between two way-points; lengths in voxels. */
struct vxk_path_leg {
    int32_t v[3]; /* where the robot is half-way */
    float f[3], q[4];
    float moved, turned; /* how far it moves, and how much its quaternion gains; moved < 0: not a leg */
};
/* One sphere's way in short: half-way, the spot in its middle; how long it is at most. */
struct vxk_path_glance {
    struct vxk_spot middle;
    float length, radius;
};
struct vxk_path_counters {
    uint32_t n;      /* of the list */
    uint32_t n_long; /* legs on which a sphere may go further than VXK_PATH_WIDE */
};
struct vxk_query_path_args {
    struct vxk_query q;
    const float *poses;   /* [n_paths][n_waypoints][7] */
    const float *spheres; /* [n_spheres][4] */
    struct vxk_path_answer *out;
    struct vxk_path_leg *legs; /* [n_paths][n_segments] */
    uint32_t *list;            /* what is to be marched: element << 3 | VXK_NEAR ... */
    struct vxk_path_counters *counters;
    uint32_t n_paths, n_waypoints, n_segments, n_spheres, unknown;
    uint32_t first;       /* element of this list: segment, path, sphere */
    uint32_t entry;       /* of this launch of vxk_query_path */
    float reach;          /* how far from its origin the robot has a centre, voxels */
    float longest;        /* voxels: with a longer way vxk_query_path_whole leaves a path */
    const uint32_t *pick; /* the paths of vxk_query_path_whole; NULL: all */
};

/* Element: a path. */
#define vxk_query_path_begin_args vxk_query_path_args
VXK_FN void vxk_path_begin(struct vxk_path_answer *o)
{
    o->first = ~0ull;
    o->clearance = o->unknown = o->outside = VXK_NONE;
    o->status = 0;
}
VXK_FN void vxk_query_path_begin(const struct vxk_query_path_args *a, uint32_t i)
{
    vxk_path_begin(&a->out[i]);
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
/* No way of a sphere `off` from the robot's origin is longer.  The rotation's rate is at most 2 |turn| / |q
 * in the middle|, and that is at least sqrt(1/2). */
VXK_FN float vxk_way_length(float moved, float turned, float off)
{
    return moved + off * 2.83f * turned;
}
/* From a way's beginning to a pose: what it gains; *moved and *turned: as of vxk_path_leg. */
VXK_FN void vxk_way_to(struct vxk_way *w, const double to[3], const float q2[4], float *moved, float *turned)
{
    float dot = 0.0f, sum = 0.0f;
    for (int k = 0; k < 4; k++)
        dot = dot + w->q[k] * q2[k];
    for (int k = 0; k < 4; k++) {
        w->turn[k] = (dot < 0.0f ? -q2[k] : q2[k]) - w->q[k];
        sum = sum + w->turn[k] * w->turn[k];
    }
    *turned = vxk_sqrt(sum);
    sum = 0.0f;
    for (int k = 0; k < 3; k++) {
        w->step[k] = to[k] - w->from[k];
        sum = sum + (float)(w->step[k] * w->step[k]);
    }
    *moved = vxk_sqrt(sum);
}
/* What all spheres of a robot share on a way: where it begins and what it gains.  False when it is not a
 * leg. */
VXK_FN int vxk_way_ends(const struct vxk_query_path_args *a, uint32_t path, uint32_t segment,
                        struct vxk_way *w, float *moved, float *turned)
{
    const float *p = a->poses + ((uint64_t)path * a->n_waypoints + segment) * 7;
    double to[3];
    float q2[4];
    if (!vxk_pose(&a->q, p, w->from, w->q) || !vxk_pose(&a->q, a->n_waypoints > 1 ? p + 7 : p, to, q2))
        return 0;
    vxk_way_to(w, to, q2, moved, turned);
    return 1;
}
/* A sphere in voxels; returns how far it is from the robot's origin. */
VXK_FN float vxk_path_sphere(const struct vxk_query_path_args *a, uint32_t sphere, float c[3], float *radius)
{
    const float *s = a->spheres + 4 * (uint64_t)sphere;
    float off = 0.0f;
    for (int k = 0; k < 3; k++) {
        c[k] = (float)((double)s[k] / a->q.voxel_m);
        off = off + c[k] * c[k];
    }
    *radius = (float)((double)s[3] / a->q.voxel_m);
    return vxk_sqrt(off);
}
VXK_FN int vxk_way_make(const struct vxk_query_path_args *a, uint32_t path, uint32_t segment, uint32_t sphere,
                        struct vxk_way *w)
{
    float moved, turned, off;
    if (!vxk_way_ends(a, path, segment, w, &moved, &turned))
        return 0;
    off = vxk_path_sphere(a, sphere, w->c, &w->radius);
    w->length = vxk_way_length(moved, turned, off);
    return w->length <= (float)VXK_PATH_MOST;
}
/* c turned by q: c + 2 w (q x c) + 2 q x (q x c). */
VXK_FN void vxk_turn(const float q[4], const float c[3], float out[3])
{
    float u[3];
    for (int k = 0; k < 3; k++) {
        int x = (k + 1) % 3, y = (k + 2) % 3;
        u[k] = 2.0f * (q[x] * c[y] - q[y] * c[x]);
    }
    for (int k = 0; k < 3; k++) {
        int x = (k + 1) % 3, y = (k + 2) % 3;
        out[k] = c[k] + q[3] * u[k] + (q[x] * u[y] - q[y] * u[x]);
    }
}
/* The sphere's centre at s: false outside the voxel range. */
VXK_FN int vxk_way_at(const struct vxk_way *w, float s, struct vxk_spot *out)
{
    float q[4], n = 0.0f, v[3];
    int ok = 1;
    for (int k = 0; k < 4; k++) {
        q[k] = w->q[k] + s * w->turn[k];
        n = n + q[k] * q[k];
    }
    n = vxk_sqrt(n);
    for (int k = 0; k < 4; k++)
        q[k] = q[k] / n;
    vxk_turn(q, w->c, v);
    for (int k = 0; k < 3; k++)
        ok &= vxk_split(w->from[k] + (double)s * w->step[k] + (double)v[k], &out->v[k], &out->f[k]);
    return ok;
}

VXK_FN uint32_t vxk_place_bits(float place)
{
    union vxk_bits b;
    b.f = place;
    return b.u;
}
VXK_FN void vxk_path_least(uint32_t *at, uint32_t value)
{
    if (value < vxk_peek32(at))
        vxk_atomic_min32(at, value);
}
VXK_FN void vxk_path_contact(struct vxk_path_answer *o, float place, uint32_t sphere)
{
    uint64_t first = (uint64_t)vxk_place_bits(place) << 32 | sphere;
    if (first < vxk_peek64(&o->first))
        vxk_atomic_min64(&o->first, first);
}
/* True when the path is known to touch something before `place`: what is there does not count. */
VXK_FN int vxk_path_over(const struct vxk_path_answer *o, float place)
{
    return vxk_place_bits(place) > (uint32_t)(vxk_peek64(&o->first) >> 32);
}

/* The middle of a way whose ends are known. */
VXK_FN void vxk_path_middle(const struct vxk_way *w, float moved, float turned, struct vxk_path_leg *leg)
{
    float n = 0.0f;
    for (int k = 0; k < 4; k++) {
        leg->q[k] = w->q[k] + 0.5f * w->turn[k];
        n = n + leg->q[k] * leg->q[k];
    }
    n = vxk_sqrt(n);
    for (int k = 0; k < 4; k++)
        leg->q[k] = leg->q[k] / n;
    for (int k = 0; k < 3; k++)
        if (!vxk_split(w->from[k] + 0.5 * w->step[k], &leg->v[k], &leg->f[k])) {
            leg->v[k] = 134217727; /* the voxel range's end: nothing is decided there at a glance */
            leg->f[k] = 0.0f;
        }
    leg->moved = moved;
    leg->turned = turned;
}
/* Element: path i / n_segments, segment i % n_segments. */
#define vxk_query_path_legs_args vxk_query_path_args
VXK_FN void vxk_query_path_legs(const struct vxk_query_path_args *a, uint32_t i)
{
    struct vxk_path_leg *leg = &a->legs[i];
    struct vxk_way w;
    float moved, turned;
    leg->moved = -1.0f;
    if (!vxk_way_ends(a, i / a->n_segments, i % a->n_segments, &w, &moved, &turned))
        return;
    vxk_path_middle(&w, moved, turned, leg);
    if (vxk_way_length(moved, turned, a->reach) > 0.999f * (float)VXK_PATH_WIDE)
        vxk_count_up(&a->counters->n_long);
}

/* A sphere's way between two way-points in short; c, off: the sphere's place in the robot.  False when it is
 * none. */
VXK_FN int vxk_path_short(const struct vxk_path_leg *leg, const float c[3], float off, float radius,
                          struct vxk_path_glance *g)
{
    float v[3];
    if (leg->moved < 0.0f)
        return 0;
    g->radius = radius;
    g->length = vxk_way_length(leg->moved, leg->turned, off);
    if (!(g->length <= (float)VXK_PATH_MOST))
        return 0;
    vxk_turn(leg->q, c, v);
    for (int k = 0; k < 3; k++) {
        g->middle.v[k] = leg->v[k];
        g->middle.f[k] = leg->f[k] + v[k];
    }
    return 1;
}
VXK_FN int vxk_path_see(const struct vxk_query_path_args *a, const struct vxk_path_leg *leg, uint32_t sphere,
                        struct vxk_path_glance *g)
{
    float c[3], radius, off = vxk_path_sphere(a, sphere, c, &radius);
    return vxk_path_short(leg, c, off, radius, g);
}
/* The voxels around the piece of a way within `half` of a spot: those that give a place's distance or state,
 * and those that count as met.  False at the end of the range. */
VXK_FN int vxk_path_extents(const struct vxk_spot *m, float half, float radius, struct vxk_extent *inner,
                            struct vxk_extent *outer)
{
    float reach;
    half = half + 0.1f;           /* what rounding may add */
    reach = half + radius + 0.5f; /* to any voxel that counts as met */
    for (int k = 0; k < 3; k++) { /* a distance comes from the voxels around a place's own */
        if (!(m->f[k] > -1e5f && m->f[k] < 1e5f) || m->v[k] < -134000000 || m->v[k] > 134000000)
            return 0;
        inner->lo[k] = m->v[k] + (int32_t)vxk_floor(m->f[k] - half) - 1;
        inner->hi[k] = m->v[k] + (int32_t)vxk_floor(m->f[k] + half) + 1;
        outer->lo[k] = vxk_mini(m->v[k] + (int32_t)vxk_floor(m->f[k] - reach) - 1, inner->lo[k]);
        outer->hi[k] = vxk_maxi(m->v[k] + (int32_t)vxk_floor(m->f[k] + reach) + 1, inner->hi[k]);
    }
    return 1;
}
/* What is around such a piece, as vxk_around: where none of it, a sphere of that radius touches nothing, has
 * no distance within R and meets nothing unknown anywhere on it. */
VXK_FN uint32_t vxk_path_around(const struct vxk_query_path_args *a, const struct vxk_spot *m, float half,
                                float radius)
{
    struct vxk_extent inner, outer;
    uint32_t all = a->unknown == VXK_UNKNOWN_FREE ? VXK_NEAR | VXK_HAS_OCCUPIED : VXK_AROUND_ALL;
    if (!vxk_path_extents(m, half, radius, &inner, &outer))
        return all;
    return vxk_around(&a->q, &inner, a->unknown == VXK_UNKNOWN_FREE ? &inner : &outer) & all;
}
/* A way is decided piece by piece: how many it has, none of them longer than VXK_PATH_WIDE. */
VXK_FN int32_t vxk_path_pieces(float length)
{
    return length > (float)VXK_PATH_WIDE ? (int32_t)vxk_ceil(length / (float)VXK_PATH_WIDE) : 1;
}
/* What is around a piece of several; everything where its middle is outside. */
VXK_FN uint32_t vxk_path_around_piece(const struct vxk_query_path_args *a, const struct vxk_way *w,
                                      int32_t piece, int32_t pieces)
{
    struct vxk_spot spot;
    if (!vxk_way_at(w, ((float)piece + 0.5f) / (float)pieces, &spot))
        return a->unknown == VXK_UNKNOWN_FREE ? VXK_NEAR | VXK_HAS_OCCUPIED : VXK_AROUND_ALL;
    return vxk_path_around(a, &spot, 0.5f * w->length / (float)pieces, w->radius);
}

/* An element -> its path's answer, segment and sphere. */
VXK_FN struct vxk_path_answer *vxk_path_of(const struct vxk_query_path_args *a, uint32_t n, uint32_t *segment,
                                           uint32_t *sphere, uint32_t *path)
{
    *sphere = n % a->n_spheres;
    n /= a->n_spheres;
    *path = n % a->n_paths;
    *segment = n / a->n_paths;
    return &a->out[*path];
}

/* What of a way is to be looked at, as vxk_around; what can't be judged is noted. */
VXK_FN uint32_t vxk_path_decide(const struct vxk_query_path_args *a, const struct vxk_path_leg *leg,
                                uint32_t segment, uint32_t sphere, struct vxk_path_answer *o)
{
    struct vxk_path_glance g;
    uint32_t around;
    if (!vxk_path_see(a, leg, sphere, &g)) {
        vxk_path_least(&o->outside, vxk_place_bits((float)segment));
        return 0;
    }
    if (vxk_path_pieces(g.length) > 1)
        return VXK_AROUND_ALL; /* each is looked at later */
    around = vxk_path_around(a, &g.middle, 0.5f * g.length, g.radius);
    if (around == VXK_HAS_UNKNOWN && vxk_place_bits((float)segment) > vxk_peek32(&o->unknown))
        return 0;
    return around;
}
/* Lists the ways that are to be marched.  Element: a way, from `first` on. */
#define vxk_query_path_list_args vxk_query_path_args
VXK_FN void vxk_query_path_list(const struct vxk_query_path_args *a, uint32_t i)
{
    uint32_t segment, sphere, path, around, n = a->first + i;
    struct vxk_path_answer *o = vxk_path_of(a, n, &segment, &sphere, &path);
    if (vxk_path_over(o, (float)segment))
        return;
    around = vxk_path_decide(a, &a->legs[(uint64_t)path * a->n_segments + segment], segment, sphere, o);
    if (around)
        a->list[vxk_count_up(&a->counters->n)] = n << 3 | around;
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
/* Where the sphere first meets unknown space, 0 .. 1: the first of evenly spread places, at most a voxel
 * apart, at which an unknown voxel's cube is within its radius and half of what lies between them; 2:
 * nowhere in this piece; 3: it leaves the voxel range.  A ball around several places first, since most of
 * them meet nothing. */
VXK_FN float vxk_path_meet(const struct vxk_query_path_args *a, const struct vxk_way *w, uint32_t segment,
                           int32_t piece, int32_t pieces, struct vxk_path_answer *o)
{
    int32_t n = (int32_t)vxk_ceil(w->length), k, last, end = ((piece + 1) * n + pieces - 1) / pieces;
    float part = n ? w->length / (float)n : 0.0f, reach = w->radius + 0.5f * part;
    struct vxk_spot spot;
    for (int32_t first = piece * n / pieces; first <= end; first = last + 1) {
        float s = n ? (float)first / (float)n : 0.0f;
        last = vxk_mini(first + VXK_PATH_GROUP - 1, end);
        if (vxk_path_over(o, (float)segment + s))
            return 2.0f;
        if (last > first && vxk_way_at(w, 0.5f * (float)(first + last) / (float)n, &spot) &&
            !vxk_path_unknown(&a->q, &spot, reach + 0.5f * (float)(last - first) * part + 0.05f))
            continue;
        for (k = first; k <= last; k++) {
            s = n ? (float)k / (float)n : 0.0f;
            if (!vxk_way_at(w, s, &spot)) {
                vxk_path_least(&o->outside, vxk_place_bits((float)segment + s));
                return 3.0f;
            }
            if (vxk_path_unknown(&a->q, &spot, reach))
                return s;
        }
    }
    return 2.0f;
}

/* What is at a sample, in voxels. */
struct vxk_path_sample {
    float clear; /* no surface is nearer to the sphere's skin */
    int has;     /* clear is a distance and not the end of reach */
    int touches; /* something known */
    uint32_t state;
};
VXK_FN void vxk_path_look(const struct vxk_query_path_args *a, const struct vxk_way *w,
                          const struct vxk_spot *spot, int states, struct vxk_esdf_cursor *cursor,
                          struct vxk_path_sample *out)
{
    float d;
    out->has = vxk_probe_distance(&a->q, cursor, spot, states, &d, &out->state);
    out->clear = (out->has ? vxk_min(d, (float)a->q.esdf.radius) : (float)a->q.esdf.radius) - w->radius;
    out->touches = (out->has && d <= w->radius) || out->state == VXK_STATE_OCCUPIED;
}
/* How far to go from a sample, voxels. */
VXK_FN float vxk_path_step(const struct vxk_path_sample *now, int careful)
{
    float step = vxk_max(vxk_min(now->clear - 0.9f, 0.5f * now->clear), 0.25f);
    return careful ? vxk_min(step, now->state == VXK_STATE_UNKNOWN ? 0.5f : 1.0f) : step;
}
/* Marches from s to `end` until it touches something; *least = no surface is nearer to the sphere's skin
 * anywhere there.  False when it leaves the voxel range.
 * From a sample it goes half of its clearance, so that what lies between two is known to half of that; less
 * what a centre's distance may be off inside its voxel.  Where unknown space is reported, occupied voxels
 * that it surrounds have no surface: short steps. */
VXK_FN int vxk_path_march(const struct vxk_query_path_args *a, const struct vxk_way *w, uint32_t segment,
                          uint32_t sphere, float s, float end, uint32_t around, struct vxk_path_answer *o,
                          float *least)
{
    struct vxk_path_sample now, last;
    struct vxk_esdf_cursor cursor;
    struct vxk_spot spot;
    float begin = s, gone = 0.0f; /* gone: from the last sample, voxels */
    int states = (around & VXK_HAS_OCCUPIED) != 0,
        careful = states && (around & VXK_HAS_UNKNOWN) && a->unknown == VXK_UNKNOWN_REPORT;
    vxk_esdf_cursor_init(&cursor);
    last.has = 0;
    last.clear = 0.0f;
    for (;;) {
        float next;
        if (vxk_path_over(o, (float)segment + s))
            return 1;
        if (!vxk_way_at(w, s, &spot)) {
            vxk_path_least(&o->outside, vxk_place_bits((float)segment + s));
            return 0;
        }
        vxk_path_look(a, w, &spot, states, &cursor, &now);
        if (now.has)
            *least = vxk_min(*least, now.clear);
        if (s > begin && (now.has || last.has))
            *least = vxk_min(*least, 0.5f * (last.clear + now.clear - gone));
        if (now.touches) {
            vxk_path_contact(o, (float)segment + s, sphere);
            return 1;
        }
        if (s >= end || w->length <= 0.0f)
            return 1;
        next = vxk_min(s + vxk_path_step(&now, careful) / w->length, end);
        gone = (next - s) * w->length;
        s = next;
        last = now;
    }
}
/* A piece of a way, of which `around` is known.  False when it leaves the voxel range. */
VXK_FN int vxk_path_piece(const struct vxk_query_path_args *a, const struct vxk_way *w, uint32_t segment,
                          uint32_t sphere, int32_t piece, int32_t pieces, uint32_t around,
                          struct vxk_path_answer *o, float *least)
{
    float from = (float)piece / (float)pieces, to = (float)(piece + 1) / (float)pieces, met = 2.0f;
    int inside = 1;
    if ((around & VXK_HAS_UNKNOWN) && vxk_place_bits((float)segment + from) <= vxk_peek32(&o->unknown))
        met = vxk_path_meet(a, w, segment, piece, pieces, o);
    if (met <= 1.0f) {
        vxk_path_least(&o->unknown, vxk_place_bits((float)segment + met));
        if (a->unknown == VXK_UNKNOWN_OCCUPIED)
            vxk_path_contact(o, (float)segment + met, sphere);
    }
    if (around & (VXK_NEAR | VXK_HAS_OCCUPIED))
        inside = vxk_path_march(a, w, segment, sphere, from, to, around, o, least);
    return inside && met < 3.0f;
}
/* Looks at what is around a way. */
VXK_FN void vxk_path_walk(const struct vxk_query_path_args *a, uint32_t path, uint32_t segment,
                          uint32_t sphere, uint32_t around, struct vxk_path_answer *o)
{
    struct vxk_way w;
    float least = 1e30f;
    int32_t pieces;
    if (vxk_path_over(o, (float)segment) || !vxk_way_make(a, path, segment, sphere, &w))
        return;
    pieces = vxk_path_pieces(w.length);
    for (int32_t k = 0; k < pieces; k++) {
        if (pieces > 1)
            around = vxk_path_around_piece(a, &w, k, pieces);
        if (vxk_path_over(o, (float)segment + (float)k / (float)pieces) ||
            !vxk_path_piece(a, &w, segment, sphere, k, pieces, around, o, &least))
            break;
    }
    if (least < 1e29f)
        vxk_path_least(&o->clearance, vxk_order_of(least));
}
/* Element: an entry of the list, from `entry` on. */
VXK_FN void vxk_query_path(const struct vxk_query_path_args *a, uint32_t i)
{
    uint32_t segment, sphere, path, listed = a->list[a->entry + i];
    struct vxk_path_answer *o = vxk_path_of(a, listed >> 3, &segment, &sphere, &path);
    vxk_path_walk(a, path, segment, sphere, listed & VXK_AROUND_ALL, o);
}

/* What can't be judged is unknown space; what lies behind the first contact is forgotten. */
VXK_FN void vxk_path_cut(const struct vxk_query_path_args *a, struct vxk_path_answer *o)
{
    uint32_t place = (uint32_t)(o->first >> 32);
    if (a->unknown == VXK_UNKNOWN_OCCUPIED && o->outside < place) {
        place = o->outside;
        o->first = (uint64_t)place << 32; /* of all spheres: the first */
    }
    o->unknown = vxk_minu(o->unknown, o->outside);
    if (o->first != ~0ull) {
        o->status = VXK_Q_COLLIDES;
        o->clearance = VXK_NONE;
    }
    if (o->unknown > place)
        o->unknown = VXK_NONE;
    if (o->outside > place)
        o->outside = VXK_NONE;
    o->status |=
        (o->unknown != VXK_NONE ? VXK_Q_TOUCHES_UNKNOWN : 0) | (o->outside != VXK_NONE ? VXK_Q_OUTSIDE : 0);
}
/* Clearance of a robot that touches: where it does. */
VXK_FN void vxk_path_touch(const struct vxk_query_path_args *a, uint32_t path, uint32_t sphere,
                           struct vxk_path_answer *o)
{
    struct vxk_path_sample now;
    struct vxk_esdf_cursor cursor;
    struct vxk_spot spot;
    struct vxk_way w;
    union vxk_bits place;
    uint32_t segment;
    if (o->first == ~0ull)
        return;
    place.u = (uint32_t)(o->first >> 32);
    segment = vxk_minu((uint32_t)place.f, a->n_segments - 1);
    if (!vxk_way_make(a, path, segment, sphere, &w) || !vxk_way_at(&w, place.f - (float)segment, &spot))
        return;
    vxk_esdf_cursor_init(&cursor);
    vxk_path_look(a, &w, &spot, 0, &cursor, &now);
    if (now.has)
        vxk_path_least(&o->clearance, vxk_order_of(now.clear));
}
/* Numbers in order become what they stand for. */
VXK_FN void vxk_path_end(const struct vxk_query_path_args *a, struct vxk_path_answer *o)
{
    union vxk_bits b;
    b.f = o->clearance == VXK_NONE ? a->q.undefined : vxk_ordered(o->clearance) * (float)a->q.voxel_m;
    o->clearance = b.u;
    b.f = a->q.undefined;
    if (o->unknown == VXK_NONE)
        o->unknown = b.u;
    if (o->first == ~0ull)
        o->first = (uint64_t)b.u << 32 | VXK_NONE;
    o->outside = 0;
}

/* Elements: a path; path i / n_spheres, sphere i % n_spheres; a path. */
#define vxk_query_path_cut_args   vxk_query_path_args
#define vxk_query_path_touch_args vxk_query_path_args
#define vxk_query_path_end_args   vxk_query_path_args
VXK_FN void vxk_query_path_cut(const struct vxk_query_path_args *a, uint32_t i)
{
    vxk_path_cut(a, &a->out[i]);
}
VXK_FN void vxk_query_path_touch(const struct vxk_query_path_args *a, uint32_t i)
{
    vxk_path_touch(a, i / a->n_spheres, i % a->n_spheres, &a->out[i / a->n_spheres]);
}
VXK_FN void vxk_query_path_end(const struct vxk_query_path_args *a, uint32_t i)
{
    vxk_path_end(a, &a->out[i]);
}

#endif
