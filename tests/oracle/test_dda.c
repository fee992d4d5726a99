/*
 * test_dda.c - the ray traversal against brute force in double precision over every voxel of a map.
 *
 * Three walks of each ray are compared: the one that skips chunks, words and cells (query_ray.h), one that
 * goes voxel by voxel, and the list of all voxels whose cube the segment meets.
 */
#include "body/query.h"
#include "grid_fixture.h"
#include "random_map.h"

#include <check.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_MET = 4096, RAYS = 1200 };

/* Check's own assertions cost more than a step of a walk. */
#define ck_that(condition, ...)                                                                              \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            ck_abort_msg(__VA_ARGS__);                                                                       \
    } while (0)

struct voxel {
    int32_t v[3];
};
struct scene {
    struct grid_fixture *f;
    struct vx__snapshot snapshot;
    struct vxk_query q;
    struct voxel *active;
    uint32_t n;
    uint64_t seed;
    int32_t corner[3], size;
};

static const struct {
    int32_t corner[3], size;
    int style;
} scenes[] = {
    {{-9, -9, -9}, 40, 2},
    {{119, 117, 121}, 24, 0},
    {{-140, 120, 1000}, 28, 1},
    {{0, 0, 0}, 40, 3},
    {{-(1 << 27), -(1 << 27), -(1 << 27)}, 30, 1},
    {{(1 << 27) - 26, -(1 << 27), (1 << 27) - 26}, 26, 3},
};
enum { N_SCENES = sizeof scenes / sizeof *scenes };

static void add_active(void *context, int32_t x, int32_t y, int32_t z, int kind, uint32_t value)
{
    struct scene *s = context;
    (void)value;
    if (kind == VXK_ACTIVE)
        s->active[s->n++] = (struct voxel){{x, y, z}};
}

static void open_scene(struct scene *s, int i)
{
    struct vx_map_params p = {.voxel_size_m = 1, .esdf_max_distance_m = 4, .mode = VX_TSDF};
    *s = (struct scene){.seed = 900 + (uint64_t)i, .size = scenes[i].size};
    memcpy(s->corner, scenes[i].corner, sizeof s->corner);
    printf("scene %d: seed %llu\n", i, (unsigned long long)s->seed);
    s->f = grid_fixture_create(VXK_CPU, 1, &p, 0);
    random_map_fill(s->f, &s->seed, s->corner, s->size, scenes[i].style);
    grid_fixture_publish(s->f);
    ck_assert_int_eq(vx__snapshot_pin(grid_fixture_map(s->f), &s->snapshot), VX_OK);
    s->q.grid = s->snapshot.grid; /* the CPU backend's memory is the host's */
    s->q.voxel_m = 1;
    s->active = malloc((size_t)s->size * s->size * s->size * sizeof *s->active);
    ck_assert_ptr_nonnull(s->active);
    grid_fixture_each(s->f, add_active, s);
    ck_assert_uint_gt(s->n, 0);
}

static void close_scene(struct scene *s)
{
    vx__snapshot_release(grid_fixture_map(s->f), &s->snapshot);
    free(s->active);
    ck_assert_uint_eq(grid_fixture_destroy(s->f), 0);
}

/* ------------------------------------------------------------------ rays */

/* The awkward ones: along axes, on faces, edges and corners, from inside, from far away, almost parallel. */
static void random_ray(struct scene *s, int kind, double o[3], double d[3])
{
    for (int a = 0; a < 3; a++) {
        o[a] = s->corner[a] + grid_fixture_uniform(&s->seed, -4, s->size + 4);
        d[a] = grid_fixture_uniform(&s->seed, -1, 1);
    }
    uint64_t r = grid_fixture_random(&s->seed);
    int axis = (int)(r % 3), other = (axis + 1) % 3;
    switch (kind % 8) {
    case 0: /* along an axis */
        d[other] = d[3 - axis - other] = 0;
        break;
    case 1: /* along an axis, in a face or an edge */
        d[other] = d[3 - axis - other] = 0;
        o[other] = floor(o[other]);
        if (r >> 8 & 1)
            o[3 - axis - other] = floor(o[3 - axis - other]);
        break;
    case 2: /* in a plane between voxels */
        d[other] = r >> 9 & 1 ? 0.0 : -0.0;
        o[other] = floor(o[other]);
        break;
    case 3: /* through corners: exact ties at every step */
        for (int a = 0; a < 3; a++) {
            o[a] = floor(o[a]);
            d[a] = d[a] < 0 ? -1 : 1;
        }
        break;
    case 4: /* through edges: exact ties of two axes */
        for (int a = 0; a < 3; a++) {
            o[a] = floor(o[a]) + (a == axis ? 0.25 : 0);
            d[a] = a == axis ? 0 : d[a] < 0 ? -0.5 : 0.5;
        }
        break;
    case 5: /* from the middle of a voxel of the map */
        for (int a = 0; a < 3; a++)
            o[a] = s->active[r % s->n].v[a] + 0.5;
        break;
    case 6: /* from far away, towards the map */
        for (int a = 0; a < 3; a++) {
            double target = s->active[r % s->n].v[a] + grid_fixture_uniform(&s->seed, 0, 1);
            d[a] *= 90000;
            o[a] = target - d[a];
            if (fabs(o[a]) > 134217728.0) {
                d[a] = -d[a];
                o[a] = target - d[a];
            }
        }
        break;
    default: /* hardly moving along an axis */
        d[axis] = (r >> 10 & 1 ? 1 : -1) * ldexp(1, -(int)(r >> 11 & 63));
    }
}

/* ------------------------------------------------------------------ three walks */

struct met {
    int32_t v[3];
    double from, to;
};

static uint32_t walk(struct scene *s, const double o[3], const double d[3], double t0, double t1, int skip,
                     struct met *met)
{
    struct vxk_walk r = {.q = &s->q, .key = VXK_NO_KEY};
    uint32_t n = 0, steps = 0;
    int32_t size;
    double last = t0;
    if (!vxk_dda_begin(&r.w, o, d, t0, t1))
        return 0;
    do {
        uint32_t value;
        int found;
        int32_t before = r.w.i[0];
        size = vxk_ray_look(&r, r.w.i, &found, &value);
        vxk_dda_span(&r.w, skip ? size : 1);
        ck_that(r.w.t_exit >= r.w.t && r.w.t >= last && r.w.i[0] == before, "the walk goes backwards");
        last = r.w.t_exit;
        if (found == VXK_ACTIVE) {
            ck_that(n < MAX_MET, "met more than %d voxels", MAX_MET);
            memcpy(met[n].v, r.w.i, sizeof met[n].v);
            met[n].from = r.w.t;
            met[n++].to = r.w.t_exit;
        }
        ck_that(steps++ < 1 << 23, "the walk is longer than the reach, 2^23 chunks");
    } while (vxk_dda_step(&r.w, skip ? size : 1));
    ck_assert(r.w.t_exit == r.w.t_end);
    return n;
}

/* Where the line is in the closed cube of v, within [t0, t1]; false when it isn't. */
static int slab(const double o[3], const double d[3], const int32_t v[3], double t0, double t1, double *from,
                double *to)
{
    *from = t0;
    *to = t1;
    for (int a = 0; a < 3; a++) {
        if (d[a] == 0) {
            if (o[a] < v[a] || o[a] > v[a] + 1.0)
                return 0;
            continue;
        }
        double p = (v[a] - o[a]) / d[a], q = (v[a] + 1.0 - o[a]) / d[a];
        *from = fmax(*from, fmin(p, q));
        *to = fmin(*to, fmax(p, q));
    }
    return *from <= *to;
}

static int by_place(const void *a, const void *b)
{
    return memcmp(((const struct met *)a)->v, ((const struct met *)b)->v, sizeof(int32_t[3]));
}

/* Every voxel met for more than `slack` is in the walk, every voxel of the walk is met, or touched, there. */
static void check_ray(struct scene *s, int k, const double o[3], const double d[3], double t0, double t1,
                      uint64_t *n_crossed)
{
    static struct met flat[MAX_MET], met[MAX_MET];
    uint32_t n = walk(s, o, d, t0, t1, 1, met), m = walk(s, o, d, t0, t1, 0, flat);
    double most = 0, slack;
    for (int a = 0; a < 3; a++)
        most = fmax(most, fabs(d[a]));
    slack = (1e-9 + 2e-16 * (fabs(o[0]) + fabs(o[1]) + fabs(o[2]) + most * t1)) / most;
    ck_that(n == m, "ray %d: %u voxels with skipping, %u without", k, n, m);
    for (uint32_t i = 0; i < n; i++)
        ck_that(memcmp(&met[i], &flat[i], sizeof met[i]) == 0, "ray %d: voxel %u differs", k, i);
    for (uint32_t i = 0; i < n; i++) {
        double from, to;
        int in = slab(o, d, met[i].v, t0 - slack, t1 + slack, &from, &to);
        ck_that(in || to > from - slack, "ray %d: met a voxel that it passes by", k);
        ck_that(met[i].from >= from - 2 * slack && met[i].to <= to + 2 * slack,
                "ray %d: [%.17g, %.17g] in a voxel that holds it from %.17g to %.17g", k, met[i].from,
                met[i].to, from, to);
    }
    qsort(met, n, sizeof *met, by_place);
    for (uint32_t i = 1; i < n; i++)
        ck_that(by_place(&met[i - 1], &met[i]) != 0, "ray %d: met a voxel twice", k);
    for (uint32_t i = 0; i < s->n; i++) {
        struct met key;
        double from, to;
        memcpy(key.v, s->active[i].v, sizeof key.v);
        if (!slab(o, d, key.v, t0, t1, &from, &to) || to - from <= slack)
            continue;
        const struct met *hit = bsearch(&key, met, n, sizeof *met, by_place);
        int on_face = 0; /* a ray in a face belongs to the voxel above it */
        for (int a = 0; a < 3; a++)
            on_face |= d[a] == 0 && o[a] == key.v[a] + 1.0;
        ck_that(hit || on_face, "ray %d: missed (%d, %d, %d), crossed from %.17g to %.17g", k, key.v[0],
                key.v[1], key.v[2], from, to);
        if (hit && !on_face)
            ck_that(fabs(hit->from - from) <= 2 * slack && fabs(hit->to - to) <= 2 * slack,
                    "ray %d: crossed at other places", k);
        *n_crossed += hit != NULL;
    }
}

START_TEST(every_voxel_that_a_ray_crosses)
{
    struct scene s;
    uint64_t n_crossed = 0;
    open_scene(&s, _i);
    for (int k = 0; k < RAYS; k++) {
        double o[3], d[3], t0 = 0, t1;
        random_ray(&s, k, o, d);
        double l = sqrt(d[0] * d[0] + d[1] * d[1] + d[2] * d[2]);
        t1 = k % 8 == 6 ? 1.001 : 70 / l;
        if (k % 5 == 1) /* a part of the ray */
            t0 = grid_fixture_uniform(&s.seed, 0, 20 / l);
        if (k % 8 == 6) /* the walk without skipping would take for ever: only its end */
            t0 = 1 - 60 / l;
        check_ray(&s, k, o, d, t0, t1, &n_crossed);
    }
    printf("%d rays cross %llu voxels of %u\n", RAYS, (unsigned long long)n_crossed, s.n);
    ck_assert_uint_gt(n_crossed, RAYS / 10);
    close_scene(&s);
}
END_TEST

/* From one end of the range to the other the walk steps over empty chunks and meets what is there. */
START_TEST(huge_distances)
{
    struct scene s;
    static struct met met[MAX_MET];
    open_scene(&s, 0);
    for (int k = 0; k < 4; k++) {
        const struct voxel *goal = &s.active[grid_fixture_random(&s.seed) % s.n];
        double o[3], d[3], from, to;
        uint32_t n, found = 0;
        for (int a = 0; a < 3; a++) {
            double x = goal->v[a] + 0.25;
            o[a] = a == k % 3 ? (k % 2 ? 134217727.5 : -134217727.5) : x;
            d[a] = x - o[a];
        }
        n = walk(&s, o, d, 0, 2, 1, met);
        for (uint32_t i = 0; i < n; i++) {
            ck_assert(slab(o, d, met[i].v, 0, 2, &from, &to));
            found += memcmp(met[i].v, goal->v, sizeof met[i].v) == 0;
        }
        ck_assert_uint_eq(found, 1);
    }
    close_scene(&s);
}
END_TEST

START_TEST(no_walk)
{
    const double o[3] = {0, 0, 0}, far[3] = {1e9, 0, 0}, bad[3] = {0, NAN, 0}, d[3] = {1, 0, 0},
                 endless[3] = {INFINITY, 0, 0}, still[3] = {0, 0, 0};
    struct vxk_dda w;
    ck_assert_int_eq(vxk_dda_begin(&w, far, d, 0, 1), 0);
    ck_assert_int_eq(vxk_dda_begin(&w, bad, d, 0, 1), 0);
    ck_assert_int_eq(vxk_dda_begin(&w, o, bad, 0, 1), 0);
    ck_assert_int_eq(vxk_dda_begin(&w, o, endless, 0, 1), 0);
    ck_assert_int_eq(vxk_dda_begin(&w, o, d, 2, 1), 0);
    ck_assert_int_eq(vxk_dda_begin(&w, o, d, NAN, 1), 0);
    /* no direction: one voxel, for ever */
    ck_assert_int_eq(vxk_dda_begin(&w, o, still, 0, 1e300), 1);
    vxk_dda_span(&w, 1);
    ck_assert_int_eq(vxk_dda_step(&w, 1), 0);
    /* the reach ends the walk before a coordinate overflows */
    uint32_t steps = 0;
    ck_assert_int_eq(vxk_dda_begin(&w, o, d, 0, INFINITY), 1);
    do
        vxk_dda_span(&w, 1 << 20);
    while (vxk_dda_step(&w, 1 << 20) && ++steps);
    ck_assert_uint_eq(steps, (1 << 9) - 1);
    ck_assert_int_ge(w.i[0], 511 << 20);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("dda");
    TCase *t = tcase_create("dda");
    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, every_voxel_that_a_ray_crosses, 0, N_SCENES);
    tcase_add_test(t, huge_distances);
    tcase_add_test(t, no_walk);
    suite_add_tcase(suite, t);
    SRunner *r = srunner_create(suite);
    srunner_run_all(r, CK_NORMAL);
    int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
