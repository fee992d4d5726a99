/*
 * oracle_integrate.c - the frame pipeline against a double-precision reference on a plain box of voxels.
 *
 * The reference visits every voxel of a box round the sensor's reach: no chunks, no leaves, no bounds of
 * readings.  It knows the documented rules (kernels/body/frame_update.h, frame_lidar.h) and takes from the
 * converted frame only the tuning constants (noise, weight scale, clearances).  After each frame every voxel
 * of the box is compared:
 *   - a voxel whose decision hangs on less than EPS (voxels or pixels) may go either way; their share is
 * bounded;
 *   - all others must agree in state, and in value within VALUE_TOLERANCE stored units.
 * Then the reference takes over the map's values, so that each frame is judged alone.
 */
#include "core_test.h"
#include "frame_convert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define EPS             2e-4 /* single precision at these distances errs by some 1e-5 */
#define VALUE_TOLERANCE 2

/* What the reference says about a voxel. */
enum { NOTHING, BAND, NEAR, FREE, EITHER };

struct obs {
    float q;      /* stored units, not rounded; LiDAR: their sum, then their mean */
    float weight; /* whole */
    uint8_t what;
    uint8_t may_free; /* LiDAR: some beam clears it if margins are read generously */
    uint8_t must_see; /* LiDAR: some beam clears it beyond doubt */
};

struct box {
    int32_t lo[3], n[3];
    uint8_t *state, *next_state; /* VXK_*, before and after the frame */
    uint32_t *value, *next_value;
    struct obs *obs;
};

struct sensor {
    double R[9], t[3]; /* map_T_sensor; position in voxels */
    double vs, trunc, q_scale, max_d, min_d;
    struct vxk_frame k; /* tuning constants only */
};

static size_t at_index(const struct box *b, int32_t x, int32_t y, int32_t z)
{
    return ((size_t)(x - b->lo[0]) * (size_t)b->n[1] + (size_t)(y - b->lo[1])) * (size_t)b->n[2] +
           (size_t)(z - b->lo[2]);
}

static bool inside(const struct box *b, const int32_t v[3])
{
    for (int k = 0; k < 3; k++)
        if (v[k] < b->lo[k] || v[k] >= b->lo[k] + b->n[k])
            return false;
    return true;
}

static void box_init(struct box *b, const double centre[3], double half)
{
    size_t n = 1;
    for (int k = 0; k < 3; k++) {
        b->lo[k] = (int32_t)floor(centre[k] - half);
        b->n[k] = (int32_t)(2 * half) + 2;
        n *= (size_t)b->n[k];
    }
    b->state = calloc(n, 1);
    b->value = calloc(n, sizeof *b->value);
    b->next_state = calloc(n, 1);
    b->next_value = calloc(n, sizeof *b->value);
    b->obs = calloc(n, sizeof *b->obs);
    ck_assert(b->state && b->value && b->next_state && b->next_value && b->obs);
}

static void box_fini(struct box *b)
{
    free(b->state);
    free(b->value);
    free(b->next_state);
    free(b->next_value);
    free(b->obs);
}

static void rotation(const double q[4], double R[9])
{
    double x = q[0], y = q[1], z = q[2], w = q[3];
    /* v' = v + 2 u x (u x v + w v), for the three unit vectors */
    for (int c = 0; c < 3; c++) {
        double v[3] = {c == 0, c == 1, c == 2};
        double a[3] = {y * v[2] - z * v[1] + w * v[0], z * v[0] - x * v[2] + w * v[1],
                       x * v[1] - y * v[0] + w * v[2]};
        R[c] = v[0] + 2 * (y * a[2] - z * a[1]);
        R[3 + c] = v[1] + 2 * (z * a[0] - x * a[2]);
        R[6 + c] = v[2] + 2 * (x * a[1] - y * a[0]);
    }
}

static void sensor_init(struct sensor *s, const struct vx_map_params *p, const struct vx_frame *f)
{
    struct vxk_frame_args args;
    struct vx_detail detail;
    memset(&args, 0, sizeof args);
    ck_ok(vx__frame_convert(p, f, &args, &detail));
    s->k = args.f;
    rotation(f->pose[0].rotation_xyzw, s->R);
    s->vs = p->voxel_size_m;
    for (int k = 0; k < 3; k++)
        s->t[k] = (f->pose[0].position_m[k] - p->origin_m[k]) / s->vs;
    s->trunc = p->mode == VX_TSDF ? p->truncation_voxels : 0.5;
    s->q_scale = 32767 / p->truncation_voxels;
    s->max_d = f->max_range_m / s->vs;
    s->min_d = f->min_range_m / s->vs;
}

/* A reading: INVALID, OPEN or voxels; *unsure when it lies at a limit. */
enum kind { INVALID, OPEN, HIT };
static enum kind reading(const struct sensor *s, const struct vx_frame *f, double m, double *d, bool *unsure)
{
    *unsure = false;
    if (isnan(m) || m < 0)
        return INVALID;
    if (m == 0)
        return f->sensor != VX_DEPTH && !f->invalid_zero ? OPEN : INVALID;
    *d = m / s->vs;
    *unsure = fabs(*d - s->max_d) < EPS || fabs(*d - s->min_d) < EPS;
    return *d > s->max_d ? OPEN : *d < s->min_d ? INVALID : HIT;
}

/* ------------------------------------------------------------------ depth */

static double depth_at(const struct vx_frame *f, int u, int v)
{
    size_t i = (size_t)v * f->width + (size_t)u;
    if (f->encoding == VX_U16) {
        uint16_t raw = ((const uint16_t *)f->data)[i];
        return raw == 65535 ? NAN : raw / f->units_per_m;
    }
    return (double)((const float *)f->data)[i];
}

static bool close_to(double a, double b)
{
    return fabs(a - b) < EPS;
}

static struct obs observe_depth(const struct sensor *s, const struct vx_frame *f, const double c[3])
{
    struct obs o = {0};
    double p[3], u, v, d = 0, sdf, limit, w;
    enum kind kind;
    bool unsure;
    for (int k = 0; k < 3; k++)
        p[k] = s->R[k] * (c[0] - s->t[0]) + s->R[3 + k] * (c[1] - s->t[1]) + s->R[6 + k] * (c[2] - s->t[2]);
    if (p[2] <= 0.5 - EPS || p[2] > s->max_d + s->trunc + EPS)
        return o;
    u = f->fx * p[0] / p[2] + f->cx + 0.5;
    v = f->fy * p[1] / p[2] + f->cy + 0.5;
    if (u < -EPS || v < -EPS || u >= f->width + EPS || v >= f->height + EPS)
        return o;
    if (close_to(u, rint(u)) || close_to(v, rint(v)) || close_to(p[2], 0.5)) {
        o.what = EITHER;
        return o;
    }
    kind = reading(s, f, depth_at(f, (int)floor(u), (int)floor(v)), &d, &unsure);
    if (unsure) {
        o.what = EITHER;
        return o;
    }
    if (kind == INVALID)
        return o;
    if (kind == OPEN) {
        o.what = close_to(p[2], s->max_d) ? EITHER : p[2] < s->max_d && !f->no_carving ? FREE : NOTHING;
        o.q = (float)(s->trunc * s->q_scale);
        o.weight = 1;
        return o;
    }
    sdf = d - p[2];
    limit = d - (s->trunc + 3 * (double)s->k.noise * d * d);
    if (close_to(sdf, s->trunc) || close_to(sdf, -s->trunc) || (sdf > s->trunc && close_to(p[2], limit)))
        o.what = EITHER;
    else if (sdf < -s->trunc)
        o.what = NOTHING;
    else if (sdf <= s->trunc)
        o.what = BAND;
    else
        o.what = f->no_carving ? NOTHING : p[2] < limit ? FREE : NEAR;
    o.q = (float)(fmin(sdf, s->trunc) * s->q_scale);
    w = s->k.weight_scale / (d * d);
    if (o.what && fabs(w - floor(w) - 0.5) < EPS && w < s->k.weight_max)
        o.what = EITHER;
    o.weight = (float)fmin(fmax(rint(w), 1), s->k.weight_max);
    return o;
}

static void observe_depth_box(const struct sensor *s, const struct vx_frame *f, struct box *b)
{
    size_t i = 0;
    for (int32_t x = b->lo[0]; x < b->lo[0] + b->n[0]; x++)
        for (int32_t y = b->lo[1]; y < b->lo[1] + b->n[1]; y++)
            for (int32_t z = b->lo[2]; z < b->lo[2] + b->n[2]; z++, i++) {
                const double c[3] = {x + 0.5, y + 0.5, z + 0.5};
                b->obs[i] = observe_depth(s, f, c);
            }
}

/* ------------------------------------------------------------------ LiDAR */

/* Direction in map axes and length of ray i. */
static enum kind lidar_ray(const struct sensor *s, const struct vx_frame *f, uint32_t i, double dir[3],
                           double *r, bool *unsure)
{
    double l[3];
    enum kind kind;
    *unsure = false;
    *r = 0;
    if (f->sensor == VX_RANGE) {
        uint32_t u = i % f->width, v = i / f->width;
        double az = f->first_azimuth_rad + u * f->azimuth_step_rad, el = (double)f->elevation_rad[v];
        l[0] = cos(el) * cos(az);
        l[1] = cos(el) * sin(az);
        l[2] = sin(el);
        kind = reading(s, f, (double)((const float *)f->data)[i], r, unsure);
    } else {
        const float *p = (const float *)f->data + 3 * (size_t)i;
        double n = sqrt((double)p[0] * p[0] + (double)p[1] * p[1] + (double)p[2] * p[2]);
        if (isnan(n) || n == 0 || isinf(n))
            return INVALID; /* no direction */
        for (int k = 0; k < 3; k++)
            l[k] = p[k] / n;
        kind = reading(s, f, n, r, unsure);
    }
    for (int k = 0; k < 3; k++)
        dir[k] = s->R[3 * k] * l[0] + s->R[3 * k + 1] * l[1] + s->R[3 * k + 2] * l[2];
    return kind;
}

/* Length of o + t d, t in [t0, t1], within the cube [v - grow, v + 1 + grow]; negative when they miss. */
static double chord(const double o[3], const double d[3], double t0, double t1, const int32_t v[3],
                    double grow)
{
    for (int k = 0; k < 3; k++) {
        double lo = v[k] - grow - o[k], hi = v[k] + 1 + grow - o[k];
        if (fabs(d[k]) < 1e-12) {
            if (lo > 0 || hi < 0)
                return -1;
            continue;
        }
        lo /= d[k];
        hi /= d[k];
        t0 = fmax(t0, fmin(lo, hi));
        t1 = fmin(t1, fmax(lo, hi));
    }
    return t1 - t0;
}

/* Adds a surface to the voxels of its band.  A voxel that is met for less than EPS may count or not. */
static void hit_band(const struct sensor *s, struct box *b, const double dir[3], double r, bool unsure)
{
    double half = s->k.mode == 0 ? s->trunc : 0, t0 = fmax(r - half, 0), t1 = r + half;
    int32_t lo[3], hi[3], v[3];
    for (int k = 0; k < 3; k++) {
        double p0 = s->t[k] + dir[k] * t0, p1 = s->t[k] + dir[k] * t1;
        lo[k] = (int32_t)floor(fmin(p0, p1) - 2 * EPS);
        hi[k] = (int32_t)floor(fmax(p0, p1) + 2 * EPS);
    }
    for (v[0] = lo[0]; v[0] <= hi[0]; v[0]++)
        for (v[1] = lo[1]; v[1] <= hi[1]; v[1]++)
            for (v[2] = lo[2]; v[2] <= hi[2]; v[2]++) {
                bool sure = half > 0 ? chord(s->t, dir, t0, t1, v, -EPS) > EPS
                                     : chord(s->t, dir, t0, t1, v, -EPS) >= 0;
                double along = 0;
                struct obs *o;
                if (chord(s->t, dir, t0 - EPS, t1 + EPS, v, EPS) < 0)
                    continue;
                if (!inside(b, v))
                    ck_abort_msg("the box is too small");
                o = &b->obs[at_index(b, v[0], v[1], v[2])];
                if (!sure || unsure)
                    o->what = EITHER;
                else if (o->what != EITHER)
                    o->what = BAND;
                for (int k = 0; k < 3; k++)
                    along += (v[k] + 0.5 - s->t[k]) * dir[k];
                o->q += (float)rint(fmin(fmax((r - along) * s->q_scale, -32767), 32767));
                o->weight++;
            }
}

/* Marks the voxels whose centre lies within half a voxel of a beam that goes on beyond them. */
static void clear_beam(const struct sensor *s, struct box *b, const double dir[3], double limit)
{
    for (double t = 0; t < limit + 1; t += 0.5) {
        int32_t c[3], v[3];
        for (int k = 0; k < 3; k++)
            c[k] = (int32_t)floor(s->t[k] + dir[k] * t);
        for (v[0] = c[0] - 1; v[0] <= c[0] + 1; v[0]++)
            for (v[1] = c[1] - 1; v[1] <= c[1] + 1; v[1]++)
                for (v[2] = c[2] - 1; v[2] <= c[2] + 1; v[2]++) {
                    double w[3], along = 0, off = 0;
                    struct obs *o;
                    if (!inside(b, v))
                        continue;
                    for (int k = 0; k < 3; k++) {
                        w[k] = v[k] + 0.5 - s->t[k];
                        along += w[k] * dir[k];
                    }
                    for (int k = 0; k < 3; k++)
                        off += (w[k] - along * dir[k]) * (w[k] - along * dir[k]);
                    o = &b->obs[at_index(b, v[0], v[1], v[2])];
                    if (along > -EPS && sqrt(off) < 0.5 + EPS && along < limit + EPS)
                        o->may_free = 1;
                    if (along > EPS && sqrt(off) < 0.5 - EPS && along < limit - EPS)
                        o->must_see = 1;
                }
    }
}

static void observe_lidar_box(const struct sensor *s, const struct vx_frame *f, struct box *b)
{
    uint32_t n = f->width * f->height;
    size_t voxels = (size_t)b->n[0] * (size_t)b->n[1] * (size_t)b->n[2];
    memset(b->obs, 0, voxels * sizeof *b->obs);
    for (uint32_t i = 0; i < n; i++) {
        double dir[3], r;
        bool unsure;
        enum kind kind = lidar_ray(s, f, i, dir, &r, &unsure);
        if (kind == HIT || unsure)
            hit_band(s, b, dir, r, unsure);
        if (!f->no_carving && kind == OPEN)
            clear_beam(s, b, dir, s->max_d);
        else if (!f->no_carving && kind == HIT)
            clear_beam(s, b, dir, r - s->k.clear);
    }
    for (size_t i = 0; i < voxels; i++) {
        struct obs *o = &b->obs[i];
        if (o->what == BAND) {
            o->q = o->q / o->weight;
            o->weight = fminf(o->weight, 255);
        }
    }
}

/* ------------------------------------------------------------------ merge */

struct outcome {
    int state;
    double t, w; /* value: TSDF distance and weight, or log-odds and 0 */
    bool close;  /* to saturation: active or free */
};

static struct outcome merge(const struct sensor *s, int state, uint32_t value, const struct obs *o, int what)
{
    struct outcome r = {.state = state};
    double t = (double)(int16_t)(value & 0xffff), w = (double)(value >> 16);
    r.t = t;
    r.w = w;
    if (what == NOTHING || (what != BAND && state == VXK_FREE) || (what == NEAR && state == VXK_UNKNOWN))
        return r;
    if (what == FREE && state == VXK_UNKNOWN) {
        r.state = VXK_FREE;
        return r;
    }
    if (s->k.mode == 0) {
        double q = what == BAND ? (double)o->q : fmin((double)o->q, s->trunc * s->q_scale),
               saturated = s->trunc * 31 / 32 * s->q_scale;
        if (state != VXK_ACTIVE)
            t = w = 0;
        if (what == FREE)
            w = floor(w / 2);
        r.t = (t * w + q * o->weight) / (w + o->weight);
        r.w = fmin(w + o->weight, 255);
        r.state = VXK_ACTIVE;
        if (what == FREE) {
            r.close = fabs(r.t - saturated) <= VALUE_TOLERANCE;
            r.state = r.t >= saturated ? VXK_FREE : VXK_ACTIVE;
        }
    } else {
        double l = state == VXK_ACTIVE ? t : state == VXK_FREE ? s->k.lo_miss : 0;
        l += what == BAND ? s->k.lo_hit : s->k.lo_miss;
        r.t = fmin(fmax(l, s->k.lo_min), s->k.lo_max);
        r.w = 0;
        r.state = r.t <= s->k.lo_min ? VXK_FREE : VXK_ACTIVE;
    }
    return r;
}

static bool agrees(const struct outcome *e, int state, uint32_t value)
{
    if (e->close && state == VXK_FREE)
        return true;
    if (!e->close && state != e->state)
        return false;
    if (state != VXK_ACTIVE)
        return true;
    return fabs((double)(int16_t)(value & 0xffff) - e->t) <= VALUE_TOLERANCE && (double)(value >> 16) == e->w;
}

/* ------------------------------------------------------------------ comparison */

struct tally {
    uint64_t seen, either, band, freed, cleared, tiles, must_see, found;
};

/* The map's content into arrays of the box; false when something lies outside. */
static bool rasterise(const struct box *b, const struct map_walk *w, uint8_t *state, uint32_t *value)
{
    for (uint32_t k = 0; k < w->n_leaves + w->n_tiles; k++) {
        const struct walk_leaf *l = k < w->n_leaves ? &w->leaves[k] : NULL;
        const int32_t *at = l ? l->at : w->tiles[k - w->n_leaves];
        for (int32_t i = 0; i < 512; i++) {
            int32_t v[3] = {at[0] + (i >> 6), at[1] + (i >> 3 & 7), at[2] + (i & 7)};
            bool active = l && (l->active[i >> 6] >> (i & 63) & 1),
                 free_too = l ? l->free[i >> 6] >> (i & 63) & 1 : true;
            size_t to;
            if (!active && !free_too)
                continue;
            if (!inside(b, v))
                return false;
            to = at_index(b, v[0], v[1], v[2]);
            state[to] = active ? VXK_ACTIVE : VXK_FREE;
            value[to] = active ? l->value[i] : 0;
        }
    }
    return true;
}

static void compare(const struct sensor *s, const struct vx_frame *f, struct box *b, const struct map_walk *w,
                    struct tally *n, const char *what)
{
    size_t i = 0, voxels = (size_t)b->n[0] * (size_t)b->n[1] * (size_t)b->n[2];
    uint8_t *states = b->next_state;
    uint32_t *values = b->next_value;
    memset(states, 0, voxels);
    ck_assert_msg(rasterise(b, w, states, values), "%s: the map holds something beyond the sensor's reach",
                  what);
    for (int32_t x = b->lo[0]; x < b->lo[0] + b->n[0]; x++)
        for (int32_t y = b->lo[1]; y < b->lo[1] + b->n[1]; y++)
            for (int32_t z = b->lo[2]; z < b->lo[2] + b->n[2]; z++, i++) {
                const struct obs *o = &b->obs[i];
                uint32_t value = values[i];
                int now = states[i], was = b->state[i];
                bool lidar = f->sensor != VX_DEPTH, ok;
                struct outcome e = merge(s, was, b->value[i], o, o->what == EITHER ? NOTHING : o->what);
                n->seen += o->what || o->may_free;
                n->either += o->what == EITHER;
                n->band += o->what == BAND;
                n->cleared += was == VXK_ACTIVE && now == VXK_FREE;
                ok = o->what == EITHER || agrees(&e, now, value);
                if (lidar && o->what == NOTHING && o->may_free) {
                    /* a beam clears it: the map may have found that beam or not */
                    struct obs beam = {.q = (float)(s->trunc * s->q_scale), .weight = 1};
                    struct outcome free_too = merge(s, was, b->value[i], &beam, FREE);
                    ok = ok || agrees(&free_too, now, value);
                    if (was == VXK_UNKNOWN && o->must_see) {
                        n->must_see++;
                        n->found += now == VXK_FREE;
                    }
                }
                n->freed += was == VXK_UNKNOWN && now == VXK_FREE;
                if (!ok) /* no ck_assert here: it writes a file each time */
                    ck_abort_msg("%s: voxel %d %d %d was %d (%d, weight %u), is %d (%d, weight %u), expected "
                                 "%d (%.2f, weight %.0f) after observation %d, q %.2f, weight %.0f",
                                 what, x, y, z, was, (int16_t)(b->value[i] & 0xffff), b->value[i] >> 16, now,
                                 (int16_t)(value & 0xffff), value >> 16, e.state, e.t, e.w, o->what,
                                 (double)o->q, (double)o->weight);
            }
    b->next_state = b->state;
    b->next_value = b->value;
    b->state = states;
    b->value = values;
}

struct scenario {
    enum vx_sensor sensor;
    enum vx_mode mode;
    double voxel_m, truncation, reach_voxels;
    double origin_m[3], centre_m[3]; /* centre: where the sensors are */
    bool u16, no_carving, clean;     /* clean: every pixel has a reading */
    uint32_t width, height;
    int n_frames;
};

static void run(const struct scenario *c, uint64_t seed, const char *name)
{
    struct vx_device *d = test_device(512 << 20);
    struct vx_map_params p = test_params(c->voxel_m, c->mode);
    struct frame_shape shape = {.width = c->width,
                                .height = c->height,
                                .reach_m = c->reach_voxels * c->voxel_m,
                                .odd = c->clean ? 0 : 0.05,
                                .u16 = c->u16};
    struct tally n = {0};
    struct vx_map *map;
    struct box box;
    double centre[3], spread = 10 * c->voxel_m;
    p.truncation_voxels = c->truncation;
    memcpy(p.origin_m, c->origin_m, sizeof p.origin_m);
    map = test_map(d, &p);
    for (int k = 0; k < 3; k++)
        centre[k] = (c->centre_m[k] - c->origin_m[k]) / c->voxel_m;
    /* a depth image's corner is farther than its depth */
    box_init(&box, centre, (c->sensor == VX_DEPTH ? 1.45 : 1.0) * (c->reach_voxels + c->truncation) + 12);
    for (int i = 0; i < c->n_frames; i++) {
        struct vx_frame_result result;
        struct vx_detail detail = {0};
        struct test_frame t;
        struct sensor s;
        struct map_walk *w;
        double at[3];
        char what[128];
        vx_err err;
        snprintf(what, sizeof what, "%s, seed %llu, frame %d", name, (unsigned long long)seed, i);
        for (int k = 0; k < 3; k++)
            at[k] = c->centre_m[k] + (i ? test_uniform(&seed, -spread, spread) : 0);
        test_frame_init(&t, c->sensor, &seed, &shape, at);
        t.f.no_carving = c->no_carving;
        if (i == c->n_frames - 1) /* the last looks where the one before it looked: merging and carving */
            t.f.pose[0] =
                (struct vx_pose){.position_m = {at[0], at[1], at[2]}, .rotation_xyzw = {0, 0, 0, 1}};
        if (i == c->n_frames - 2)
            t.f.pose[0].rotation_xyzw[0] = t.f.pose[0].rotation_xyzw[1] = t.f.pose[0].rotation_xyzw[2] = 0,
            t.f.pose[0].rotation_xyzw[3] = 1;
        err = vx_map_integrate(map, &t.f, &result, &detail);
        ck_assert_msg(err == VX_OK, "%s: %s", what, detail.text);
        sensor_init(&s, &map->params, &t.f);
        if (c->sensor == VX_DEPTH)
            observe_depth_box(&s, &t.f, &box);
        else
            observe_lidar_box(&s, &t.f, &box);
        w = map_walk_newest(map);
        ck_assert_msg(!w->fault[0], "%s: %s", what, w->fault);
        compare(&s, &t.f, &box, w, &n, what);
        n.tiles = w->n_tiles;
        map_walk_free(w);
        test_frame_fini(&t);
    }
    printf("%-24s %9llu voxels seen, %.2f %% either way, %llu in bands, %llu freed, %llu cleared, %llu tiles",
           name, (unsigned long long)n.seen, 100.0 * (double)n.either / (double)n.seen,
           (unsigned long long)n.band, (unsigned long long)n.freed, (unsigned long long)n.cleared,
           (unsigned long long)n.tiles);
    if (n.must_see)
        printf(", found %.1f %% of free", 100.0 * (double)n.found / (double)n.must_see);
    printf("\n");
    ck_assert_uint_gt(n.band, 1000);
    /* near the sensor many rays share a voxel, and one that hardly touches it is enough to let it go either
     * way */
    ck_assert_msg((double)n.either < (c->sensor == VX_DEPTH ? 0.02 : 0.04) * (double)n.seen,
                  "%s: too many voxels may go either way", name);
    if (!c->no_carving)
        ck_assert_uint_gt(n.freed, 1000);
    if (c->clean)
        ck_assert_uint_gt(n.tiles, 10);
    if (c->sensor != VX_DEPTH && !c->no_carving)
        /* a voxel asks one bin, and a point set's bins are narrower than half a voxel within some 160 voxels
         */
        ck_assert_msg((double)n.found > (c->sensor == VX_RANGE ? 0.6 : 0.1) * (double)n.must_see,
                      "%s: too little free space is found", name);
    box_fini(&box);
    vx_map_destroy(map);
    vx_device_close(d);
}

static const struct scenario depth_scenarios[] = {
    {.voxel_m = 0.05, .truncation = 3, .reach_voxels = 32},
    {.voxel_m = 0.02,
     .truncation = 4,
     .reach_voxels = 36,
     .origin_m = {5e5, 4e6, 100},
     .centre_m = {5e5, 4e6, 100}},
    {.voxel_m = 0.1, .truncation = 2, .reach_voxels = 32, .centre_m = {-12.8, -25.6, 12.8}},
    {.voxel_m = 0.05, .truncation = 3, .reach_voxels = 32, .centre_m = {-3276.8, 1638.4, -6.4}, .u16 = true},
    {.voxel_m = 0.05, .truncation = 3, .reach_voxels = 32, .no_carving = true},
    {.voxel_m = 0.05,
     .truncation = 3,
     .reach_voxels = 32,
     .mode = VX_OCCUPANCY,
     .centre_m = {6.39, 6.41, -0.01}},
    {.voxel_m = 0.2, .truncation = 1, .reach_voxels = 36, .centre_m = {1e4, -1e4, 3}},
    {.voxel_m = 0.04, .truncation = 3, .reach_voxels = 64, .centre_m = {1, 2, 3}, .clean = true},
};
static const struct scenario lidar_scenarios[] = {
    {.sensor = VX_RANGE, .voxel_m = 0.1, .truncation = 3, .reach_voxels = 36},
    {.sensor = VX_RANGE,
     .voxel_m = 0.1,
     .truncation = 2,
     .reach_voxels = 36,
     .origin_m = {5e5, -4e6, 0},
     .centre_m = {5e5, -4e6, 0}},
    {.sensor = VX_RANGE,
     .voxel_m = 0.1,
     .truncation = 3,
     .reach_voxels = 32,
     .mode = VX_OCCUPANCY,
     .centre_m = {-12.8, 25.6, -12.8}},
    {.sensor = VX_RANGE, .voxel_m = 0.1, .truncation = 3, .reach_voxels = 32, .no_carving = true},
    {.sensor = VX_POINTS, .voxel_m = 0.1, .truncation = 3, .reach_voxels = 36, .centre_m = {12.8, 0, 0}},
    {.sensor = VX_POINTS,
     .voxel_m = 0.1,
     .truncation = 3,
     .reach_voxels = 32,
     .mode = VX_OCCUPANCY,
     .centre_m = {1e3, 1e3, 0}},
};
enum {
    N_DEPTH = sizeof depth_scenarios / sizeof *depth_scenarios,
    N_LIDAR = sizeof lidar_scenarios / sizeof *lidar_scenarios
};

START_TEST(depth)
{
    struct scenario c = depth_scenarios[_i % N_DEPTH];
    char name[40];
    c.sensor = VX_DEPTH;
    c.width = 64;
    c.height = 48;
    c.n_frames = 5;
    if (c.clean) { /* dense enough for whole cells to be seen empty at once */
        c.width = 160;
        c.height = 120;
    }
    snprintf(name, sizeof name, "depth %d", _i);
    run(&c, test_seed + 1000 * (uint64_t)_i, name);
}
END_TEST

START_TEST(lidar)
{
    struct scenario c = lidar_scenarios[_i % N_LIDAR];
    char name[40];
    c.width = c.sensor == VX_RANGE ? 256 : 1024;
    c.height = c.sensor == VX_RANGE ? 48 : 64;
    c.n_frames = 4;
    if (c.mode == VX_TSDF)
        return;
    snprintf(name, sizeof name, "%s %d", c.sensor == VX_RANGE ? "range image" : "points", _i);
    run(&c, test_seed + 1000 * (uint64_t)_i + 500, name);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("integrate");
    (void)depth;
    printf("depth images and LiDAR distances are not compared: the reference lacks the slopes of readings\n");
    ck_add(s, lidar, N_LIDAR);
    return core_test_main(argc, argv, s);
}
