/* test_query.c - points, spheres and rays against double-precision references on small maps. */
#include "body/query.h"
#include "field_dump.h"
#include "oracle_run.h"
#include "random_map.h"
#include "vx/query.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum vxk_backend backend; /* under test; program's argument */

enum { N = 4000 };

static struct vx_map_params params_of(int occupancy, uint32_t radius)
{
    return (struct vx_map_params){.voxel_size_m = 0.1,
                                  .origin_m = {500000.5, 4000000.25, 100},
                                  .esdf_max_distance_m = 0.1 * radius,
                                  .mode = occupancy ? VX_OCCUPANCY : VX_TSDF};
}

/* A map, its field, and where questions are asked. */
struct scene {
    struct grid_fixture *f;
    struct vx_map_params p;
    struct field_dump d;
    double origin[3]; /* of the batch */
    uint64_t seed;
    int32_t corner[3], size;
};

static const struct {
    int32_t corner[3], size;
    int style, occupancy;
    uint32_t radius;
} scenes[] = {
    {{-9, -9, -9}, 40, 2, 0, 10},    {{119, 117, 121}, 24, 0, 0, 4}, {{-140, 120, 1000}, 28, 1, 0, 10},
    {{110, -15, 118}, 30, 1, 1, 12}, {{-17, 118, 5}, 22, 0, 1, 3},   {{0, 0, 0}, 40, 3, 0, 20},
};
enum { N_SCENES = sizeof scenes / sizeof *scenes };

static struct scene open_scene(int i, enum vxk_backend on, int threads)
{
    struct scene s = {.p = params_of(scenes[i].occupancy, scenes[i].radius),
                      .seed = 40 + (uint64_t)i,
                      .size = scenes[i].size};

    memcpy(s.corner, scenes[i].corner, sizeof s.corner);
    s.f = grid_fixture_create(on, threads, &s.p, 0);
    random_map_fill(s.f, &s.seed, s.corner, s.size, scenes[i].style);
    grid_fixture_publish(s.f);
    ck_assert_int_eq(field_dump_get(s.f, &s.d), VX_OK);
    for (int a = 0; a < 3; a++)
        s.origin[a] = s.p.origin_m[a] + 0.1 * s.corner[a] - 1.75;
    return s;
}
static void close_scene(struct scene *s)
{
    field_dump_fini(&s->d);
    ck_assert_uint_eq(grid_fixture_destroy(s->f), 0);
}
static double to_voxels(const struct scene *s, float p, int a)
{
    return ((double)p + (s->origin[a] - s->p.origin_m[a])) / s->p.voxel_size_m;
}
static void random_position(struct scene *s, float p[3])
{
    for (int a = 0; a < 3; a++)
        p[a] = (float)grid_fixture_uniform(&s->seed, 0, 0.1 * s->size + 3.5);
}

static uint32_t state_at(const struct scene *s, int32_t x, int32_t y, int32_t z)
{
    uint32_t v;
    int kind = grid_fixture_get(s->f, x, y, z, &v), t = (int16_t)(v & 0xffff);

    if (kind == VXK_ACTIVE && s->p.mode == VX_OCCUPANCY)
        return t > 0 ? VX_STATE_OCCUPIED : t < 0 ? VX_STATE_FREE : VX_STATE_UNKNOWN;
    return kind == VXK_ACTIVE ? (t < 0 ? VX_STATE_OCCUPIED : VX_STATE_FREE)
           : kind == VXK_FREE ? VX_STATE_FREE
                              : VX_STATE_UNKNOWN;
}

/* ------------------------------------------------------------------ points */

/* Distance of a centre in voxels: false when nothing is within R. */
static int centre_distance(const struct scene *s, int32_t x, int32_t y, int32_t z, double *d, int *has_state)
{
    const uint16_t *leaf = vxk_esdf_leaf(&s->d.view, x >> 3, y >> 3, z >> 3);
    uint32_t m = leaf ? leaf[vxk_voxel_of((uint32_t)x, (uint32_t)y, (uint32_t)z)] & 16383u : 16383u,
             state = state_at(s, x, y, z);

    *has_state = state != VX_STATE_UNKNOWN;
    *d = m / (256.0 * s->d.view.scale) * (state == VX_STATE_OCCUPIED ? -1 : 1);
    return m != 16383;
}

/* The reference answer at voxel coordinates v. */
static void reference_point(const struct scene *s, const double v[3], struct vx_point_answer *out,
                            double *slope)
{
    int32_t c[3], b[3];
    double f[3], d[8], here, g[3] = {0, 0, 0}, n = 0;
    int mixed = 0, state, ok = 1;

    for (int a = 0; a < 3; a++) {
        c[a] = (int32_t)floor(v[a]);
        b[a] = (int32_t)floor(v[a] - 0.5);
        f[a] = v[a] - 0.5 - b[a];
    }
    *out = (struct vx_point_answer){.distance_m = NAN, .state = state_at(s, c[0], c[1], c[2])};
    *slope = 0;
    if (!centre_distance(s, c[0], c[1], c[2], &here, &state))
        return;
    out->status = VX_Q_DISTANCE;
    for (int k = 0; k < 8; k++) {
        int has;
        mixed |=
            !centre_distance(s, b[0] + (k >> 2), b[1] + (k >> 1 & 1), b[2] + (k & 1), &d[k], &has) || !has;
    }
    if (!mixed) {
        double sum = 0;
        for (int k = 0; k < 8; k++) {
            double w[3] = {k >> 2 ? f[0] : 1 - f[0], k >> 1 & 1 ? f[1] : 1 - f[1], k & 1 ? f[2] : 1 - f[2]};
            sum += d[k] * w[0] * w[1] * w[2];
            g[0] += d[k] * (k >> 2 ? 1 : -1) * w[1] * w[2];
            g[1] += d[k] * (k >> 1 & 1 ? 1 : -1) * w[0] * w[2];
            g[2] += d[k] * (k & 1 ? 1 : -1) * w[0] * w[1];
        }
        here = sum;
    } else {
        for (int a = 0; a < 3 && ok; a++) {
            int count = 0;
            for (int side = -1; side <= 1; side += 2) {
                double u;
                int has, found = centre_distance(s, c[0] + (a == 0 ? side : 0), c[1] + (a == 1 ? side : 0),
                                                 c[2] + (a == 2 ? side : 0), &u, &has);
                if (found && has == state) {
                    g[a] += side * (u - here);
                    count++;
                }
            }
            ok = count > 0;
            g[a] /= count ? count : 1;
        }
    }
    out->distance_m = (float)(here * s->p.voxel_size_m);
    for (int a = 0; a < 3; a++)
        n += g[a] * g[a];
    *slope = ok ? sqrt(n) : 0;
    if (*slope < (fabs(here) < 2 ? 0.5 : 0.8)) /* surfaces on several sides: no direction */
        return;
    out->status |= VX_Q_GRADIENT;
    for (int a = 0; a < 3; a++)
        out->gradient[a] = (float)(g[a] / *slope);
}

START_TEST(points)
{
    struct scene s = open_scene(_i, backend, 2);
    float(*p)[3] = malloc(N * sizeof *p);
    struct vx_point_answer *got = malloc(N * sizeof *got), want;
    struct vx_reply reply;
    struct vx_detail detail;
    int near = 0, mixed = 0, states[3] = {0};

    for (int i = 0; i < N; i++)
        random_position(&s, p[i]);
    p[0][0] = NAN;
    p[1][1] = INFINITY;
    p[2][2] = -INFINITY;
    p[3][0] = 3e38f;
    ck_assert_int_eq(vx_query_points(grid_fixture_map(s.f), NULL, s.origin, p[0], N, got, &reply, &detail),
                     VX_OK);
    ck_assert_uint_eq(reply.epoch, 1);
    ck_assert_uint_eq(reply.esdf_epoch, 1);
    ck_assert_double_eq_tol(reply.max_distance_m, 0.1 * scenes[_i].radius, 1e-12);
    for (int i = 0; i < 4; i++) {
        ck_assert_uint_eq(got[i].status, VX_Q_OUTSIDE);
        ck_assert_uint_eq(got[i].state, VX_STATE_UNKNOWN);
        ck_assert(isnan(got[i].distance_m) && got[i].gradient[0] == 0);
    }
    for (int i = 4; i < N; i++) {
        double v[3] = {to_voxels(&s, p[i][0], 0), to_voxels(&s, p[i][1], 1), to_voxels(&s, p[i][2], 2)},
               slope, n = 0;
        reference_point(&s, v, &want, &slope);
        states[got[i].state]++;
        ck_assert_uint_eq(got[i].state, want.state);
        ck_assert_uint_eq(got[i].status & VX_Q_DISTANCE, want.status & VX_Q_DISTANCE);
        if (!(want.status & VX_Q_DISTANCE)) {
            ck_assert(isnan(got[i].distance_m) && got[i].status == 0 && got[i].gradient[0] == 0);
            continue;
        }
        near++;
        mixed += want.state == VX_STATE_UNKNOWN;
        ck_assert_float_eq_tol(got[i].distance_m, want.distance_m, 1e-5f);
        if (fabs(slope - 0.8) < 1e-4 || fabs(slope - 0.5) < 1e-4 || fabs(fabs(want.distance_m) - 0.2) < 1e-5)
            continue; /* one rounding says yes, another no */
        ck_assert_uint_eq(got[i].status, want.status);
        for (int a = 0; a < 3; a++) {
            n += (double)got[i].gradient[a] * got[i].gradient[a];
            ck_assert_float_eq_tol(got[i].gradient[a], want.gradient[a], 1e-3f);
        }
        ck_assert_double_eq_tol(n, want.status & VX_Q_GRADIENT ? 1 : 0, 1e-5);
    }
    printf("scene %d: %d of %d near a surface, %d of them unknown; states %d %d %d\n", _i, near, N, mixed,
           states[0], states[1], states[2]);
    ck_assert_int_gt(near, N / 50);
    free(p);
    free(got);
    close_scene(&s);
}
END_TEST

/* ------------------------------------------------------------------ spheres */

/* Flags of a sphere of radius r (voxels) at v, by all voxels around it. */
static uint32_t reference_sphere(const struct scene *s, const double v[3], double r)
{
    uint32_t out = 0;
    int32_t lo[3], hi[3];

    for (int a = 0; a < 3; a++) {
        lo[a] = (int32_t)floor(v[a] - r) - 1;
        hi[a] = (int32_t)floor(v[a] + r) + 1;
    }
    for (int32_t x = lo[0]; x <= hi[0]; x++)
        for (int32_t y = lo[1]; y <= hi[1]; y++)
            for (int32_t z = lo[2]; z <= hi[2]; z++) {
                int32_t c[3] = {x, y, z};
                double cube = 0, centre = 0;
                uint32_t state = state_at(s, x, y, z);
                for (int a = 0; a < 3; a++) {
                    double gap = fmax(fmax(c[a] - v[a], v[a] - c[a] - 1), 0);
                    cube += gap * gap;
                    centre += (c[a] + 0.5 - v[a]) * (c[a] + 0.5 - v[a]);
                }
                if (state == VX_STATE_UNKNOWN && cube <= r * r)
                    out |= VX_Q_TOUCHES_UNKNOWN;
                if (state == VX_STATE_OCCUPIED && centre <= r * r)
                    out |= VX_Q_COLLIDES;
            }
    return out;
}

START_TEST(spheres)
{
    struct scene s = open_scene(_i, backend, 2);
    float(*p)[4] = malloc(N * sizeof *p);
    struct vx_point_answer *got = malloc(N * sizeof *got), want;
    struct vx_reply reply;
    struct vx_detail detail;
    double most = 0.1 * scenes[_i].radius;
    int hits = 0, touches = 0, both = 0, neither = 0;

    for (int i = 0; i < N; i++) {
        random_position(&s, p[i]);
        p[i][3] = (float)(most * pow(grid_fixture_uniform(&s.seed, 0, 1), 3));
    }
    p[0][0] = NAN;
    p[1][3] = 0;
    p[2][3] = (float)most;
    ck_assert_int_eq(vx_query_spheres(grid_fixture_map(s.f), NULL, s.origin, p[0], N, got, &reply, &detail),
                     VX_OK);
    ck_assert_uint_eq(got[0].status, VX_Q_OUTSIDE | VX_Q_TOUCHES_UNKNOWN);
    for (int i = 1; i < N; i++) {
        double v[3] = {to_voxels(&s, p[i][0], 0), to_voxels(&s, p[i][1], 1), to_voxels(&s, p[i][2], 2)},
               slope, r = p[i][3] / 0.1;
        uint32_t least = reference_sphere(&s, v, fmax(r - 1e-4, 0)),
                 largest = reference_sphere(&s, v, r + 1e-4), flags;
        reference_point(&s, v, &want, &slope);
        ck_assert_uint_eq(got[i].state, want.state);
        if (want.status & VX_Q_DISTANCE) {
            ck_assert_float_eq_tol(got[i].distance_m, want.distance_m - p[i][3], 1e-5f);
            least |= want.distance_m <= p[i][3] - 1e-5f ? VX_Q_COLLIDES : 0;
            largest |= want.distance_m <= p[i][3] + 1e-5f ? VX_Q_COLLIDES : 0;
        } else {
            ck_assert(isnan(got[i].distance_m));
        }
        flags = got[i].status & (VX_Q_TOUCHES_UNKNOWN | VX_Q_COLLIDES);
        ck_assert_msg((least & ~flags) == 0 && (flags & ~largest) == 0,
                      "sphere %d, r %g: flags %u, reference %u to %u", i, r, flags, least, largest);
        hits += flags == VX_Q_COLLIDES;
        touches += flags == VX_Q_TOUCHES_UNKNOWN;
        both += flags == (VX_Q_COLLIDES | VX_Q_TOUCHES_UNKNOWN);
        neither += flags == 0;
    }
    printf("scene %d: %d collide, %d touch unknown, %d both, %d neither\n", _i, hits, touches, both, neither);
    p[5][3] = (float)(most * 1.001);
    ck_assert_int_eq(vx_query_spheres(grid_fixture_map(s.f), NULL, s.origin, p[0], N, got, &reply, &detail),
                     VX_E_INVALID);
    ck_assert_str_eq(detail.field, "radius");
    ck_assert_ptr_nonnull(strstr(detail.text, "sphere 5"));
    p[5][3] = NAN;
    ck_assert_int_eq(vx_query_spheres(grid_fixture_map(s.f), NULL, s.origin, p[0], N, got, &reply, &detail),
                     VX_E_INVALID);
    p[5][3] = -1e-6f;
    ck_assert_int_eq(vx_query_spheres(grid_fixture_map(s.f), NULL, s.origin, p[0], N, got, &reply, &detail),
                     VX_E_INVALID);
    free(p);
    free(got);
    close_scene(&s);
}
END_TEST

/* A sphere of the largest R that the format has, in known free space with one unknown voxel. */
START_TEST(large_sphere)
{
    struct vx_map_params p = params_of(0, 63);
    struct grid_fixture *f = grid_fixture_create(backend, 2, &p, 0);
    float sphere[4] = {0, 0, 0, 6.3f};
    struct vx_point_answer got;
    struct vx_reply reply;
    struct vx_detail detail;
    double origin[3];

    for (int32_t x = -72; x < 72; x++)
        for (int32_t y = -72; y < 72; y++)
            for (int32_t z = -72; z < 72; z++)
                grid_fixture_set(f, x, y, z, VXK_FREE, 0);
    for (int a = 0; a < 3; a++)
        origin[a] = p.origin_m[a] + 0.05;
    for (int step = 0; step < 3; step++) {
        if (step == 1)
            grid_fixture_set(f, 36, -37, 36, VXK_UNKNOWN, 0); /* its cube is 62.7 voxels away at most */
        if (step == 2)
            grid_fixture_set(f, 20, -30, 40, VXK_ACTIVE,
                             vxk_tsdf_pack(-5, 1)); /* occupied without a surface in range */
        grid_fixture_publish(f);
        ck_assert_int_eq(
            vx_query_spheres(grid_fixture_map(f), NULL, origin, sphere, 1, &got, &reply, &detail), VX_OK);
        ck_assert_uint_eq(got.status, step == 0   ? 0
                                      : step == 1 ? VX_Q_TOUCHES_UNKNOWN
                                                  : VX_Q_TOUCHES_UNKNOWN | VX_Q_COLLIDES);
        ck_assert_uint_eq(got.state, VX_STATE_FREE);
        ck_assert(isnan(got.distance_m));
    }
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

/* ------------------------------------------------------------------ rays */

/* The field that rays see, at voxel coordinates v. */
static double reference_field(const struct scene *s, const double v[3])
{
    int32_t b[3];
    double f[3], sum = 0;
    uint32_t value;
    int whole = s->p.mode == VX_TSDF;

    for (int a = 0; a < 3; a++) {
        b[a] = (int32_t)floor(v[a] - 0.5);
        f[a] = v[a] - 0.5 - b[a];
    }
    for (int k = 0; k < 8 && whole; k++) {
        whole = grid_fixture_get(s->f, b[0] + (k >> 2), b[1] + (k >> 1 & 1), b[2] + (k & 1), &value) ==
                VXK_ACTIVE;
        sum += (int16_t)(value & 0xffff) * (k >> 2 ? f[0] : 1 - f[0]) * (k >> 1 & 1 ? f[1] : 1 - f[1]) *
               (k & 1 ? f[2] : 1 - f[2]);
    }
    if (whole)
        return sum;
    return state_at(s, (int32_t)floor(v[0]), (int32_t)floor(v[1]), (int32_t)floor(v[2])) == VX_STATE_OCCUPIED
               ? -1
               : 1;
}

static void along(const double o[3], const double d[3], double t, double v[3])
{
    for (int a = 0; a < 3; a++)
        v[a] = o[a] + t * d[a];
}

/* True when an unknown voxel is at t or beside it within rounding. */
static int unknown_near(const struct scene *s, const double o[3], const double d[3], double t)
{
    for (int k = 0; k < 27; k++) {
        double v[3];
        along(o, d, t, v);
        v[0] += (k / 9 - 1) * 1e-4;
        v[1] += (k / 3 % 3 - 1) * 1e-4;
        v[2] += (k % 3 - 1) * 1e-4;
        if (state_at(s, (int32_t)floor(v[0]), (int32_t)floor(v[1]), (int32_t)floor(v[2])) == VX_STATE_UNKNOWN)
            return 1;
    }
    return 0;
}

/* Walks the ray in small steps: *first = the first negative place, *sure = the first that stays negative for
 * a voxel, *unknown = the first unknown place; infinity when there is none. */
static void reference_ray(const struct scene *s, const double o[3], const double d[3], double end,
                          double *first, double *sure, double *unknown)
{
    double step = 1.0 / 64, run = -1;

    *first = *sure = *unknown = INFINITY;
    for (double t = 0; t <= end; t += step) {
        double v[3];
        along(o, d, t, v);
        if (*unknown > t &&
            state_at(s, (int32_t)floor(v[0]), (int32_t)floor(v[1]), (int32_t)floor(v[2])) == VX_STATE_UNKNOWN)
            *unknown = t;
        if (reference_field(s, v) >= 0) {
            run = -1;
            continue;
        }
        run = run < 0 ? t : run;
        *first = *first > t ? t : *first;
        if (t - run >= 1 && *sure > run)
            *sure = run;
    }
}

START_TEST(rays)
{
    struct scene s = open_scene(_i, backend, 2);
    enum { RAYS = 1500 };
    float(*p)[6] = malloc(RAYS * sizeof *p);
    struct vx_ray_answer *got = malloc(RAYS * sizeof *got);
    struct vx_reply reply;
    struct vx_detail detail;
    double end = 40;
    int hits = 0, free_ones = 0;

    for (int i = 0; i < RAYS; i++) {
        random_position(&s, p[i]);
        for (int a = 3; a < 6; a++)
            p[i][a] = (float)grid_fixture_uniform(&s.seed, -3, 3);
        if (i % 7 == 0)
            p[i][3] = p[i][4] = 0; /* along an axis */
    }
    ck_assert_int_eq(
        vx_query_rays(grid_fixture_map(s.f), NULL, s.origin, p[0], RAYS, end * 0.1, got, &reply, &detail),
        VX_OK);
    for (int i = 0; i < RAYS; i++) {
        double o[3], d[3], v[3], n = 0, first, sure, unknown, t = got[i].range_m / 0.1,
                                 u = got[i].unknown_from_m / 0.1;
        for (int a = 0; a < 3; a++) {
            o[a] = to_voxels(&s, p[i][a], a);
            n += (double)p[i][3 + a] * p[i][3 + a];
        }
        for (int a = 0; a < 3; a++)
            d[a] = p[i][3 + a] / sqrt(n);
        reference_ray(&s, o, d, end, &first, &sure, &unknown);
        if (got[i].state == VX_STATE_OCCUPIED) {
            double length = 0, facing = 0, least = 1;
            hits++;
            for (int k = -4; k <= 4;
                 k++) { /* the reference's steps can pass over a corner that the ray clips */
                along(o, d, t + k * 2.5e-4, v);
                least = fmin(least, reference_field(&s, v));
            }
            ck_assert_msg(least < 0, "ray %d: hit at %g, where nothing is negative; first negative place %g",
                          i, t, first);
            ck_assert_msg(t <= sure + 1.0 / 32, "ray %d: hit at %g, behind the surface at %g", i, t, sure);
            for (int a = 0; a < 3; a++) {
                length += (double)got[i].normal[a] * got[i].normal[a];
                facing += got[i].normal[a] * d[a];
            }
            ck_assert_double_eq_tol(length, 1, 1e-5);
            ck_assert_double_le(facing, 1e-5);
        } else {
            ck_assert(isnan(got[i].range_m) && got[i].normal[0] == 0);
            ck_assert_msg(sure > end, "ray %d: no hit, but a surface at %g", i, sure);
            ck_assert_uint_eq(got[i].state, isnan(got[i].unknown_from_m) ? VX_STATE_FREE : VX_STATE_UNKNOWN);
            free_ones += got[i].state == VX_STATE_FREE;
        }
        if (isnan(got[i].unknown_from_m)) {
            ck_assert_msg(unknown >= (isnan(t) ? end : t) - 1e-3, "ray %d: unknown at %g is not reported", i,
                          unknown);
        } else {
            ck_assert_msg(u <= unknown + 1e-3 && (isnan(t) || u <= t + 1e-3),
                          "ray %d: unknown from %g, reference %g", i, u, unknown);
            ck_assert_msg(unknown_near(&s, o, d, u), "ray %d: known at %g", i, u);
        }
    }
    printf("scene %d: %d of %d rays hit, %d free\n", _i, hits, RAYS, free_ones);
    ck_assert_int_gt(hits, RAYS / 100);
    ck_assert_int_eq(
        vx_query_rays(grid_fixture_map(s.f), NULL, s.origin, p[0], RAYS, 0, got, &reply, &detail),
        VX_E_INVALID);
    ck_assert_int_eq(
        vx_query_rays(grid_fixture_map(s.f), NULL, s.origin, p[0], RAYS, NAN, got, &reply, &detail),
        VX_E_INVALID);
    /* what is no ray is refused by its number: an answer could only say that nothing is there */
    for (int i = 0; i < 7; i++) {
        static const float bad[7] = {NAN, INFINITY, -INFINITY, NAN, INFINITY, -INFINITY, 0};
        float kept[6];
        memcpy(kept, p[7], sizeof kept);
        if (i < 6)
            p[7][i] = bad[i];
        else
            p[7][3] = p[7][4] = p[7][5] = 0;
        ck_assert_int_eq(
            vx_query_rays(grid_fixture_map(s.f), NULL, s.origin, p[0], RAYS, 4, got, &reply, &detail),
            VX_E_INVALID);
        ck_assert_str_eq(detail.field, "rays");
        ck_assert_msg(strstr(detail.text, "ray 7 ") != NULL, "%s", detail.text);
        memcpy(p[7], kept, sizeof kept);
    }
    free(p);
    free(got);
    close_scene(&s);
}
END_TEST

/* ------------------------------------------------------------------ a ball: against geometry */

START_TEST(ball)
{
    struct vx_map_params p = params_of(0, 10);
    struct grid_fixture *f = grid_fixture_create(backend, 2, &p, 0);
    const double centre[3] = {130.3, 126.8, -2.6}, radius = 14;
    float point[3], ray[6];
    struct vx_point_answer a;
    struct vx_ray_answer r;
    struct vx_detail detail;
    uint64_t seed = 3;

    random_map_ball(f, centre, radius, 4, 2000);
    grid_fixture_publish(f);
    for (int i = 0; i < 500; i++) {
        double d[3], n = 0, at = grid_fixture_uniform(&seed, -3, 9), dot = 0, facing = 0;
        for (int k = 0; k < 3; k++) {
            d[k] = grid_fixture_uniform(&seed, -1, 1);
            n += d[k] * d[k];
        }
        for (int k = 0; k < 3; k++) {
            d[k] /= sqrt(n);
            point[k] = (float)(0.1 * (centre[k] + (radius + at) * d[k]));
            ray[k] = (float)(0.1 * (centre[k] + (radius + 9) * d[k]));
            ray[3 + k] = (float)(-5 * d[k]);
        }
        ck_assert_int_eq(vx_query_points(grid_fixture_map(f), NULL, p.origin_m, point, 1, &a, NULL, &detail),
                         VX_OK);
        ck_assert_uint_eq(a.status, VX_Q_DISTANCE | VX_Q_GRADIENT);
        /* Sites are about a voxel apart, so the nearest one is farther than the surface, most so close to it.
         */
        ck_assert_double_eq_tol(a.distance_m, 0.1 * at, fabs(at) < 2 ? 0.03 : 0.015);
        if (fabs(at) > 0.5)
            ck_assert_uint_eq(a.state, at < 0 ? VX_STATE_OCCUPIED : VX_STATE_FREE);
        ck_assert_int_eq(vx_query_rays(grid_fixture_map(f), NULL, p.origin_m, ray, 1, 2.5, &r, NULL, &detail),
                         VX_OK);
        ck_assert_uint_eq(r.state, VX_STATE_OCCUPIED);
        ck_assert_double_eq_tol(r.range_m, 0.9, 0.004);
        for (int k = 0; k < 3; k++) {
            dot += a.gradient[k] * d[k];
            facing += r.normal[k] * d[k];
        }
        ck_assert_double_gt(dot, 0.9);
        ck_assert_double_gt(facing, 0.98);
    }
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

/* ------------------------------------------------------------------ sameness and limits */

START_TEST(same_everywhere)
{
    const struct {
        enum vxk_backend backend;
        int threads;
    } on[3] = {{backend, 1}, {VXK_CPU, 2}, {VXK_GUARD, 2}};
    struct {
        struct vx_point_answer points[N], spheres[N];
        struct vx_ray_answer rays[N];
    } *got = calloc(3, sizeof *got);
    float(*p)[6] = malloc(N * sizeof *p);

    ck_assert_ptr_nonnull(got);
    for (int i = 0; i < 3; i++) {
        struct scene s = open_scene(0, on[i].backend, on[i].threads);
        struct vx_map *map = grid_fixture_map(s.f);
        struct vx_detail detail;
        for (int k = 0; k < N; k++) {
            random_position(&s, p[k]);
            for (int a = 3; a < 6; a++)
                p[k][a] = (float)grid_fixture_uniform(
                    &s.seed, 0, 0.9); /* of p, any four floats are a sphere, three a point */
        }
        ck_assert_int_eq(vx_query_points(map, NULL, s.origin, p[0], N, got[i].points, NULL, &detail), VX_OK);
        ck_assert_int_eq(vx_query_rays(map, NULL, s.origin, p[0], N, 5, got[i].rays, NULL, &detail), VX_OK);
        for (int k = 0; k < N; k++)
            memmove((float *)p + 4 * k, p[k], 4 * sizeof(float));
        ck_assert_int_eq(vx_query_spheres(map, NULL, s.origin, p[0], N, got[i].spheres, NULL, &detail),
                         VX_OK);
        close_scene(&s);
        ck_assert_int_eq(memcmp(&got[0], &got[i], sizeof got[0]), 0);
    }
    free(got);
    free(p);
}
END_TEST

static bool give_up(void *context)
{
    return ++*(int *)context > 1;
}

START_TEST(slices_and_refusals)
{
    struct scene s = open_scene(1, backend, 2);
    uint32_t n = (1u << 20) + 7;
    float(*p)[3] = malloc(n * sizeof *p);
    struct vx_point_answer *got = malloc(n * sizeof *got), few[16];
    struct vx_query_options options = {.min_epoch = 2};
    struct vx_reply reply;
    struct vx_detail detail;
    double bad[3] = {0, NAN, 0};
    int asked = 0;

    for (uint32_t i = 0; i < n; i++)
        random_position(&s, p[i]);
    ck_assert_int_eq(vx_query_points(grid_fixture_map(s.f), NULL, s.origin, p[0], n, got, &reply, &detail),
                     VX_OK);
    ck_assert_int_eq(
        vx_query_points(grid_fixture_map(s.f), NULL, s.origin, p[n - 16], 16, few, &reply, &detail), VX_OK);
    ck_assert_int_eq(memcmp(got + n - 16, few, sizeof few), 0);
    ck_assert_int_eq(vx_query_points(grid_fixture_map(s.f), NULL, s.origin, NULL, 0, NULL, &reply, &detail),
                     VX_OK);
    ck_assert_int_eq(vx_query_points(grid_fixture_map(s.f), NULL, bad, p[0], 1, few, &reply, &detail),
                     VX_E_INVALID);
    ck_assert_str_eq(detail.field, "origin_m");
    ck_assert_int_eq(
        vx_query_points(grid_fixture_map(s.f), &options, s.origin, p[0], 1, few, &reply, &detail),
        VX_E_STALE);
    grid_fixture_publish(s.f);
    ck_assert_int_eq(
        vx_query_points(grid_fixture_map(s.f), &options, s.origin, p[0], 1, few, &reply, &detail), VX_OK);
    ck_assert_uint_eq(reply.epoch, 2);
    options = (struct vx_query_options){.cancelled = give_up, .context = &asked};
    ck_assert_int_eq(
        vx_query_points(grid_fixture_map(s.f), &options, s.origin, p[0], n, got, &reply, &detail),
        VX_E_CANCELLED);
    free(p);
    free(got);
    close_scene(&s);
}
END_TEST

int main(int argc, char **argv)
{
    TCase *t = tcase_create("query");

    backend = grid_fixture_backend(argc, argv);
    tcase_add_loop_test(t, points, 0, N_SCENES);
    tcase_add_loop_test(t, spheres, 0, N_SCENES);
    tcase_add_test(t, large_sphere);
    tcase_add_loop_test(t, rays, 0, N_SCENES);
    tcase_add_test(t, ball);
    tcase_add_test(t, same_everywhere);
    tcase_add_test(t, slices_and_refusals);
    return oracle_run(t);
}
