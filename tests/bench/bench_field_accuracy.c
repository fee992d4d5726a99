/*
 * bench_field_accuracy.c - how true the distance field is, against the distance of an analytic scene.
 *
 * 20,000 random points that are not unknown, with -2 voxels < truth < R - 1 voxel: error of the distance, and
 * of its gradient, as it is answered, without the flag that says where there is none, and by differences over
 * a voxel each way; share of unknown among points in front of a surface, of any and of one that the map has;
 * points deeper than a voxel that are called free; how many of the unknown ones any frame looked through. The
 * same for a 26-neighbour chamfer over the same sites, the usual approximation.  One JSON line on stdout;
 * exit 1 when a bar is missed.  The bar on unknown space (10 %) is held against surfaces that the map has
 * (seen_front_unknown): what no frame saw is unknown for any method, and counted in front_unknown, which has
 * no bar here (front_unseen of it no frame looked through, by its depth at that pixel; of those that one did,
 * looked_front_unknown is unknown).  Uses core's internal headers: it copies the field.
 */
#include "bench_frames.h"
#include "bench_util.h"
#include "field_view.h"
#include "scene.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WANTED = 20000, MOST_TRIES = 100 * WANTED, FAR = 30000 /* chamfer: nothing, in 1/100 voxel */ };

struct options {
    const char *workload;
    enum scene_kind kind;
    struct vxc_reader_options reader;
    struct vx_map_params map;
    struct vx_device_params device;
};

/* Distances and states of a box of voxels. */
struct grid {
    int32_t lo[3], n[3]; /* voxels */
    uint16_t *stored;    /* as the field stores them; unknown and far where it has no leaf */
    uint16_t *chamfer;   /* 1/100 voxel, unsigned */
    double unit;         /* of a stored distance, voxels */
};

/* What one way to measure came to. */
struct errors {
    struct bench_samples error;                      /* |distance - truth|, voxels */
    uint32_t n_within_half, n_cosine, n_cosine_good; /* n_cosine: with a gradient */
    uint32_t n_near, n_near_good;                    /* those of them whose distance is within a voxel */
};

struct figures {
    struct errors exact, chamfer;
    struct errors unflagged;    /* the interpolated field's gradient also where it is said to have none */
    struct errors over_a_voxel; /* the same by differences over a voxel each way */
    uint32_t n_front, n_front_unknown;   /* points in front of a surface */
    uint32_t n_seen, n_seen_unknown;     /* those of them whose surface the map has */
    uint32_t n_looked, n_looked_unknown; /* those that some frame looked through */
    uint32_t n_deep_free;
};

/* A frame as it was taken: what it looked through. */
struct view {
    double position_m[3], rotation[9]; /* map_T_sensor */
    double fx, fy, cx, cy, min_m, max_m;
    uint32_t width, height;
    float *depth; /* m */
};
struct views {
    struct view *view;
    size_t n, capacity;
};

static const char USAGE[] =
    "usage: bench_field_accuracy --workload FILE.vxwl [options]\n"
    "  --scene room|street      that the workload was rendered from (default room)\n"
    "  --voxel M                (default 0.02)   --esdf-max-distance M (default 0.5)\n"
    "  --backend cpu|cuda|guard (default cpu)    --threads N\n";

static bool parse_option(struct options *o, const char *name, const char *value)
{
    uint64_t n = 0;
    if (strcmp(name, "--workload") == 0)
        return (o->workload = value)[0] != '\0';
    if (strcmp(name, "--scene") == 0)
        return scene_kind_from_name(value, &o->kind);
    if (strcmp(name, "--voxel") == 0)
        return bench_parse_double(value, 1e-6, 1e6, &o->map.voxel_size_m);
    if (strcmp(name, "--esdf-max-distance") == 0)
        return bench_parse_double(value, 0, 1e6, &o->map.esdf_max_distance_m);
    if (strcmp(name, "--backend") == 0)
        return bench_parse_backend(value, &o->device.backend);
    if (strcmp(name, "--threads") != 0 || !bench_parse_uint(value, 4096, &n))
        return false;
    o->device.n_threads = (int)n;
    return true;
}

static void quaternion_matrix(const double q[4], double m[9])
{
    const double x = q[0], y = q[1], z = q[2], w = q[3];
    const double r[9] = {1 - 2 * (y * y + z * z), 2 * (x * y - z * w),     2 * (x * z + y * w),
                         2 * (x * y + z * w),     1 - 2 * (x * x + z * z), 2 * (y * z - x * w),
                         2 * (x * z - y * w),     2 * (y * z + x * w),     1 - 2 * (x * x + y * y)};
    memcpy(m, r, sizeof r);
}

/* Keeps a depth frame's view; others have none. */
static vx_err keep_view(struct views *views, const struct vx_frame *f)
{
    if (f->sensor != VX_DEPTH || f->encoding != VX_F32)
        return VX_OK;
    if (views->n == views->capacity) {
        const size_t capacity = views->capacity ? 2 * views->capacity : 64;
        struct view *grown = realloc(views->view, capacity * sizeof *grown);
        if (!grown)
            return VX_E_NOMEM;
        views->view = grown;
        views->capacity = capacity;
    }
    struct view *v = &views->view[views->n];
    *v = (struct view){.fx = f->fx,
                       .fy = f->fy,
                       .cx = f->cx,
                       .cy = f->cy,
                       .min_m = f->min_range_m,
                       .max_m = f->max_range_m,
                       .width = f->width,
                       .height = f->height,
                       .depth = malloc(f->data_bytes)};
    if (!v->depth)
        return VX_E_NOMEM;
    memcpy(v->depth, f->data, f->data_bytes);
    memcpy(v->position_m, f->pose[0].position_m, sizeof v->position_m);
    quaternion_matrix(f->pose[0].rotation_xyzw, v->rotation);
    views->n++;
    return VX_OK;
}
static void views_fini(struct views *views)
{
    for (size_t i = 0; i < views->n; i++)
        free(views->view[i].depth);
    free(views->view);
}

/* True when a frame has the point in its image, within its range, and reads something behind it. */
static bool looked_through(const struct views *views, const double p[3], double margin_m)
{
    for (size_t i = 0; i < views->n; i++) {
        const struct view *v = &views->view[i];
        double d[3], c[3];
        for (int a = 0; a < 3; a++)
            d[a] = p[a] - v->position_m[a];
        for (int a = 0; a < 3; a++)
            c[a] = v->rotation[a] * d[0] + v->rotation[3 + a] * d[1] + v->rotation[6 + a] * d[2];
        if (!(c[2] > v->min_m && c[2] < v->max_m))
            continue;
        const double x = rint(v->fx * c[0] / c[2] + v->cx), y = rint(v->fy * c[1] / c[2] + v->cy);
        if (!(x >= 0 && y >= 0 && x < v->width && y < v->height))
            continue;
        if ((double)v->depth[(size_t)y * v->width + (size_t)x] > c[2] + margin_m)
            return true;
    }
    return false;
}

static vx_err feed(struct vx_map *map, const struct options *o, struct views *views, struct vx_detail *detail)
{
    struct vxc_reader *reader = NULL;
    vx_err err;
    VX_TRY_RET(vxc_reader_open(o->workload, &o->reader, &reader, detail));
    for (;;) {
        struct vxc_frame read;
        struct vx_frame frame;
        struct vx_frame_result result;
        enum vxc_step step;
        vx_err why = VX_OK;
        VX_TRY(vxc_reader_next(reader, &read, &step, &why, detail));
        if (step == VXC_STEP_END)
            break;
        if (step == VXC_STEP_REFUSED)
            continue;
        bench_frame_convert(&read, &vxc_reader_get_info(reader)->sensing, false, &frame);
        VX_TRY(vx_map_integrate(map, &frame, &result, detail));
        VX_TRY(keep_view(views, &frame));
    }
    err = VX_OK;
fail:
    vxc_reader_close(reader);
    return err;
}

/* ------------------------------------------------------------------ the field on the host */

static uint64_t place_in(const struct grid *g, int32_t x, int32_t y, int32_t z)
{
    return ((uint64_t)(x - g->lo[0]) * (uint64_t)g->n[1] + (uint64_t)(y - g->lo[1])) * (uint64_t)g->n[2] +
           (uint64_t)(z - g->lo[2]);
}
static bool holds(const struct grid *g, int32_t x, int32_t y, int32_t z)
{
    return x >= g->lo[0] && y >= g->lo[1] && z >= g->lo[2] && x < g->lo[0] + g->n[0] &&
           y < g->lo[1] + g->n[1] && z < g->lo[2] + g->n[2];
}

/* Puts the leaves of one page into the grid. */
static void unpack(struct grid *g, const uint16_t *page, const uint64_t *chunk_key, uint32_t n_leaves)
{
    uint16_t *const pages[1] = {(uint16_t *)(uintptr_t)page};
    for (uint32_t leaf = 0; leaf < n_leaves; leaf++) {
        const uint32_t place = *vxk_esdf_place_of(pages, leaf);
        const uint16_t *voxels = vxk_esdf_voxels(pages, leaf);
        int32_t k[3], c[3];
        if (place == VXK_NONE)
            continue;
        vxk_key_xyz(chunk_key[place >> 12], &k[0], &k[1], &k[2]);
        vxk_place_xyz(place & 4095, &c[0], &c[1], &c[2]);
        for (int32_t v = 0; v < 512; v++) {
            const int32_t x = k[0] * 128 + c[0] * 8 + (v >> 6), y = k[1] * 128 + c[1] * 8 + (v >> 3 & 7),
                          z = k[2] * 128 + c[2] * 8 + (v & 7);
            if (holds(g, x, y, z))
                g->stored[place_in(g, x, y, z)] = voxels[v];
        }
    }
}

static vx_err copy_field(struct vx_map *map, struct grid *g, struct vx_detail *detail)
{
    const struct vxk_ops *ops = vx__map_dev(map)->ops;
    struct field_view view;
    uint64_t *keys = NULL;
    uint16_t *page = NULL;
    vx_err err;
    VX_TRY_RET(field_view_open(map, false, &view, detail));
    const struct vx__esdf *e = view.e;
    struct vxk_queue *queue = view.rs->queue;
    page = malloc(VXK_ESDF_PAGE_BYTES);
    keys = malloc((e->n_chunks + 1) * sizeof *keys);
    VX_TRY(page && keys ? VX_OK : VX_E_NOMEM);
    VX_TRY(ops->download(queue, keys, e->chunk_key, e->n_chunks * sizeof *keys));
    g->unit = 1.0 / (256.0 * e->view.scale);
    for (uint32_t i = 0; i < e->n_pages; i++) {
        const uint32_t left = e->n_numbers - i * VXK_ESDF_PAGE;
        VX_TRY(ops->download(queue, page, e->pages[i], VXK_ESDF_PAGE_BYTES));
        VX_TRY(ops->wait(queue));
        unpack(g, page, keys, left < VXK_ESDF_PAGE ? left : VXK_ESDF_PAGE);
    }
fail:
    field_view_close(map, &view);
    free(keys);
    free(page);
    return err;
}

/* One pass of the chamfer over all voxels: forwards, or backwards. */
static void chamfer_pass(struct grid *g, int32_t way)
{
    static const uint16_t cost[4] = {0, 100, 141, 173};
    const int32_t total = g->n[0] * g->n[1] * g->n[2];
    for (int32_t k = 0; k < total; k++) {
        const int32_t i = way > 0 ? k : total - 1 - k, x = i / (g->n[1] * g->n[2]), y = i / g->n[2] % g->n[1],
                      z = i % g->n[2];
        uint16_t best = g->chamfer[i];
        for (int d = 0; d < 13; d++) { /* the neighbours that this pass has seen */
            const int32_t nx = x + way * (d / 9 - 1), ny = y + way * (d / 3 % 3 - 1),
                          nz = z + way * (d % 3 - 1);
            if (nx < 0 || ny < 0 || nz < 0 || nx >= g->n[0] || ny >= g->n[1] || nz >= g->n[2])
                continue;
            const uint16_t there = g->chamfer[(nx * g->n[1] + ny) * g->n[2] + nz];
            const int axes = (d / 9 != 1) + (d / 3 % 3 != 1) + (d % 3 != 1);
            if (there + cost[axes] < best)
                best = (uint16_t)(there + cost[axes]);
        }
        g->chamfer[i] = best;
    }
}
/* Voxels that touch the surface keep their exact distance; the others get the shortest way of steps. */
static void make_chamfer(struct grid *g)
{
    const int64_t total = (int64_t)g->n[0] * g->n[1] * g->n[2];
    for (int64_t i = 0; i < total; i++) {
        const double d = (g->stored[i] & VXK_ESDF_FAR) * g->unit;
        g->chamfer[i] = d <= 1 ? (uint16_t)rint(d * 100) : FAR;
    }
    chamfer_pass(g, 1);
    chamfer_pass(g, -1);
}

static vx_err make_grid(struct vx_map *map, struct grid *g, struct vx_detail *detail)
{
    struct vx_map_info info;
    uint64_t total = 1;
    VX_TRY_RET(vx_map_get_info(map, &info));
    for (int a = 0; a < 3; a++) {
        g->lo[a] =
            (int32_t)floor((info.active_min_m[a] - info.params.origin_m[a]) / info.params.voxel_size_m);
        g->n[a] = (int32_t)ceil((info.active_max_m[a] - info.active_min_m[a]) / info.params.voxel_size_m) + 1;
        total *= (uint64_t)g->n[a];
    }
    if (total > INT32_MAX)
        return vx_fail(detail, VX_E_INVALID, "voxel",
                       "the scene has %llu voxels of this size; take larger ones", (unsigned long long)total);
    g->stored = malloc(total * sizeof *g->stored);
    g->chamfer = malloc(total * sizeof *g->chamfer);
    if (!g->stored || !g->chamfer)
        return VX_E_NOMEM;
    for (uint64_t i = 0; i < total; i++)
        g->stored[i] = VXK_ESDF_FAR;
    VX_TRY_RET(copy_field(map, g, detail));
    make_chamfer(g);
    return VX_OK;
}

/* The chamfer at a place, by the rule of the queries: between the eight centres when all count, else of the
 * voxel. */
static bool chamfer_at(const struct grid *g, const double v[3], double *distance, double gradient[3])
{
    int32_t b[3];
    double f[3], d[8], length = 0;
    for (int a = 0; a < 3; a++) {
        b[a] = (int32_t)floor(v[a] - 0.5);
        f[a] = v[a] - 0.5 - b[a];
    }
    gradient[0] = gradient[1] = gradient[2] = 0;
    for (int k = 0; k < 8; k++) {
        const int32_t x = b[0] + (k >> 2), y = b[1] + (k >> 1 & 1), z = b[2] + (k & 1);
        if (!holds(g, x, y, z))
            return false;
        const uint64_t at = place_in(g, x, y, z);
        d[k] = g->chamfer[at] / 100.0 * (g->stored[at] >> 14 == VXK_STATE_OCCUPIED ? -1 : 1);
        if (g->chamfer[at] == FAR || g->stored[at] >> 14 == VXK_STATE_UNKNOWN)
            return false;
    }
    *distance = 0;
    for (int k = 0; k < 8; k++) {
        const double w[3] = {k >> 2 ? f[0] : 1 - f[0], k >> 1 & 1 ? f[1] : 1 - f[1], k & 1 ? f[2] : 1 - f[2]};
        *distance += d[k] * w[0] * w[1] * w[2];
        gradient[0] += d[k] * (k >> 2 ? 1 : -1) * w[1] * w[2];
        gradient[1] += d[k] * (k >> 1 & 1 ? 1 : -1) * w[0] * w[2];
        gradient[2] += d[k] * (k & 1 ? 1 : -1) * w[0] * w[1];
    }
    for (int a = 0; a < 3; a++)
        length += gradient[a] * gradient[a];
    for (int a = 0; a < 3 && length > 0; a++)
        gradient[a] /= sqrt(length);
    return true;
}

/* ------------------------------------------------------------------ points */

static double random_number(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static void true_gradient(const struct scene *scene, const double p[3], double step, double out[3])
{
    double n = 0;
    for (int a = 0; a < 3; a++) {
        double q[3] = {p[0], p[1], p[2]}, above;
        q[a] = p[a] + step;
        above = scene_sdf(scene, q[0], q[1], q[2]);
        q[a] = p[a] - step;
        out[a] = above - scene_sdf(scene, q[0], q[1], q[2]);
        n += out[a] * out[a];
    }
    for (int a = 0; a < 3 && n > 0; a++)
        out[a] /= sqrt(n);
}

static void note(struct errors *e, double distance, double truth, const double gradient[3],
                 const double want[3])
{
    const double cosine = gradient[0] * want[0] + gradient[1] * want[1] + gradient[2] * want[2];
    bench_samples_add(&e->error, fabs(distance - truth));
    e->n_within_half += fabs(distance - truth) <= 0.5;
    if (gradient[0] == 0 && gradient[1] == 0 && gradient[2] == 0)
        return;
    e->n_cosine++;
    e->n_cosine_good += cosine >= 0.9;
    if (fabs(distance - truth) <= 1) {
        e->n_near++;
        e->n_near_good += cosine >= 0.9;
    }
}

/* A place, and two steps each way along every axis from it. */
enum { SMALL_STEP, VOXEL_STEP, N_STEPS, N_ASKED = 1 + 6 * N_STEPS };
static const double step_voxels[N_STEPS] = {0.05, 1};

/* Slope of the interpolated distances over a step, of unit length; 0, 0, 0 where one of them is none. */
static void slope(const struct vx_point_answer a[N_ASKED], int step, double out[3])
{
    double n = 0;
    for (int k = 0; k < 3; k++) {
        const struct vx_point_answer *low = &a[1 + 6 * step + 2 * k], *high = low + 1;
        out[k] = (double)high->distance_m - (double)low->distance_m; /* NaN where there is none */
        n += out[k] * out[k];
    }
    for (int k = 0; k < 3; k++)
        out[k] = n > 0 ? out[k] / sqrt(n) : 0;
}

static vx_err ask(struct vx_map *map, const double p[3], double voxel_m, struct vx_point_answer a[N_ASKED],
                  struct vx_detail *detail)
{
    float points[N_ASKED][3] = {{0}};
    for (int step = 0; step < N_STEPS; step++)
        for (int k = 0; k < 6; k++)
            points[1 + 6 * step + k][k / 2] = (float)((k % 2 ? 1 : -1) * step_voxels[step] * voxel_m);
    return vx_query_points(map, NULL, p, points[0], N_ASKED, a, NULL, detail);
}

/* One point; true when it is one of those that are judged. */
static bool judge(const struct scene *scene, const struct vx_map_params *params, const struct grid *g,
                  const struct views *views, double reach, const double p[3],
                  const struct vx_point_answer a[N_ASKED], struct figures *f)
{
    const double voxel = params->voxel_size_m, truth = scene_sdf(scene, p[0], p[1], p[2]) / voxel;
    double want[3], got[3], v[3], d;
    if (truth < -1)
        f->n_deep_free += a->state == VX_STATE_FREE;
    if (truth > 0 && truth < reach - 1) {
        f->n_front++;
        f->n_front_unknown += a->state == VX_STATE_UNKNOWN;
        if (looked_through(views, p, voxel)) {
            f->n_looked++;
            f->n_looked_unknown += a->state == VX_STATE_UNKNOWN;
        }
        if ((a->status & VX_Q_DISTANCE) && fabs((double)a->distance_m / voxel - truth) <= 1) {
            f->n_seen++;
            f->n_seen_unknown += a->state == VX_STATE_UNKNOWN;
        }
    }
    if (a->state == VX_STATE_UNKNOWN || truth <= -2 || truth >= reach - 1)
        return false;
    true_gradient(scene, p, 0.05 * voxel, want);
    for (int k = 0; k < 3; k++) {
        got[k] = (double)a->gradient[k];
        v[k] = (p[k] - params->origin_m[k]) / voxel;
    }
    /* a point without a distance is said to be at the end of reach */
    d = a->status & VX_Q_DISTANCE ? (double)a->distance_m / voxel : reach;
    note(&f->exact, d, truth, got, want);
    slope(a, SMALL_STEP, got);
    note(&f->unflagged, d, truth, got, want);
    slope(a, VOXEL_STEP, got);
    note(&f->over_a_voxel, d, truth, got, want);
    if (chamfer_at(g, v, &d, got))
        note(&f->chamfer, d, truth, got, want);
    return true;
}

static vx_err measure(struct vx_map *map, const struct scene *scene, const struct grid *g,
                      const struct views *views, struct figures *f, struct vx_detail *detail)
{
    struct vx_map_info info;
    uint64_t seed = 20261130;
    uint32_t n = 0;
    VX_TRY_RET(vx_map_get_info(map, &info));
    for (uint32_t tries = 0; n < WANTED && tries < MOST_TRIES; tries++) {
        struct vx_point_answer a[N_ASKED];
        double p[3];
        for (int k = 0; k < 3; k++)
            p[k] =
                info.active_min_m[k] + random_number(&seed) * (info.active_max_m[k] - info.active_min_m[k]);
        VX_TRY_RET(ask(map, p, info.params.voxel_size_m, a, detail));
        n += judge(scene, &info.params, g, views, info.esdf_radius_voxels, p, a, f);
    }
    if (n < WANTED)
        return vx_fail(detail, VX_E_INVALID, "workload", "only %u of %d points can be judged", n,
                       (int)WANTED);
    return VX_OK;
}

/* ------------------------------------------------------------------ report */

static void print_errors(const char *name, struct errors *e)
{
    const double n = (double)e->error.count;
    printf(",\"%s\":{\"points\":%zu,\"median_voxels\":%.4f,\"p95_voxels\":%.4f,\"within_half\":%.4f,"
           "\"cosine_09\":%.4f,\"with_gradient\":%.4f,\"cosine_09_where_near\":%.4f}",
           name, e->error.count, bench_quantile(&e->error, 0.5), bench_quantile(&e->error, 0.95),
           e->n_within_half / n, e->n_cosine ? (double)e->n_cosine_good / e->n_cosine : 0.0, e->n_cosine / n,
           e->n_near ? (double)e->n_near_good / e->n_near : 0.0);
}

/* Prints the figures: true when every bar is met. */
static bool report(const struct options *o, struct figures *f)
{
    const double n = (double)f->exact.error.count,
                 unknown = f->n_front ? (double)f->n_front_unknown / f->n_front : 1,
                 seen = f->n_seen ? (double)f->n_seen_unknown / f->n_seen : 1;
    const bool ok = bench_quantile(&f->exact.error, 0.5) <= 0.12 && f->exact.n_within_half / n >= 0.8 &&
                    f->n_deep_free == 0 && seen <= 0.1 && f->exact.n_cosine_good >= 0.95 * f->exact.n_cosine;
    printf("{\"bench\":\"field_accuracy\",\"voxel_m\":%.9g,\"deep_free\":%u,\"front_unknown\":%.4f,\"seen_"
           "front_unknown\":%.4f,\"front_unseen\":%.4f,\"looked_front_unknown\":%.4f",
           o->map.voxel_size_m, f->n_deep_free, unknown, seen,
           f->n_front_unknown ? 1 - (double)f->n_looked_unknown / f->n_front_unknown : 0,
           f->n_looked ? (double)f->n_looked_unknown / f->n_looked : 0);
    print_errors("exact", &f->exact);
    print_errors("exact_unflagged", &f->unflagged);
    print_errors("exact_over_a_voxel", &f->over_a_voxel);
    print_errors("chamfer", &f->chamfer);
    printf(",\"bars\":\"%s\"}\n", ok ? "met" : "missed");
    return ok;
}

static vx_err run(const struct options *o, bool *ok, struct vx_detail *detail)
{
    struct vx_device *device = NULL;
    struct vx_map *map = NULL;
    struct grid g = {.stored = NULL};
    struct figures f = {.n_front = 0};
    struct views views = {.n = 0};
    struct scene *scene = scene_create(o->kind, false);
    vx_err err = scene ? VX_OK : VX_E_NOMEM;
    VX_TRY(err);
    VX_TRY(vx_device_open(&o->device, &device, detail));
    VX_TRY(vx_map_create(device, "bench", &o->map, &map, detail));
    VX_TRY(feed(map, o, &views, detail));
    VX_TRY(make_grid(map, &g, detail));
    VX_TRY(measure(map, scene, &g, &views, &f, detail));
    *ok = report(o, &f);
fail:
    views_fini(&views);
    bench_samples_fini(&f.exact.error);
    bench_samples_fini(&f.unflagged.error);
    bench_samples_fini(&f.over_a_voxel.error);
    bench_samples_fini(&f.chamfer.error);
    free(g.stored);
    free(g.chamfer);
    scene_destroy(scene);
    if (map)
        vx_map_destroy(map);
    if (device)
        vx_device_close(device);
    return err;
}

int main(int argc, char **argv)
{
    struct options o = {.kind = SCENE_ROOM, .device = {.backend = VXK_CPU}};
    struct vx_detail detail = {"", ""};
    bool ok = false;
    vx_map_params_default(&o.map);
    o.map.voxel_size_m = 0.02;
    o.map.esdf_max_distance_m = 0.5;
    for (int i = 1; i < argc; i += 2)
        if (i + 1 >= argc || !parse_option(&o, argv[i], argv[i + 1])) {
            fputs(USAGE, stderr);
            return 2;
        }
    if (!o.workload) {
        fputs(USAGE, stderr);
        return 2;
    }
    const vx_err err = run(&o, &ok, &detail);
    if (err == VX_OK)
        return ok ? 0 : 1;
    fprintf(stderr, "bench_field_accuracy: %s: %s%s%s\n", vx_err_name(err), detail.field,
            detail.field[0] ? ": " : "", detail.text[0] ? detail.text : vx_err_text(err));
    return 1;
}
