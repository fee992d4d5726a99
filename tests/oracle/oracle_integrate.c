/*
 * oracle_integrate.c - the frame pipeline against a double-precision reference on a plain box of voxels.
 *
 * The reference visits every voxel of a box round the sensor's reach: no chunks, no leaves, no bounds of
 * readings.  observe_depth.c and observe_lidar.c say what a frame says about a voxel; here is what becomes of
 * it.  After each frame every voxel of the box is compared:
 *   - a voxel whose decision hangs on the rounding of single precision may go either way; their share is
 *     bounded;
 *   - all others must agree in state, and in value within VALUE_TOLERANCE stored units of the range that the
 *     reference gives (a point, but for slopes and normals that rounding moves; the share of wide ranges is
 *     bounded).
 * Then the reference takes over the map's values, so that each frame is judged alone.
 */
#include "observe.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_TOLERANCE 2

/* The reference takes minutes under ThreadSanitizer, and has one thread. */
#if defined(__SANITIZE_THREAD__)
static const bool slow = true;
#else
static const bool slow = false;
#endif

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

/* ------------------------------------------------------------------ merge */

struct outcome {
    int state;
    double t_lo, t_hi, w; /* value: range of TSDF distances and weight, or log-odds and 0 */
    double f_lo, f_hi;    /* range of TSDF fronts */
};

static struct outcome merge(const struct sensor *s, int state, uint32_t value, const struct obs *o, int what)
{
    struct outcome r = {.state = state};
    double t = (double)(int16_t)(value & 0xffff), w = (double)(value >> 16 & 255),
           front = (double)(value >> 24);
    r.t_lo = r.t_hi = t;
    r.w = w;
    r.f_lo = r.f_hi = front;
    if (what == NOTHING || (what != BAND && state == VXK_FREE) || (what == NEAR && state == VXK_UNKNOWN))
        return r;
    if (what == FREE && state == VXK_UNKNOWN) {
        r.state = VXK_FREE;
        return r;
    }
    if (s->k.mode == 0) {
        const double weight = (double)o->weight;
        const bool through = what == FREE;
        if (state != VXK_ACTIVE)
            t = w = front = 0;
        const double kept = through && front <= 0 ? floor(w / 2) : w;
        if (through && front > 0)
            t = fmax(t, 0);
        /* what was behind a surface and is seen through stays behind it */
        if (!through || (t >= 0 && kept > 0)) {
            r.t_lo = (t * kept + (double)o->q_lo * weight) / (kept + weight);
            r.t_hi = (t * kept + (double)o->q_hi * weight) / (kept + weight);
        }
        r.w = through && front <= 0 ? kept : fmin(w + weight, 255);
        r.state = r.w > 0 ? VXK_ACTIVE : VXK_FREE;
        r.f_lo = r.f_hi = front;
        if (through)
            r.f_lo = r.f_hi = fmax(front - weight, 0);
        else if (what == BAND) { /* within a unit of 0, rounding says on which side it is */
            r.f_lo = fmax(fmin(front + (o->q_lo < 1 ? -4 : 2) * weight, 255), 0);
            r.f_hi = fmax(fmin(front + (o->q_hi < -1 ? -4 : 2) * weight, 255), 0);
        }
    } else {
        double l = state == VXK_ACTIVE ? t : state == VXK_FREE ? s->k.lo_free : 0;
        l += what == BAND ? s->k.lo_hit : s->k.lo_miss;
        r.f_lo = r.f_hi = 0;
        r.t_lo = r.t_hi = fmin(fmax(l, s->k.lo_free), s->k.lo_max);
        r.w = 0;
        r.state = r.t_lo <= s->k.lo_free ? VXK_FREE : VXK_ACTIVE;
    }
    return r;
}

/* How far a value lies outside the expected range. */
static double beyond(const struct outcome *e, uint32_t value)
{
    double t = (double)(int16_t)(value & 0xffff);
    return fmax(fmax(e->t_lo - t, t - e->t_hi), 0);
}

static bool agrees(const struct outcome *e, int state, uint32_t value)
{
    if (state != e->state)
        return false;
    if (state != VXK_ACTIVE)
        return true;
    return beyond(e, value) <= VALUE_TOLERANCE && (double)(value >> 16 & 255) == e->w &&
           ((double)(value >> 24) == e->f_lo || (double)(value >> 24) == e->f_hi);
}

/* ------------------------------------------------------------------ comparison */

struct tally {
    uint64_t seen, known, either, wide, band, freed, cleared, halved, tiles, must_see, found;
    double worst; /* stored units beyond the range */
    struct surfaces surfaces;
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
            if (!box_holds(b, v))
                return false;
            to = box_index(b, v);
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
                n->known += now != VXK_UNKNOWN;
                n->wide += o->what == BAND && o->q_hi - o->q_lo > 4 * VALUE_TOLERANCE;
                /* seen through behind a surface: only there a weight falls */
                n->halved += s->k.mode == 0 && was == VXK_ACTIVE && (int16_t)(b->value[i] & 0xffff) < 0 &&
                             (now == VXK_FREE || (value >> 16 & 255) < (b->value[i] >> 16 & 255));
                if (o->what != EITHER && now == VXK_ACTIVE && e.state == VXK_ACTIVE && !o->may_free)
                    n->worst = fmax(n->worst, beyond(&e, value));
                n->cleared += was == VXK_ACTIVE && now == VXK_FREE;
                ok = o->what == EITHER || agrees(&e, now, value);
                if (lidar && o->what == NOTHING && o->may_free) {
                    /* a beam clears it: the map may have found that beam or not */
                    struct obs beam = {.q_lo = (float)(s->trunc * s->q_scale),
                                       .q_hi = (float)(s->trunc * s->q_scale),
                                       .weight = 1};
                    struct outcome free_too = merge(s, was, b->value[i], &beam, FREE);
                    ok = ok || agrees(&free_too, now, value);
                    if (was == VXK_UNKNOWN && o->must_see) {
                        n->must_see++;
                        n->found += now == VXK_FREE;
                    }
                }
                n->freed += was == VXK_UNKNOWN && now == VXK_FREE;
                if (!ok) /* no ck_assert here: it writes a file each time */
                    ck_abort_msg(
                        "%s: voxel %d %d %d was %d (%d, weight %u), is %d (%d, weight %u), expected "
                        "%d (%.2f .. %.2f, weight %.0f) after observation %d, q %.2f .. %.2f, weight %.0f",
                        what, x, y, z, was, (int16_t)(b->value[i] & 0xffff), b->value[i] >> 16, now,
                        (int16_t)(value & 0xffff), value >> 16, e.state, e.t_lo, e.t_hi, e.w, o->what,
                        (double)o->q_lo, (double)o->q_hi, (double)o->weight);
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
    double view;                     /* depth: farthest corner over its depth; 0: 1.45 */
    double origin_m[3], centre_m[3]; /* centre: where the sensors are */
    bool u16, no_carving, clean;     /* clean: every pixel has a reading */
    enum vx_weighting weighting;
    bool weights;             /* depth: the frame brings one for each pixel */
    int n_poses;              /* more than 1: the sensor moves while it scans */
    bool walls;               /* a wall across the view, near and far by turns */
    double tilt;              /* of the wall: its slope against the image plane */
    bool small, blind, empty; /* too few readings for thresholds; of these, no surface; no reading at all */
    uint32_t width, height;
    int n_frames;
};

/* The rules must have been at work, and few voxels may go either way. */
static void judge(const struct scenario *c, const struct tally *n, const char *name)
{
    ck_assert_uint_gt(n->band, 1000);
    /* near the sensor many rays share a voxel, and one that hardly touches it is enough to let it go either
     * way */
    ck_assert_msg((double)n->either < (c->sensor == VX_DEPTH ? 0.02 : 0.04) * (double)n->seen,
                  "%s: too many voxels may go either way", name);
    ck_assert_msg((double)n->wide < (c->sensor == VX_POINTS ? 0.2 : 0.03) * (double)n->band,
                  "%s: too many voxels may take a range of values", name);
    /* the rules that look at neighbours are at work, and their decisions are clear */
    ck_assert_msg(((c->walls && c->tilt == 0) || (double)n->surfaces.sloped > 0.25 * (double)n->surfaces.n) &&
                      (double)n->surfaces.unsure <
                          (c->sensor == VX_POINTS ? 0.08 : 0.01) * (double)n->surfaces.n,
                  "%s: slopes", name);
    if (!c->no_carving)
        ck_assert_uint_gt(n->freed, 1000);
    if (c->clean)
        ck_assert_uint_gt(n->tiles, 0);
    if (c->sensor != VX_DEPTH && !c->no_carving)
        /* a voxel asks one bin, and a point set's bins are narrower than half a voxel within some 160 voxels
         */
        ck_assert_msg((double)n->found > (c->sensor == VX_RANGE ? 0.6 : 0.1) * (double)n->must_see,
                      "%s: too little free space is found", name);
}

/* Per cent; 0 of nothing. */
static double share(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void judge_small(const struct scenario *c, const struct tally *n, const char *name)
{
    ck_assert_msg(c->empty ? !n->known : n->known > 0, "%s: %llu voxels known", name,
                  (unsigned long long)n->known);
    ck_assert_msg(c->empty || c->blind ? !n->band : n->band > 0, "%s: %llu voxels in bands", name,
                  (unsigned long long)n->band);
    ck_assert_msg(c->empty || (double)n->either <= 0.1 * (double)n->seen,
                  "%s: too many voxels may go either way", name);
}

/* A wall across the view, `distance` (metres) away along the axis. */
static void see_wall(struct test_frame *t, const struct scenario *c, double distance)
{
    t->f.pose[0].rotation_xyzw[0] = t->f.pose[0].rotation_xyzw[1] = t->f.pose[0].rotation_xyzw[2] = 0;
    t->f.pose[0].rotation_xyzw[3] = 1;
    for (uint32_t i = 0; i < t->f.width * t->f.height; i++) {
        double nearness = 1 + c->tilt * (i % t->f.width - t->f.cx) / t->f.fx;
        ((float *)t->data)[i] = nearness > 0.1 ? (float)(distance / nearness) : INFINITY;
    }
}

/* A weight for each pixel: none, less and more than 1, those that end up at a limit.  Returns them. */
static float *weigh(struct test_frame *t, uint64_t *seed)
{
    const uint32_t n = t->f.width * t->f.height;
    float *w = malloc(n * sizeof *w);
    ck_assert_ptr_nonnull(w);
    for (uint32_t i = 0; i < n; i++) {
        const uint64_t kind = test_random(seed) % 16;
        w[i] = kind < 2    ? 0.0f
               : kind == 2 ? 1.0f
               : kind == 3 ? 1e-30f
               : kind == 4 ? VX_MAX_WEIGHT
                           : (float)exp2(test_uniform(seed, -4, 4));
    }
    t->f.weight = w;
    return w;
}

/* Poses of a sensor that drives and turns while it scans, and a time for every reading.  Returns the times.
 */
static int32_t *move_sensor(struct test_frame *t, const struct scenario *c, uint64_t *seed)
{
    struct vx_frame *f = &t->f;
    int32_t *ns = malloc((f->width + 1) * sizeof *ns);
    int64_t begin = -20000000;
    ck_assert_ptr_nonnull(ns);
    f->n_poses = (uint32_t)c->n_poses;
    f->pose[0].offset_ns = begin;
    for (int i = 1; i < c->n_poses; i++) {
        struct vx_pose *p = &f->pose[i];
        double n = 0;
        *p = f->pose[i - 1];
        p->offset_ns += 100000000 / (c->n_poses - 1) + (int64_t)(test_random(seed) % 1000);
        for (int k = 0; k < 3; k++)
            p->position_m[k] += test_uniform(seed, -6, 6) * c->voxel_m / (c->n_poses - 1);
        for (int k = 0; k < 4; k++) {
            p->rotation_xyzw[k] += test_uniform(seed, -0.1, 0.1) / (c->n_poses - 1);
            n += p->rotation_xyzw[k] * p->rotation_xyzw[k];
        }
        for (int k = 0; k < 4; k++)
            p->rotation_xyzw[k] /= (i & 1 ? -1 : 1) * sqrt(n); /* of either sign */
    }
    for (uint32_t i = 0; i < f->width; i++) {
        uint32_t column = f->sensor == VX_RANGE ? i : i % c->width;
        ns[i] = (int32_t)(begin + (int64_t)(99999000.0 * column / c->width) +
                          (int64_t)(test_random(seed) % 1000));
    }
    f->time_ns = ns;
    return ns;
}

static void run(const struct scenario *c, uint64_t seed, const char *name)
{
    struct vx_device *d = test_device(512 << 20);
    struct vx_map_params p = test_params(c->voxel_m, c->mode);
    struct frame_shape shape = {.width = c->width,
                                .height = c->height,
                                .reach_m = c->reach_voxels * c->voxel_m,
                                .odd = c->clean   ? 0
                                       : c->blind ? 1
                                                  : 0.05,
                                .u16 = c->u16};
    struct tally n = {0};
    struct vx_map *map;
    struct box box;
    double centre[3], spread = 10 * c->voxel_m;
    p.truncation_voxels = c->truncation;
    p.weighting = c->weighting;
    memcpy(p.origin_m, c->origin_m, sizeof p.origin_m);
    map = test_map(d, &p);
    for (int k = 0; k < 3; k++)
        centre[k] = (c->centre_m[k] - c->origin_m[k]) / c->voxel_m;
    /* a depth image's corner is farther than its depth */
    box_init(&box, centre,
             (c->sensor != VX_DEPTH ? 1.0
              : c->view > 0         ? c->view
                                    : 1.45) *
                     (c->reach_voxels + c->truncation) +
                 12);
    for (int i = 0; i < c->n_frames; i++) {
        struct vx_frame_result result;
        struct vx_detail detail = {0};
        struct test_frame t;
        struct sensor s;
        struct map_walk *w;
        double at[3];
        char what[128];
        int32_t *times;
        float *weights;
        vx_err err;
        snprintf(what, sizeof what, "%s, seed %llu, frame %d", name, (unsigned long long)seed, i);
        for (int k = 0; k < 3; k++)
            at[k] = c->centre_m[k] + (i ? test_uniform(&seed, -spread, spread) : 0);
        test_frame_init(&t, c->sensor, &seed, &shape, at);
        t.f.no_carving = c->no_carving;
        if (c->empty && c->sensor == VX_POINTS)
            t.f.width = 0, t.f.data_bytes = 0;
        for (uint32_t k = 0; c->empty && k < t.f.width * t.f.height; k++)
            ((float *)t.data)[k] = NAN;
        if (c->walls)
            see_wall(&t, c, (i & 1 ? 0.93 : 0.7) * c->reach_voxels * c->voxel_m);
        if (i == c->n_frames - 1) /* the last looks where the one before it looked: merging and carving */
            t.f.pose[0] =
                (struct vx_pose){.position_m = {at[0], at[1], at[2]}, .rotation_xyzw = {0, 0, 0, 1}};
        if (i == c->n_frames - 2)
            t.f.pose[0].rotation_xyzw[0] = t.f.pose[0].rotation_xyzw[1] = t.f.pose[0].rotation_xyzw[2] = 0,
            t.f.pose[0].rotation_xyzw[3] = 1;
        times = c->n_poses > 1 ? move_sensor(&t, c, &seed) : NULL;
        weights = c->weights ? weigh(&t, &seed) : NULL;
        err = vx_map_integrate(map, &t.f, &result, &detail);
        ck_assert_msg(err == VX_OK, "%s: %s", what, detail.text);
        observe_sensor(&s, &map->params, &t.f);
        if (c->sensor == VX_DEPTH)
            observe_depth(&s, &t.f, &box, &n.surfaces);
        else
            observe_lidar(&s, &t.f, &box, &n.surfaces);
        w = map_walk_newest(map);
        ck_assert_msg(!w->fault[0], "%s: %s", what, w->fault);
        compare(&s, &t.f, &box, w, &n, what);
        n.tiles = w->n_tiles;
        map_walk_free(w);
        test_frame_fini(&t);
        free(times);
        free(weights);
    }
    printf("%-16s %7llu voxels seen, %.2f %% either way, %llu in bands (%.1f %% wide, %.2f units off), %llu "
           "freed, "
           "%llu cleared, %llu halved, %llu tiles; %.0f %% of %llu surfaces sloped, %.2f %% unsure",
           name, (unsigned long long)n.seen, share(n.either, n.seen), (unsigned long long)n.band,
           share(n.wide, n.band), n.worst, (unsigned long long)n.freed, (unsigned long long)n.cleared,
           (unsigned long long)n.halved, (unsigned long long)n.tiles, share(n.surfaces.sloped, n.surfaces.n),
           (unsigned long long)n.surfaces.n, share(n.surfaces.unsure, n.surfaces.n));
    if (n.must_see)
        printf(", found %.1f %% of free", 100.0 * (double)n.found / (double)n.must_see);
    printf("\n");
    if (c->small)
        judge_small(c, &n, name);
    else
        judge(c, &n, name);
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
    /* noise of 9 voxels: what lies within three times that before a surface is moved, not freed */
    {.voxel_m = 2, .truncation = 3, .reach_voxels = 64, .centre_m = {10, -20, 30}, .walls = true},
    /* a wall seen at a flat angle: its band is much deeper than the truncation */
    {.voxel_m = 0.05,
     .truncation = 6,
     .reach_voxels = 48,
     .width = 160,
     .height = 120,
     .walls = true,
     .tilt = 2.5},
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
    /* the sensor moves while it scans */
    {.sensor = VX_RANGE, .voxel_m = 0.1, .truncation = 3, .reach_voxels = 36, .n_poses = 2},
    {.sensor = VX_RANGE,
     .voxel_m = 0.1,
     .truncation = 3,
     .reach_voxels = 32,
     .mode = VX_OCCUPANCY,
     .centre_m = {-12.8, 25.6, -12.8},
     .n_poses = 11},
    {.sensor = VX_POINTS,
     .voxel_m = 0.1,
     .truncation = 3,
     .reach_voxels = 36,
     .origin_m = {5e5, -4e6, 0},
     .centre_m = {5e5 + 12.8, -4e6, 0},
     .n_poses = 3},
    {.sensor = VX_POINTS,
     .voxel_m = 0.1,
     .truncation = 3,
     .reach_voxels = 32,
     .mode = VX_OCCUPANCY,
     .n_poses = 64},
};
#define CONSTANT .weighting = VX_WEIGHT_CONSTANT
static const struct scenario weight_scenarios[] = {
    {.weights = true, .voxel_m = 0.05, .truncation = 3, .reach_voxels = 32},
    {.weights = true,
     .voxel_m = 0.02,
     .truncation = 4,
     .reach_voxels = 36,
     .u16 = true,
     .centre_m = {6.39, 6.41, -0.01}},
    {.weights = true, .voxel_m = 0.2, .truncation = 1, .reach_voxels = 36, .centre_m = {1e4, -1e4, 3}},
    {.weights = true, .voxel_m = 0.05, .truncation = 3, .reach_voxels = 32, .mode = VX_OCCUPANCY},
    {.weights = true, .voxel_m = 0.05, .truncation = 3, .reach_voxels = 32, .no_carving = true},
    {.weights = true,
     .voxel_m = 2,
     .truncation = 3,
     .reach_voxels = 64,
     .centre_m = {10, -20, 30},
     .walls = true},
    {CONSTANT, .voxel_m = 0.05, .truncation = 3, .reach_voxels = 32},
    {CONSTANT, .weights = true, .voxel_m = 0.1, .truncation = 2, .reach_voxels = 36,
     .centre_m = {1e4, -1e4, 3}},
    {CONSTANT, .voxel_m = 2, .truncation = 3, .reach_voxels = 64, .centre_m = {10, -20, 30}, .walls = true},
    {CONSTANT, .sensor = VX_RANGE, .voxel_m = 0.1, .truncation = 3, .reach_voxels = 36},
};
#undef CONSTANT
#define SMALL .voxel_m = 0.1, .truncation = 3, .reach_voxels = 20, .small = true
/* Sides that are no multiple of a strip or tile, no neighbours, no readings. */
static const struct scenario small_scenarios[] = {
    {SMALL, .sensor = VX_DEPTH, .width = 13, .height = 3},
    {SMALL, .sensor = VX_DEPTH, .width = 1, .height = 1, .clean = true, .view = 2.6},
    {SMALL, .sensor = VX_DEPTH, .width = 1, .height = 2, .view = 3.3},
    {SMALL, .sensor = VX_DEPTH, .width = 40, .height = 1},
    {SMALL, .sensor = VX_DEPTH, .width = 7, .height = 9},
    {SMALL, .sensor = VX_DEPTH, .width = 24, .height = 5, .u16 = true},
    {SMALL, .sensor = VX_DEPTH, .width = 61, .height = 45},
    {SMALL, .sensor = VX_DEPTH, .width = 64, .height = 48, .blind = true},
    {SMALL, .sensor = VX_DEPTH, .width = 29, .height = 17, .empty = true},
    {SMALL, .sensor = VX_RANGE, .width = 256, .height = 1},
    {SMALL, .sensor = VX_RANGE, .width = 1, .height = 48},
    {SMALL, .sensor = VX_RANGE, .width = 1, .height = 1, .clean = true},
    {SMALL, .sensor = VX_RANGE, .width = 5, .height = 7},
    {SMALL, .sensor = VX_RANGE, .width = 19, .height = 11, .empty = true},
    {SMALL, .sensor = VX_POINTS, .width = 1, .height = 1, .clean = true},
    {SMALL, .sensor = VX_POINTS, .width = 2, .height = 1, .clean = true},
    {SMALL, .sensor = VX_POINTS, .width = 64, .height = 8},
    {SMALL, .sensor = VX_POINTS, .width = 1, .height = 1, .empty = true},
};
#undef SMALL
enum {
    N_SMALL = sizeof small_scenarios / sizeof *small_scenarios,
    N_WEIGHT = sizeof weight_scenarios / sizeof *weight_scenarios,
    N_DEPTH = sizeof depth_scenarios / sizeof *depth_scenarios,
    N_LIDAR = sizeof lidar_scenarios / sizeof *lidar_scenarios
};

START_TEST(depth)
{
    struct scenario c = depth_scenarios[_i % N_DEPTH];
    char name[40];
    c.sensor = VX_DEPTH;
    c.width = c.width ? c.width : 64;
    c.height = c.height ? c.height : 48;
    c.n_frames = 5;
    if (c.clean) { /* dense enough for whole cells to be seen empty at once */
        c.width = 480;
        c.height = 360;
    }
    snprintf(name, sizeof name, "depth %d", _i);
    run(&c, test_seed + 1000 * (uint64_t)_i, name);
}
END_TEST

START_TEST(weights)
{
    struct scenario c = weight_scenarios[_i];
    char name[40];
    c.width = c.sensor == VX_DEPTH ? 64 : 256;
    c.height = 48;
    c.n_frames = 5;
    snprintf(name, sizeof name, "weights %d", _i);
    run(&c, test_seed + 1000 * (uint64_t)_i + 300, name);
}
END_TEST

START_TEST(lidar)
{
    struct scenario c = lidar_scenarios[_i % N_LIDAR];
    char name[40];
    c.width = c.sensor == VX_RANGE ? 256 : 1024;
    c.height = c.sensor == VX_RANGE ? 48 : 64;
    c.n_frames = 4;
    snprintf(name, sizeof name, "%s %d", c.sensor == VX_RANGE ? "range image" : "points", _i);
    run(&c, test_seed + 1000 * (uint64_t)_i + 500, name);
}
END_TEST

START_TEST(small)
{
    struct scenario c = small_scenarios[_i % N_SMALL];
    char name[40];
    c.n_frames = 4;
    snprintf(name, sizeof name, "small %d, %ux%u", _i, c.width, c.height);
    run(&c, test_seed + 1000 * (uint64_t)_i + 700, name);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("integrate");
    if (argc > 3 && !strcmp(argv[3], "weights")) {
        ck_add(s, weights, slow ? 1 : N_WEIGHT);
        return core_test_main(argc, argv, s);
    }
    ck_add(s, depth, slow ? 2 : N_DEPTH);
    ck_add(s, lidar, slow ? 1 : N_LIDAR);
    ck_add(s, small, N_SMALL);
    return core_test_main(argc, argv, s);
}
