/* test_planning.c - paths, boxes, slices, the nearest unknown and explanations against slow references, and
 * what a planner must never see. */
#include "oracle_run.h"
#include "random_map.h"
#include "vx/planning.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static enum vxk_backend backend; /* under test; program's argument */

enum { RADIUS = 10 };

/* A map and where questions are asked. */
struct place {
    struct grid_fixture *f;
    struct vx_map *map;
    struct vx_map_params p;
    double origin[3];
    uint64_t seed;
    int32_t corner[3], size;
};

static const struct {
    int32_t corner[3], size;
    int style, occupancy;
} places[] = {{{-9, -9, -9}, 36, 2, 0},
              {{119, 117, 121}, 24, 1, 0},
              {{110, -15, 118}, 26, 1, 1},
              {{0, 0, 0}, 34, 3, 0}};
enum { N_PLACES = sizeof places / sizeof *places };

static struct place open_place(int i, enum vxk_backend on)
{
    struct place s = {.seed = 900 + (uint64_t)i, .size = places[i].size};

    s.p = (struct vx_map_params){.voxel_size_m = 0.1,
                                 .origin_m = {500000.5, 4000000.25, 100},
                                 .esdf_max_distance_m = 0.1 * RADIUS,
                                 .truncation_voxels = 3,
                                 .mode = places[i].occupancy ? VX_OCCUPANCY : VX_TSDF};
    memcpy(s.corner, places[i].corner, sizeof s.corner);
    s.f = grid_fixture_create(on, 2, &s.p, 0);
    s.map = grid_fixture_map(s.f);
    random_map_fill(s.f, &s.seed, s.corner, s.size, places[i].style);
    grid_fixture_publish(s.f);
    for (int a = 0; a < 3; a++)
        s.origin[a] = s.p.origin_m[a] + 0.1 * s.corner[a] - 1.0;
    return s;
}
static void close_place(struct place *s)
{
    ck_assert_uint_eq(grid_fixture_destroy(s->f), 0);
}
static float random_at(struct place *s)
{
    return (float)grid_fixture_uniform(&s->seed, 0, 0.1 * s->size + 2);
}
static double in_voxels(const struct place *s, double p, int a)
{
    return (p + (s->origin[a] - s->p.origin_m[a])) / s->p.voxel_size_m;
}
static uint32_t state_at(const struct place *s, int32_t x, int32_t y, int32_t z)
{
    uint32_t v;
    int kind = grid_fixture_get(s->f, x, y, z, &v), t = (int16_t)(v & 0xffff);

    if (kind == VXK_ACTIVE && s->p.mode == VX_OCCUPANCY)
        return t > 0 ? VX_STATE_OCCUPIED : t < 0 ? VX_STATE_FREE : VX_STATE_UNKNOWN;
    return kind == VXK_ACTIVE ? (t < 0 ? VX_STATE_OCCUPIED : VX_STATE_FREE)
           : kind == VXK_FREE ? VX_STATE_FREE
                              : VX_STATE_UNKNOWN;
}

/* ------------------------------------------------------------------ boxes */

START_TEST(boxes)
{
    enum { N = 300 };
    struct place s = open_place(_i, backend);
    static float box[N][6];
    struct vx_box_answer a[N];
    struct vx_reply reply;
    struct vx_detail detail;

    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++) {
            box[i][k] = random_at(&s);
            box[i][3 + k] = box[i][k] + (float)grid_fixture_uniform(&s.seed, 0, i % 3 ? 0.7 : 2.5);
            if (i % 7 == 0) /* sides on voxel borders */
                box[i][k] = 0.5f * floorf(2 * box[i][k]), box[i][3 + k] = box[i][k] + 0.5f * (float)(i % 4);
        }
    ck_assert_int_eq(vx_query_boxes(s.map, NULL, s.origin, box[0], N, a, &reply, &detail), VX_OK);
    for (int i = 0; i < N; i++) {
        uint64_t n[3] = {0, 0, 0};
        int32_t lo[3], hi[3];
        for (int k = 0; k < 3; k++) {
            double from = in_voxels(&s, (double)box[i][k], k), to = in_voxels(&s, (double)box[i][3 + k], k);
            lo[k] = (int32_t)floor(from);
            hi[k] = (int32_t)floor(to);
            if (hi[k] == to && hi[k] > lo[k])
                hi[k]--;
        }
        for (int32_t x = lo[0]; x <= hi[0]; x++)
            for (int32_t y = lo[1]; y <= hi[1]; y++)
                for (int32_t z = lo[2]; z <= hi[2]; z++)
                    n[state_at(&s, x, y, z)]++;
        if (a[i].n_free != n[VX_STATE_FREE] || a[i].n_occupied != n[VX_STATE_OCCUPIED] ||
            a[i].n_unknown != n[VX_STATE_UNKNOWN] || a[i].status)
            ck_abort_msg("box %d: %llu free %llu occupied %llu unknown, brute force %llu %llu %llu", i,
                         (unsigned long long)a[i].n_free, (unsigned long long)a[i].n_occupied,
                         (unsigned long long)a[i].n_unknown, (unsigned long long)n[VX_STATE_FREE],
                         (unsigned long long)n[VX_STATE_OCCUPIED], (unsigned long long)n[VX_STATE_UNKNOWN]);
    }
    close_place(&s);
}
END_TEST

/* ------------------------------------------------------------------ unknown, explanations */

static double nearest_unknown(const struct place *s, const float p[3])
{
    double v[3], best = 1e30;
    int32_t c[3];

    for (int a = 0; a < 3; a++) {
        v[a] = in_voxels(s, (double)p[a], a);
        c[a] = (int32_t)floor(v[a]);
    }
    for (int32_t x = c[0] - RADIUS - 1; x <= c[0] + RADIUS + 1; x++)
        for (int32_t y = c[1] - RADIUS - 1; y <= c[1] + RADIUS + 1; y++)
            for (int32_t z = c[2] - RADIUS - 1; z <= c[2] + RADIUS + 1; z++) {
                int32_t q[3] = {x, y, z};
                double d = 0;
                if (state_at(s, x, y, z) != VX_STATE_UNKNOWN)
                    continue;
                for (int a = 0; a < 3; a++) {
                    double gap = fmax(fmax(q[a] - v[a], v[a] - (q[a] + 1)), 0);
                    d += gap * gap;
                }
                best = fmin(best, d);
            }
    return sqrt(best);
}

START_TEST(unknown_and_why)
{
    enum { N = 400 };
    struct place s = open_place(_i, backend);
    static float p[N][3], d[N];
    static struct vx_explanation e[N];
    static struct vx_point_answer a[N];
    static struct vx_point_unknown_answer both[N];
    struct vx_reply reply;
    struct vx_detail detail;
    int n_within = 0, n_why[5] = {0};

    for (int i = 0; i < N; i++)
        for (int k = 0; k < 3; k++)
            p[i][k] = random_at(&s);
    p[0][1] = NAN;
    p[1][2] = 3e7f;
    ck_assert_int_eq(vx_query_unknown(s.map, NULL, s.origin, p[0], N, d, &reply, &detail), VX_OK);
    ck_assert_int_eq(vx_query_explain(s.map, NULL, s.origin, p[0], N, e, &reply, &detail), VX_OK);
    ck_assert_int_eq(vx_query_points(s.map, NULL, s.origin, p[0], N, a, &reply, &detail), VX_OK);
    ck_assert_int_eq(vx_query_points_unknown(s.map, NULL, s.origin, p[0], N, both, &reply, &detail), VX_OK);
    for (int i = 0; i < N; i++)
        ck_assert(memcmp(&both[i].answer, &a[i], sizeof a[i]) == 0 &&
                  memcmp(&both[i].unknown_distance_m, &d[i], sizeof d[i]) == 0);
    ck_assert(d[0] == 0 && d[1] == 0 && e[0].why == VX_WHY_OUTSIDE && e[1].why == VX_WHY_OUTSIDE);
    for (int i = 2; i < N; i++) {
        double want = nearest_unknown(&s, p[i]);
        uint32_t v, why, kind;
        int32_t c[3];
        ck_assert(memcmp(&e[i].answer, &a[i], sizeof a[i]) == 0);
        ck_assert(memcmp(&e[i].unknown_distance_m, &d[i], sizeof d[i]) == 0);
        if (want <= RADIUS - 1e-4) {
            n_within++;
            ck_assert_double_eq_tol(d[i], 0.1 * want, 1e-5);
        } else if (want > RADIUS + 1e-4) {
            ck_assert(isnan(d[i]));
        }
        for (int k = 0; k < 3; k++) {
            c[k] = (int32_t)floor(in_voxels(&s, (double)p[i][k], k));
            ck_assert_int_eq(e[i].voxel[k], c[k]);
        }
        kind = (uint32_t)grid_fixture_get(s.f, c[0], c[1], c[2], &v);
        why = kind == VXK_ACTIVE ? VX_WHY_MEASURED : kind == VXK_FREE ? VX_WHY_SEEN_EMPTY : VX_WHY_NEVER_SEEN;
        if (e[i].why == VX_WHY_FREE_CELL)
            for (int k = 0; k < 512; k++)
                ck_assert_int_eq(grid_fixture_get(s.f, (c[0] & ~7) + (k >> 6), (c[1] & ~7) + (k >> 3 & 7),
                                                  (c[2] & ~7) + (k & 7), &v),
                                 VXK_FREE);
        else
            ck_assert_uint_eq(e[i].why, why);
        n_why[e[i].why]++;
        if (kind != VXK_ACTIVE)
            continue;
        ck_assert_uint_eq(e[i].weight, s.p.mode == VX_OCCUPANCY ? 0 : v >> 16 & 255);
        ck_assert_double_eq_tol(
            e[i].value, (int16_t)(v & 0xffff) * (s.p.mode == VX_OCCUPANCY ? 1 / 1024.0 : 0.3 / 32767), 1e-6);
        ck_assert_uint_eq(e[i].changed_epoch, 1);
    }
    printf("place %d: %d within R of unknown; why: %d never seen, %d empty, %d free cell, %d measured\n", _i,
           n_within, n_why[1], n_why[2], n_why[3], n_why[4]);
    close_place(&s);
}
END_TEST

/* ------------------------------------------------------------------ slices */

static void check_slice(struct place *s, const struct vx_slice *q)
{
    struct vx_slice_cell *cell = calloc((size_t)q->n_x * q->n_y, sizeof *cell);
    struct vx_reply reply;
    struct vx_detail detail;
    double edge = q->cell_m > 0 ? q->cell_m : 0.1, lo = in_voxels(s, q->min_z_m, 2),
           hi = in_voxels(s, q->max_z_m, 2);
    uint32_t count[4] = {0, 0, 0, 0};

    ck_assert_int_eq(vx_query_slice(s->map, NULL, s->origin, q, cell, &reply, &detail), VX_OK);
    for (uint32_t i = 0; i < q->n_x * q->n_y; i++) {
        double least = 1e30;
        uint32_t states = 0, cost;
        int32_t from = (int32_t)floor(lo), to = (int32_t)floor(hi);
        if (to == hi && to > from)
            to--;
        for (int32_t z = from; z <= (lo < hi ? to : from); z++) {
            /* asked from an origin at the very place, so that single precision changes nothing */
            double at[3] = {s->origin[0] + (i % q->n_x + 0.5) * edge,
                            s->origin[1] + (i / q->n_x + 0.5) * edge,
                            lo < hi ? s->p.origin_m[2] + (z + 0.5) * 0.1 : s->origin[2] + q->min_z_m};
            float zero[3] = {0, 0, 0};
            struct vx_point_answer a;
            ck_assert_int_eq(vx_query_points(s->map, NULL, at, zero, 1, &a, &reply, &detail), VX_OK);
            states |= 1u << a.state;
            if (a.status & VX_Q_DISTANCE)
                least = fmin(least, a.distance_m);
        }
        if (fabs(least - q->inscribed_m) < 1e-5)
            continue;
        cost = states >> VX_STATE_OCCUPIED & 1                     ? VX_COST_OCCUPIED
               : least <= q->inscribed_m                           ? VX_COST_INSCRIBED
               : (states & 1) && q->unknown == VX_UNKNOWN_OCCUPIED ? VX_COST_OCCUPIED
               : (states & 1) && q->unknown == VX_UNKNOWN_REPORT   ? VX_COST_UNKNOWN
                                                                   : VX_COST_FREE;
        if (cell[i].cost != cost || cell[i].states != states ||
            (least < 1e29 ? !(fabs(cell[i].distance_m - least) < 1e-5) : !isnan(cell[i].distance_m)))
            ck_abort_msg("cell %u: cost %u states %u distance %g, reference %u %u %g", i, cell[i].cost,
                         cell[i].states, (double)cell[i].distance_m, cost, states, least);
        count[cost == 0 ? 0 : cost == 253 ? 1 : cost == 254 ? 2 : 3]++;
    }
    printf("slice %u x %u: %u free, %u inscribed, %u occupied, %u unknown\n", q->n_x, q->n_y, count[0],
           count[1], count[2], count[3]);
    free(cell);
}

START_TEST(slices)
{
    struct place s = open_place(_i, backend);
    const struct vx_slice q[] = {
        {.n_x = 40, .n_y = 30, .min_z_m = 1.73, .max_z_m = 1.73, .inscribed_m = 0.2},
        {.n_x = 20, .n_y = 20, .cell_m = 0.17, .min_z_m = 1.2, .max_z_m = 2.03, .unknown = VX_UNKNOWN_FREE},
        {.n_x = 17,
         .n_y = 25,
         .min_z_m = 1.0,
         .max_z_m = 1.31,
         .unknown = VX_UNKNOWN_OCCUPIED,
         .inscribed_m = 0.05}};

    for (size_t k = 0; k < sizeof q / sizeof *q; k++)
        check_slice(&s, &q[k]);
    close_place(&s);
}
END_TEST

/* ------------------------------------------------------------------ paths */

/* Where a sphere is at place t of a path, in doubles. */
static void sphere_at(const float *pose, uint32_t n_way, const float *sphere, double t, double out[3])
{
    uint32_t w = n_way > 1 ? (uint32_t)fmin(floor(t), n_way - 2) : 0;
    const float *p = pose + 7 * w, *r = n_way > 1 ? p + 7 : p;
    double s = t - w, q[4], n = 0, dot = 0, u[3];

    for (int k = 3; k < 7; k++)
        dot += (double)p[k] * (double)r[k];
    for (int k = 0; k < 4; k++) {
        q[k] = (1 - s) * (double)p[3 + k] + s * (dot < 0 ? -1 : 1) * (double)r[3 + k];
        n += q[k] * q[k];
    }
    for (int k = 0; k < 4; k++)
        q[k] /= sqrt(n);
    for (int k = 0; k < 3; k++) {
        int x = (k + 1) % 3, y = (k + 2) % 3;
        u[k] = 2 * (q[x] * (double)sphere[y] - q[y] * (double)sphere[x]);
    }
    for (int k = 0; k < 3; k++) {
        int x = (k + 1) % 3, y = (k + 2) % 3;
        out[k] = (double)p[k] + s * ((double)r[k] - (double)p[k]) + (double)sphere[k] + q[3] * u[k] +
                 (q[x] * u[y] - q[y] * u[x]);
    }
}
static struct vx_point_answer ask_sphere(struct place *s, const double at[3], double radius)
{
    float q[4] = {(float)at[0], (float)at[1], (float)at[2], (float)radius};
    struct vx_point_answer a;
    struct vx_reply reply;
    struct vx_detail detail;

    ck_assert_int_eq(vx_query_spheres(s->map, NULL, s->origin, q, 1, &a, &reply, &detail), VX_OK);
    return a;
}
/* In contact by the definition of paths: the distance, or an occupied voxel at the centre. */
static int touches(const struct vx_point_answer *a, double slack)
{
    return ((a->status & VX_Q_DISTANCE) && a->distance_m <= slack) || a->state == VX_STATE_OCCUPIED;
}

enum { N_SPHERES = 5, N_WAY = 4, STEPS = 160 /* of the reference between way-points */ };

static void random_robot(struct place *s, float sphere[N_SPHERES][4])
{
    for (int i = 0; i < N_SPHERES; i++) {
        for (int k = 0; k < 3; k++)
            sphere[i][k] = (float)grid_fixture_uniform(&s->seed, -0.3, 0.3);
        sphere[i][3] = (float)grid_fixture_uniform(&s->seed, i ? 0.02 : 0, 0.25);
    }
    sphere[0][3] = 0; /* a point */
}
static void random_pose(struct place *s, float *pose)
{
    float n = 0;

    for (int k = 0; k < 3; k++)
        pose[k] = random_at(s);
    for (int k = 3; k < 7; k++) {
        pose[k] = (float)grid_fixture_uniform(&s->seed, -1, 1);
        n += pose[k] * pose[k];
    }
    for (int k = 3; k < 7; k++)
        pose[k] /= sqrtf(n);
}

/* Samples a path finely and holds the answer against it.  In these maps occupied voxels have unknown
 * neighbours, so that a step of up to a voxel may pass a border before it is seen: `late` is what it goes
 * meanwhile. */
static void check_path(struct place *s, const struct vx_paths *paths, const float *pose,
                       const struct vx_path_answer *a, int id)
{
    uint32_t n_steps = paths->n_waypoints > 1 ? (paths->n_waypoints - 1) * STEPS : 0;
    double deep = 1e30, unknown = 1e30, least = 1e30, at[3], before[3], late = 0;
    static float asked[(N_WAY * STEPS + 1) * N_SPHERES][4];
    static struct vx_point_answer answer[(N_WAY * STEPS + 1) * N_SPHERES];
    struct vx_reply reply;
    struct vx_detail detail;

    for (uint32_t k = 0; k <= n_steps; k++)
        for (uint32_t i = 0; i < paths->n_spheres; i++) {
            float *q = asked[k * paths->n_spheres + i];
            sphere_at(pose, paths->n_waypoints, paths->spheres + 4 * i, (double)k / STEPS, at);
            for (int a3 = 0; a3 < 3; a3++)
                q[a3] = (float)at[a3];
            q[3] = paths->spheres[4 * i + 3];
        }
    ck_assert_int_eq(vx_query_spheres(s->map, NULL, s->origin, asked[0], (n_steps + 1) * paths->n_spheres,
                                      answer, &reply, &detail),
                     VX_OK);
    for (uint32_t k = 0; k <= n_steps; k++) {
        double t = (double)k / STEPS;
        for (uint32_t i = 0; i < paths->n_spheres; i++) {
            sphere_at(pose, paths->n_waypoints, paths->spheres + 4 * i, t, at);
            struct vx_point_answer p = answer[k * paths->n_spheres + i];
            if (touches(&p, -0.02) && t < deep) { /* deeper than an eighth of a voxel and rounding */
                deep = t;
                sphere_at(pose, paths->n_waypoints, paths->spheres + 4 * i, fmax(t - 1.0 / STEPS, 0), before);
                late = 0.1 / STEPS /
                       fmax(sqrt(pow(at[0] - before[0], 2) + pow(at[1] - before[1], 2) +
                                 pow(at[2] - before[2], 2)),
                            1e-4);
            }
            if ((p.status & VX_Q_TOUCHES_UNKNOWN) && t < unknown)
                unknown = t;
            if (p.status & VX_Q_DISTANCE)
                least = fmin(least, p.distance_m);
        }
    }
    if (deep < 1e29 && paths->unknown != VX_UNKNOWN_FREE && !(a->contact <= deep + 1e-3 + late))
        ck_abort_msg("path %d: contact at %g, the reference is inside at %g", id, (double)a->contact, deep);
    if (a->status & VX_Q_COLLIDES) {
        ck_assert_uint_lt(a->sphere, paths->n_spheres);
        sphere_at(pose, paths->n_waypoints, paths->spheres + 4 * a->sphere, (double)a->contact, at);
        struct vx_point_answer p = ask_sphere(s, at, (double)paths->spheres[4 * a->sphere + 3]);
        if (!touches(&p, 1e-3) && !(paths->unknown == VX_UNKNOWN_OCCUPIED && a->unknown <= a->contact))
            ck_abort_msg("path %d: no contact at %g", id, (double)a->contact);
    } else {
        ck_assert(isnan(a->contact) && a->sphere == 0xffffffffu);
    }
    if (paths->unknown == VX_UNKNOWN_REPORT && unknown < 1e29 && !(a->contact < unknown) &&
        !(a->unknown <= unknown + 1e-3))
        ck_abort_msg("path %d: unknown at %g, the reference meets it at %g", id, (double)a->unknown, unknown);
    ck_assert_int_eq(!isnan(a->unknown), (a->status & VX_Q_TOUCHES_UNKNOWN) != 0);
    if (paths->n_waypoints == 1 && !(a->status & VX_Q_COLLIDES) && least < 1e29)
        ck_assert_double_eq_tol(a->clearance_m, least, 1e-4);
}

START_TEST(paths)
{
    enum { N = 24 };
    struct place s = open_place(_i, backend);
    float sphere[N_SPHERES][4];
    static float pose[N][N_WAY][7];
    struct vx_path_answer a[N];
    struct vx_reply reply;
    struct vx_detail detail;
    int n_hit = 0, n_unknown = 0;

    for (int round = 0; round < 4; round++) {
        struct vx_paths q = {.spheres = sphere[0],
                             .n_spheres = N_SPHERES,
                             .n_waypoints = round == 3 ? 1 : N_WAY,
                             .unknown = (enum vx_unknown)(round % 3)};
        random_robot(&s, sphere);
        for (int i = 0; i < N; i++)
            for (int w = 0; w < N_WAY; w++) {
                random_pose(&s, pose[i][w]);
                for (int k = 0; w && k < 3 && i % 2; k++) /* short steps, and turns on the spot */
                    pose[i][w][k] = pose[i][w - 1][k] + (i % 4 == 1 ? 0.0f : 0.1f * (float)(k + i % 3));
            }
        ck_assert_int_eq(vx_query_paths(s.map, NULL, s.origin, &q, pose[0][0], N, a, &reply, &detail), VX_OK);
        for (int i = 0; i < N; i++) {
            n_hit += (a[i].status & VX_Q_COLLIDES) != 0;
            n_unknown += (a[i].status & VX_Q_TOUCHES_UNKNOWN) != 0;
            if (round == 1)
                ck_assert(isnan(a[i].unknown));
            check_path(&s, &q, pose[0][0] + (size_t)i * q.n_waypoints * 7, &a[i], round * 100 + i);
        }
    }
    printf("place %d: of %d paths %d touch, %d meet unknown\n", _i, 4 * N, n_hit, n_unknown);
    close_place(&s);
}
END_TEST

/* Straight and turning ways past and through a ball and a thin wall, of which the truth is known: contact
 * where it is, and a clearance that is never too good. */
START_TEST(nothing_between_waypoints_is_missed)
{
    enum { N = 300 };
    struct vx_map_params p = {.voxel_size_m = 0.1, .esdf_max_distance_m = 1, .truncation_voxels = 3};
    struct grid_fixture *f = grid_fixture_create(backend, 2, &p, 0);
    const float sphere[2][4] = {{0.2f, 0, 0, 0.05f}, {-0.1f, 0.1f, 0, 0.2f}};
    static float pose[N][2][7];
    struct vx_path_answer a[N];
    struct vx_reply reply;
    struct vx_detail detail;
    uint64_t seed = 77;
    int n_hit = 0, n_clear = 0;

    for (int32_t x = -10; x < 100; x++)
        for (int32_t y = -10; y < 60; y++)
            for (int32_t z = -10; z < 60; z++) {
                int32_t d = x - 60; /* one voxel of wall */
                grid_fixture_set(f, x, y, z, VXK_FREE, 0);
                if (d >= -1 && d <= 1)
                    grid_fixture_set(f, x, y, z, VXK_ACTIVE, vxk_tsdf_pack(d ? 10922 : -5000, 3));
            }
    for (int32_t x = 0; x < 50; x++)
        for (int32_t y = 0; y < 50; y++)
            for (int32_t z = 0; z < 50; z++) {
                double d = sqrt(pow(x + 0.5 - 25, 2) + pow(y + 0.5 - 25, 2) + pow(z + 0.5 - 25, 2)) - 8;
                if (d > -3 && d < 3)
                    grid_fixture_set(f, x, y, z, VXK_ACTIVE, vxk_tsdf_pack((int32_t)(d * 10922), 3));
            }
    grid_fixture_publish(f);
    for (int i = 0; i < N; i++)
        for (int w = 0; w < 2; w++) {
            double yaw = grid_fixture_uniform(&seed, -3.1, 3.1);
            int same_side = i % 3 == 0; /* those that need not touch anything */
            pose[i][w][0] =
                (float)grid_fixture_uniform(&seed, w && !same_side ? 5.2 : 0.5, w && !same_side ? 8.5 : 1.5);
            pose[i][w][1] = (float)grid_fixture_uniform(&seed, 0.5, 4.5);
            pose[i][w][2] = (float)grid_fixture_uniform(&seed, 0.5, 4.5);
            pose[i][w][5] = (float)sin(yaw / 2);
            pose[i][w][6] = (float)cos(yaw / 2);
        }
    for (int mode = 0; mode < 3; mode++) {
        const struct vx_paths q = {
            .spheres = sphere[0], .n_spheres = 2, .n_waypoints = 2, .unknown = (enum vx_unknown)mode};
        ck_assert_int_eq(
            vx_query_paths(grid_fixture_map(f), NULL, p.origin_m, &q, pose[0][0], N, a, &reply, &detail),
            VX_OK);
        for (int i = 0; i < N; i++) {
            double first = 1e30, least = 1e30, at[3];
            ck_assert_uint_eq(a[i].status & VX_Q_OUTSIDE, 0);
            for (int k = 0; k <= 2000; k++)
                for (int j = 0; j < 2; j++) {
                    sphere_at(pose[i][0], 2, sphere[j], k / 2000.0, at);
                    double ball = sqrt(pow(at[0] - 2.5, 2) + pow(at[1] - 2.5, 2) + pow(at[2] - 2.5, 2)) - 0.8,
                           wall = fmax(6.0 - at[0], at[0] - 6.1), d = fmin(ball, wall) - (double)sphere[j][3];
                    least = fmin(least, d);
                    if (d <= -0.06 && k / 2000.0 < first) /* the field itself is off by up to half a voxel */
                        first = k / 2000.0;
                }
            if (first < 1e29 && !(a[i].contact <= first + 1e-3))
                ck_abort_msg("mode %d path %d: contact at %g, truth %g", mode, i, (double)a[i].contact,
                             first);
            if (least > 0.06 && (a[i].status & VX_Q_COLLIDES))
                ck_abort_msg("mode %d path %d: contact at %g, but the clearance is %g", mode, i,
                             (double)a[i].contact, least);
            if (!(a[i].status & VX_Q_COLLIDES) && least < 0.7) {
                ck_assert_double_le(a[i].clearance_m, least + 0.05);
                ck_assert_double_ge(a[i].clearance_m, 0.5 * least - 0.06);
                n_clear++;
            }
            n_hit += (a[i].status & VX_Q_COLLIDES) != 0;
        }
    }
    printf("%d paths touch, the clearance of %d is known\n", n_hit, n_clear);
    ck_assert(n_hit > N && n_clear > 10);
    ck_assert_uint_eq(grid_fixture_destroy(f), 0);
}
END_TEST

/* ------------------------------------------------------------------ what a planner must never see */

START_TEST(nightmares)
{
    struct place s = open_place(0, backend);
    float sphere[4] = {0, 0, 0, 0.1f};
    struct vx_paths q = {.spheres = sphere, .n_spheres = 1, .n_waypoints = 2};
    float pose[4][2][7], box[1][6] = {{-3e7f, 0, 0, -2.9999999e7f, 1, 1}};
    struct vx_path_answer a[4];
    struct vx_box_answer b[1];
    struct vx_slice slice = {.n_x = 4, .n_y = 4, .min_z_m = 0, .max_z_m = 1};
    struct vx_slice_cell cell[16];
    struct vx_query_options future = {.min_epoch = 99};
    struct vx_reply reply;
    struct vx_detail detail;
    double far[3] = {1e9, 1e9, 1e9}, bad[3] = {0, NAN, 0};

    memset(pose, 0, sizeof pose);
    for (int i = 0; i < 4; i++)
        for (int w = 0; w < 2; w++)
            pose[i][w][6] = 1;
    pose[0][1][1] = NAN;
    pose[1][0][6] = 0.5f; /* no rotation */
    pose[2][1][0] = 1e6f; /* too far a way */
    /* path 3 stands still in unknown space */
    q.unknown = VX_UNKNOWN_OCCUPIED;
    ck_assert_int_eq(vx_query_paths(s.map, NULL, s.origin, &q, pose[0][0], 4, a, &reply, &detail), VX_OK);
    for (int i = 0; i < 3; i++) { /* what can't be judged counts as unknown space does */
        ck_assert_uint_eq(a[i].status, VX_Q_OUTSIDE | VX_Q_TOUCHES_UNKNOWN | VX_Q_COLLIDES);
        ck_assert(a[i].contact == 0 && a[i].unknown == 0 && isnan(a[i].clearance_m));
    }
    for (int unknown = VX_UNKNOWN_REPORT; unknown <= VX_UNKNOWN_FREE; unknown++) {
        q.unknown = (enum vx_unknown)unknown;
        ck_assert_int_eq(vx_query_paths(s.map, NULL, s.origin, &q, pose[0][0], 3, a, &reply, &detail), VX_OK);
        for (int i = 0; i < 3; i++) {
            ck_assert_uint_eq(a[i].status, VX_Q_OUTSIDE | VX_Q_TOUCHES_UNKNOWN);
            ck_assert(isnan(a[i].contact) && a[i].unknown == 0);
        }
    }
    q.unknown = VX_UNKNOWN_OCCUPIED;
    ck_assert_int_eq(vx_query_paths(s.map, NULL, s.origin, &q, pose[0][0], 4, a, &reply, &detail), VX_OK);
    ck_assert_uint_eq(a[3].status & VX_Q_COLLIDES, VX_Q_COLLIDES);
    ck_assert(a[3].contact == 0 && a[3].unknown == 0);
    /* far away everything is outside or unknown, and nothing is free */
    ck_assert_int_eq(vx_query_paths(s.map, NULL, far, &q, pose[3][0], 1, a, &reply, &detail), VX_OK);
    ck_assert_uint_eq(a[0].status, VX_Q_OUTSIDE | VX_Q_TOUCHES_UNKNOWN | VX_Q_COLLIDES);
    ck_assert_int_eq(vx_query_slice(s.map, NULL, far, &slice, cell, &reply, &detail), VX_OK);
    for (int i = 0; i < 16; i++)
        ck_assert(cell[i].cost == VX_COST_UNKNOWN && isnan(cell[i].distance_m));
    ck_assert_int_eq(vx_query_boxes(s.map, NULL, s.origin, box[0], 1, b, &reply, &detail), VX_OK);
    ck_assert_uint_eq(b[0].status, VX_Q_OUTSIDE);
    ck_assert_uint_eq(b[0].n_free + b[0].n_occupied, 0);
    /* behind each border: every voxel counts once, and those at the border not at all */
    for (int k = 0; k < 6; k++) {
        uint64_t all = 1;
        for (int axis = 0; axis < 3; axis++) {
            box[0][axis] = axis != k / 2 ? 0 : k % 2 ? 3e7f : -3e7f - 6;
            box[0][3 + axis] = axis != k / 2 ? 1 : box[0][axis] + 6;
            const double from = in_voxels(&s, (double)box[0][axis], axis),
                         to = in_voxels(&s, (double)box[0][3 + axis], axis);
            all *= (uint64_t)(ceil(to) - floor(from));
        }
        ck_assert_int_eq(vx_query_boxes(s.map, NULL, s.origin, box[0], 1, b, &reply, &detail), VX_OK);
        ck_assert_uint_eq(b[0].status, VX_Q_OUTSIDE);
        ck_assert_uint_eq(b[0].n_free + b[0].n_occupied, 0);
        ck_assert_uint_eq(b[0].n_unknown, all);
    }
    /* empty batches */
    ck_assert_int_eq(vx_query_paths(s.map, NULL, s.origin, &q, NULL, 0, NULL, &reply, &detail), VX_OK);
    ck_assert_int_eq(vx_query_boxes(s.map, NULL, s.origin, NULL, 0, NULL, &reply, &detail), VX_OK);
    slice.n_x = 0;
    ck_assert_int_eq(vx_query_slice(s.map, NULL, s.origin, &slice, NULL, &reply, &detail), VX_OK);
    /* refusals change nothing and say which field */
    sphere[3] = 1.2f;
    ck_assert_int_eq(vx_query_paths(s.map, NULL, s.origin, &q, pose[0][0], 1, a, &reply, &detail),
                     VX_E_INVALID);
    ck_assert_str_eq(detail.field, "radius");
    sphere[3] = NAN;
    ck_assert_int_eq(vx_query_paths(s.map, NULL, s.origin, &q, pose[0][0], 1, a, &reply, &detail),
                     VX_E_INVALID);
    sphere[3] = 0;
    q.n_waypoints = 0;
    ck_assert_int_eq(vx_query_paths(s.map, NULL, s.origin, &q, pose[0][0], 1, a, &reply, &detail),
                     VX_E_INVALID);
    ck_assert_str_eq(detail.field, "n_waypoints");
    q.n_waypoints = 2;
    ck_assert_int_eq(vx_query_paths(s.map, NULL, bad, &q, pose[0][0], 1, a, &reply, &detail), VX_E_INVALID);
    ck_assert_int_eq(vx_query_paths(s.map, &future, s.origin, &q, pose[0][0], 1, a, &reply, &detail),
                     VX_E_STALE);
    slice = (struct vx_slice){.n_x = 1u << 31, .n_y = 2};
    ck_assert_int_eq(vx_query_slice(s.map, NULL, s.origin, &slice, cell, &reply, &detail), VX_E_INVALID);
    slice = (struct vx_slice){.n_x = 1, .n_y = 1, .min_z_m = 2, .max_z_m = 1};
    ck_assert_int_eq(vx_query_slice(s.map, NULL, s.origin, &slice, cell, &reply, &detail), VX_E_INVALID);
    close_place(&s);
}
END_TEST

/* Ten million points are split, not refused, and the last is answered like the first. */
START_TEST(ten_million)
{
    enum { N = 10000000 };
    struct place s = open_place(0, backend);
    float *p = malloc(N * 3ull * sizeof *p);
    struct vx_point_answer *a = malloc(N * sizeof *a);
    struct vx_reply reply;
    struct vx_detail detail;

    ck_assert(p && a);
    for (uint32_t i = 0; i < N; i++)
        for (uint32_t k = 0; k < 3; k++)
            p[3ull * i + k] = (float)((i % 1000 * 7 + k * 131) % 560) * 0.01f;
    ck_assert_int_eq(vx_query_points(s.map, NULL, s.origin, p, N, a, &reply, &detail), VX_OK);
    for (uint32_t i = 1000; i < N; i++)
        if (memcmp(&a[i], &a[i % 1000], sizeof *a) != 0)
            ck_abort_msg("item %u is not answered like item %u", i, i % 1000);
    free(p);
    free(a);
    close_place(&s);
}
END_TEST

static bool give_up(void *context)
{
    uint32_t *left = context;
    return !(*left)--;
}

/* Batches that go to the device in parts: each is answered as if it were alone, and between them the question
 * can be given up. */
START_TEST(parts)
{
    enum { N = 4000, DIFFERENT = 40, N_PARTS_SPHERES = 20 }; /* 80,000 elements, 16,384 at first */
    struct place s = open_place(0, backend);
    static float pose[N][2][7], sphere[N_PARTS_SPHERES][4], box[N][6];
    static struct vx_path_answer path[N];
    static struct vx_box_answer in_box[N];
    const struct vx_paths q = {.spheres = sphere[0], .n_spheres = N_PARTS_SPHERES, .n_waypoints = 2};
    uint32_t left = UINT32_MAX;
    const struct vx_query_options options = {.cancelled = give_up, .context = &left};
    struct vx_reply reply;
    struct vx_detail detail;

    for (int i = 0; i < N_PARTS_SPHERES; i++) {
        sphere[i][0] = 0.02f * (float)i;
        sphere[i][3] = 0.1f;
    }
    for (int i = 0; i < N; i++) {
        for (int k = 0; k < 2 && i < DIFFERENT; k++)
            random_pose(&s, pose[i][k]);
        for (int a = 0; a < 3 && i < DIFFERENT; a++) {
            box[i][a] = random_at(&s);
            box[i][3 + a] = box[i][a] + 1.4f; /* some twenty cells each: 16,384 at once */
        }
        memcpy(pose[i], pose[i % DIFFERENT], sizeof pose[i]);
        memcpy(box[i], box[i % DIFFERENT], sizeof box[i]);
    }
    ck_assert_int_eq(vx_query_paths(s.map, &options, s.origin, &q, pose[0][0], N, path, &reply, &detail),
                     VX_OK);
    ck_assert_int_eq(vx_query_boxes(s.map, &options, s.origin, box[0], N, in_box, &reply, &detail), VX_OK);
    for (int i = DIFFERENT; i < N; i++) {
        ck_assert(memcmp(&path[i], &path[i % DIFFERENT], sizeof *path) == 0);
        ck_assert(memcmp(&in_box[i], &in_box[i % DIFFERENT], sizeof *in_box) == 0);
    }
    left = 1; /* asked before the paths, and after the first of them */
    ck_assert_int_eq(vx_query_paths(s.map, &options, s.origin, &q, pose[0][0], N, path, &reply, &detail),
                     VX_E_CANCELLED);
    left = 1;
    ck_assert_int_eq(vx_query_boxes(s.map, &options, s.origin, box[0], N, in_box, &reply, &detail),
                     VX_E_CANCELLED);
    close_place(&s);
}
END_TEST

/* The same bytes on every backend. */
START_TEST(same_everywhere)
{
    enum { N = 200 };
    const enum vxk_backend on[3] = {backend, VXK_CPU, VXK_GUARD};
    static float pose[N][2][7], sphere[N_SPHERES][4], point[N][3], box[N][6];
    static struct {
        struct vx_path_answer path[N];
        struct vx_box_answer box[N];
        struct vx_slice_cell cell[400];
        struct vx_explanation why[N];
    } out[3];
    const struct vx_paths q = {.spheres = sphere[0], .n_spheres = N_SPHERES, .n_waypoints = 2};
    const struct vx_slice slice = {.n_x = 20, .n_y = 20, .min_z_m = 1, .max_z_m = 2};
    struct vx_reply reply;
    struct vx_detail detail;

    for (int i = 0; i < 3; i++) {
        struct place s = open_place(0, on[i]);
        random_robot(&s, sphere);
        for (int k = 0; k < N; k++) {
            random_pose(&s, pose[k][0]);
            random_pose(&s, pose[k][1]);
            for (int a = 0; a < 3; a++) {
                point[k][a] = random_at(&s);
                box[k][a] = point[k][a];
                box[k][3 + a] = point[k][a] + 0.6f;
            }
        }
        memset(&out[i], 0, sizeof out[i]);
        ck_assert_int_eq(
            vx_query_paths(s.map, NULL, s.origin, &q, pose[0][0], N, out[i].path, &reply, &detail), VX_OK);
        ck_assert_int_eq(vx_query_boxes(s.map, NULL, s.origin, box[0], N, out[i].box, &reply, &detail),
                         VX_OK);
        ck_assert_int_eq(vx_query_slice(s.map, NULL, s.origin, &slice, out[i].cell, &reply, &detail), VX_OK);
        ck_assert_int_eq(vx_query_explain(s.map, NULL, s.origin, point[0], N, out[i].why, &reply, &detail),
                         VX_OK);
        ck_assert(memcmp(&out[0], &out[i], sizeof out[0]) == 0);
        close_place(&s);
    }
}
END_TEST

int main(int argc, char **argv)
{
    TCase *t = tcase_create("planning");

    backend = grid_fixture_backend(argc, argv);
    tcase_add_loop_test(t, boxes, 0, N_PLACES);
    tcase_add_loop_test(t, unknown_and_why, 0, N_PLACES);
    tcase_add_loop_test(t, slices, 0, N_PLACES);
    tcase_add_loop_test(t, paths, 0, N_PLACES);
    tcase_add_test(t, nothing_between_waypoints_is_missed);
    tcase_add_test(t, nightmares);
    if (backend != VXK_GUARD)
        tcase_add_test(t, ten_million);
    tcase_add_test(t, parts);
    tcase_add_test(t, same_everywhere);
    return oracle_run(t);
}
