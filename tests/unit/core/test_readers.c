/* test_readers.c - queries and mesh of maps that the integrator made, also beside a writer. */
#include "vx/mesh.h"
#include "vx/query.h"

#include <check.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

enum { W = 160, H = 120 };

/* A camera at the map's origin that looks along z at a wall. */
static vx_err integrate_wall(struct vx_map *map, double depth_m, int64_t stamp_ns)
{
    static float image[W * H];
    struct vx_frame frame = {.sensor = VX_DEPTH,
                             .stamp_ns = stamp_ns,
                             .n_poses = 1,
                             .width = W,
                             .height = H,
                             .fx = 140,
                             .fy = 140,
                             .cx = 79.5,
                             .cy = 59.5,
                             .encoding = VX_F32,
                             .data = image,
                             .data_bytes = sizeof image,
                             .no_return_value = NAN};
    struct vx_frame_result result;
    struct vx_detail detail = {.text = ""};
    vx_err err;

    memcpy(frame.pose[0].position_m, (double[3]){1000.0, -2000.0, 30.0}, sizeof frame.pose[0].position_m);
    frame.pose[0].rotation_xyzw[3] = 1;
    for (int i = 0; i < W * H; i++)
        image[i] = (float)depth_m;
    err = vx_map_integrate(map, &frame, &result, &detail);
    ck_assert_msg(err == VX_OK, "%s: %s %s", vx_err_name(err), detail.field, detail.text);
    return err;
}

static void open_map(struct vx_device **device, struct vx_map **map, enum vxk_backend backend)
{
    struct vx_device_params dp = {.backend = backend, .n_threads = 2, .cap_bytes = 512ull << 20};
    struct vx_map_params p;
    struct vx_detail detail;

    vx_map_params_default(&p);
    memcpy(p.origin_m, (double[3]){990, -2010, 20}, sizeof p.origin_m);
    ck_assert_int_eq(vx_device_open(&dp, device, &detail), VX_OK);
    ck_assert_int_eq(vx_map_create(*device, "wall", &p, map, &detail), VX_OK);
}

static const double origin[3] = {1000, -2000, 30};

START_TEST(wall)
{
    struct vx_device *device;
    struct vx_map *map;
    struct vx_reply reply;
    struct vx_detail detail;
    struct vx_mesh mesh;
    float points[40][3], spheres[2][4] = {{0, 0, 1.7f, 0.25f}, {0, 0, 1.7f, 0.35f}},
                         rays[2][6] = {{0, 0, 0.3f, 0, 0, 2}, {0, 0, 0.3f, 0.2f, -0.1f, 1}};
    struct vx_point_answer a[40];
    struct vx_ray_answer r[2];

    open_map(&device, &map, _i ? VXK_GUARD : VXK_CPU);
    ck_assert_int_eq(vx_query_points(map, NULL, origin, points[0], 0, a, &reply, &detail), VX_OK);
    ck_assert_uint_eq(reply.epoch, 0);
    for (int k = 0; k < 5; k++)
        integrate_wall(map, 2.0, 1000 + k);
    for (int i = 0; i < 40; i++) {
        points[i][0] = 0.1f;
        points[i][1] = -0.05f;
        points[i][2] = (float)(0.31 + 0.047 * i);
    }
    ck_assert_int_eq(vx_query_points(map, NULL, origin, points[0], 40, a, &reply, &detail), VX_OK);
    ck_assert_uint_eq(reply.epoch, 5);
    ck_assert_uint_eq(reply.esdf_epoch, 5);
    ck_assert_int_eq(reply.newest_stamp_ns, 1004);
    ck_assert_double_eq_tol(reply.max_distance_m, 0.5, 1e-9);
    for (int i = 0; i < 40; i++) {
        double to_wall = 2.0 - points[i][2];
        if (to_wall > 0.05)
            ck_assert_uint_eq(a[i].state, VX_STATE_FREE);
        if (to_wall < -0.2)
            ck_assert_uint_eq(a[i].state, VX_STATE_UNKNOWN);
        if (to_wall > 0.55)
            ck_assert_uint_eq(a[i].status, 0);
        if (to_wall > 0.45 || to_wall < 0.02)
            continue;
        ck_assert_uint_eq(a[i].status, VX_Q_DISTANCE | VX_Q_GRADIENT);
        ck_assert_double_eq_tol(a[i].distance_m, to_wall, 0.011);
        ck_assert_float_lt(a[i].gradient[2], -0.95f);
    }
    ck_assert_int_eq(vx_query_spheres(map, NULL, origin, spheres[0], 2, a, &reply, &detail), VX_OK);
    ck_assert_uint_eq(a[0].status & (VX_Q_COLLIDES | VX_Q_TOUCHES_UNKNOWN), 0);
    ck_assert_uint_eq(a[1].status & VX_Q_COLLIDES, VX_Q_COLLIDES);
    ck_assert_double_eq_tol(a[0].distance_m, 0.05, 0.011);
    ck_assert_int_eq(vx_query_rays(map, NULL, origin, rays[0], 2, 4.0, r, &reply, &detail), VX_OK);
    ck_assert_double_eq_tol(r[0].range_m, 1.7, 0.005);
    ck_assert_double_eq_tol(r[1].range_m, 1.7 * sqrt(1.05), 0.01);
    for (int i = 0; i < 2; i++) {
        ck_assert_uint_eq(r[i].state, VX_STATE_OCCUPIED);
        ck_assert(isnan(r[i].unknown_from_m));
        ck_assert_float_lt(r[i].normal[2], -0.99f);
    }
    ck_assert_int_eq(vx_mesh_extract(map, NULL, 0, &mesh, &reply, &detail), VX_OK);
    ck_assert_uint_gt(mesh.n_triangles, 1000);
    for (uint32_t i = 0; i < mesh.n_vertices; i++) {
        ck_assert_double_eq_tol(mesh.vertices[3 * i + 2] + mesh.origin_m[2] - origin[2], 2.0, 0.004);
        ck_assert_float_lt(mesh.normals[3 * i + 2], -0.9f);
    }
    vx_mesh_fini(&mesh);
    ck_assert_int_eq(vx_map_clear(map), VX_OK);
    ck_assert_int_eq(vx_query_points(map, NULL, origin, points[0], 40, a, &reply, &detail), VX_OK);
    for (int i = 0; i < 40; i++)
        ck_assert(a[i].status == 0 && a[i].state == VX_STATE_UNKNOWN);
    vx_map_destroy(map);
    vx_device_close(device);
}
END_TEST

/* A field that is new enough by the caller's clock answers for its own epoch, whole; and its pin does not
 * hold what commits replace for long. */
START_TEST(period)
{
    struct vx_device *device;
    struct vx_map *map;
    struct vx_reply reply;
    struct vx_detail detail;
    struct vx_query_options o = {.now_ns = 1000, .esdf_period_ns = 100};
    struct vx_device_stats stats;
    uint64_t most = 0;
    float near_wall[3] = {0, 0, 1.7f};
    struct vx_point_answer first, a;

    open_map(&device, &map, _i ? VXK_GUARD : VXK_CPU);
    for (int k = 0; k < 5; k++)
        integrate_wall(map, 2.0, 1000 + k);
    ck_assert_int_eq(vx_query_points(map, &o, origin, near_wall, 1, &first, &reply, &detail), VX_OK);
    ck_assert_uint_eq(reply.epoch, 5);
    for (int k = 0; k < 8; k++)
        integrate_wall(map, 1.8, 2000 + k);
    for (o.now_ns = 990; o.now_ns < 1100; o.now_ns += 10) { /* a clock that went back does no harm */
        ck_assert_int_eq(vx_query_points(map, &o, origin, near_wall, 1, &a, &reply, &detail), VX_OK);
        ck_assert(reply.epoch == 5 && reply.esdf_epoch == 5 && reply.newest_stamp_ns == 1004);
        ck_assert(memcmp(&a, &first, sizeof a) == 0);
    }
    ck_assert_int_eq(vx_query_points(map, &o, origin, near_wall, 1, &a, &reply, &detail), VX_OK); /* 1100 */
    ck_assert(reply.epoch == 13 && reply.esdf_epoch == 13 && a.distance_m < 0.12f);
    integrate_wall(map, 1.8, 3000);
    o.min_epoch = 14; /* asked for: not old for anything */
    ck_assert_int_eq(vx_query_points(map, &o, origin, near_wall, 1, &a, &reply, &detail), VX_OK);
    ck_assert_uint_eq(reply.esdf_epoch, 14);
    o.min_epoch = 0;
    for (int k = 0; k < 200; k++) { /* nobody asks */
        integrate_wall(map, k % 2 ? 1.8 : 2.0, 4000 + k);
        vx_device_get_stats(device, &stats);
        if (k < 60 && stats.used_bytes > most)
            most = stats.used_bytes;
        ck_assert_uint_le(stats.used_bytes, k < 60 ? UINT64_MAX : most);
    }
    ck_assert_int_eq(vx_query_points(map, &o, origin, near_wall, 1, &a, &reply, &detail), VX_OK);
    ck_assert_uint_eq(reply.epoch, 214); /* its epoch was given up */
    ck_assert_int_eq(vx_map_clear(map), VX_OK);
    ck_assert_int_eq(vx_query_points(map, &o, origin, near_wall, 1, &a, &reply, &detail), VX_OK);
    ck_assert(a.status == 0 && a.state == VX_STATE_UNKNOWN);
    vx_map_destroy(map);
    vx_device_close(device);
}
END_TEST

/* What is answered at once has the bytes of what is waited for, and is refused where it would have to wait.
 */
START_TEST(now)
{
    struct vx_device *device;
    struct vx_map *map;
    struct vx_reply reply, at_once;
    struct vx_detail detail = {"", ""};
    struct vx_query_options o = {.now_ns = 1000, .esdf_period_ns = 100}, newest = {.now_ns = 0};
    static float points[VX_NOW_POINTS + 1][3];
    static struct vx_point_answer a[VX_NOW_POINTS], b[VX_NOW_POINTS];
    const double nowhere[3] = {0, NAN, 0};
    const uint32_t n = VX_NOW_POINTS;

    for (uint32_t i = 0; i < n; i++) {
        points[i][0] = (float)(i % 13) * 0.05f - 0.3f;
        points[i][1] = (float)(i % 7) * 0.05f - 0.15f;
        points[i][2] = 0.2f + 0.001f * (float)i;
    }
    open_map(&device, &map, _i ? VXK_GUARD : VXK_CPU);
#define NOW(options, count) vx_query_points_now(map, options, origin, points[0], count, a, &at_once, &detail)
#define ASK(options)        vx_query_points(map, options, origin, points[0], n, b, &reply, &detail)
    ck_assert_int_eq(NOW(&o, n), VX_E_UNAVAILABLE); /* there is no field yet */
    for (int k = 0; k < 5; k++)
        integrate_wall(map, 2.0, 1000 + k);
    ck_assert_int_eq(NOW(&o, n), VX_E_UNAVAILABLE);
    ck_assert_int_eq(ASK(&o), VX_OK);
    ck_assert_int_eq(NOW(&o, n), VX_OK);
    ck_assert(memcmp(&at_once, &reply, sizeof reply) == 0 && memcmp(a, b, sizeof a) == 0);
    ck_assert_int_eq(NOW(&newest, n), VX_OK);
    ck_assert_int_eq(NOW(NULL, n), VX_OK);
    ck_assert_int_eq(NOW(&o, 0), VX_OK);
    ck_assert_int_eq(NOW(&o, n + 1), VX_E_UNAVAILABLE);
    ck_assert_int_eq(vx_query_points_now(map, &o, nowhere, points[0], n, a, &at_once, &detail), VX_E_INVALID);
    integrate_wall(map, 1.8, 2000);
    o.now_ns = 1099; /* new enough */
    ck_assert_int_eq(NOW(&o, n), VX_OK);
    ck_assert(memcmp(&at_once, &reply, sizeof reply) == 0 && memcmp(a, b, sizeof a) == 0);
    ck_assert_int_eq(NOW(&newest, n), VX_E_UNAVAILABLE); /* the newest epoch is wanted */
    o.min_epoch = 6;
    ck_assert_int_eq(NOW(&o, n), VX_E_UNAVAILABLE);
    o.min_epoch = 7;
    ck_assert_int_eq(NOW(&o, n), VX_E_STALE);
    o.min_epoch = 0;
    o.now_ns = 1100;
    ck_assert_int_eq(NOW(&o, n), VX_E_UNAVAILABLE);
    ck_assert_int_eq(ASK(&o), VX_OK);
    ck_assert_int_eq(NOW(&o, n), VX_OK);
    ck_assert(at_once.epoch == 6 && memcmp(a, b, sizeof a) == 0);
    ck_assert_int_eq(vx_map_clear(map), VX_OK);
    ck_assert_int_eq(NOW(&o, n), VX_E_UNAVAILABLE); /* the field says nothing about this map */
    ck_assert_int_eq(ASK(&o), VX_OK);
    ck_assert_int_eq(NOW(&o, n), VX_OK);
    for (uint32_t i = 0; i < n; i++)
        ck_assert(a[i].status == 0 && a[i].state == VX_STATE_UNKNOWN);
#undef NOW
#undef ASK
    vx_map_destroy(map);
    vx_device_close(device);
}
END_TEST

/* ------------------------------------------------------------------ beside a writer */

struct beside {
    struct vx_map *map;
    int stop, n_batches;
    int n_now; /* of read_now */
};

static void *read_on(void *context)
{
    struct beside *b = context;
    uint64_t epoch = 0;

    while (!__atomic_load_n(&b->stop, __ATOMIC_ACQUIRE)) {
        float p[2][4] = {{0, 0, 1.2f, 0.1f}, {0.2f, 0.1f, 1.9f, 0.3f}};
        struct vx_point_answer a[2];
        struct vx_reply reply;
        struct vx_detail detail;
        struct vx_mesh mesh;
        struct vx_query_options o = {.now_ns = (uint64_t)b->n_batches, .esdf_period_ns = 3};
        ck_assert_int_eq(
            vx_query_spheres(b->map, b->n_batches % 7 ? &o : NULL, origin, p[0], 2, a, &reply, &detail),
            VX_OK);
        ck_assert((b->n_batches % 7 == 0 || reply.epoch >= epoch) && reply.esdf_epoch == reply.epoch);
        epoch = reply.epoch;
        ck_assert_int_eq(vx_mesh_extract(b->map, NULL, 0, &mesh, &reply, &detail), VX_OK);
        for (uint32_t i = 0; i < 3 * mesh.n_triangles; i++)
            ck_assert_uint_lt(mesh.triangles[i], mesh.n_vertices);
        vx_mesh_fini(&mesh);
        __atomic_fetch_add(&b->n_batches, 1, __ATOMIC_ACQ_REL);
    }
    return NULL;
}

/* Small questions at once beside all that: some are answered, each for one epoch that has its own wall. */
static void *read_now(void *context)
{
    struct beside *b = context;
    uint64_t epoch = 0, clock = 0;

    while (!__atomic_load_n(&b->stop, __ATOMIC_ACQUIRE) || !b->n_now) {
        const struct vx_query_options o = {.now_ns = clock++, .esdf_period_ns = 1u << 30};
        struct vx_point_answer a[2];
        struct vx_reply reply;
        struct vx_detail detail = {"", ""};
        float p[2][3] = {{0, 0, 1.2f}, {0, 0, 1.2f}};
        vx_err err = vx_query_points_now(b->map, &o, origin, p[0], 2, a, &reply, &detail);
        if (err == VX_E_UNAVAILABLE) {
            sched_yield();
            continue;
        }
        ck_assert_int_eq(err, VX_OK);
        ck_assert(reply.epoch >= epoch && reply.esdf_epoch == reply.epoch);
        ck_assert(memcmp(&a[0], &a[1], sizeof a[0]) == 0);
        epoch = reply.epoch;
        b->n_now++;
    }
    return NULL;
}

START_TEST(beside_a_writer)
{
    struct vx_device *device;
    struct beside b = {0};
    pthread_t thread, at_once;
    int frames = 0;

    open_map(&device, &b.map, VXK_CPU);
    ck_assert_int_eq(pthread_create(&thread, NULL, read_on, &b), 0);
    ck_assert_int_eq(pthread_create(&at_once, NULL, read_now, &b), 0);
    while (__atomic_load_n(&b.n_batches, __ATOMIC_ACQUIRE) < 15 || frames < 15) {
        integrate_wall(b.map, 2.0 - 0.05 * (frames % 12), frames);
        frames++;
    }
    __atomic_store_n(&b.stop, 1, __ATOMIC_RELEASE);
    pthread_join(thread, NULL);
    pthread_join(at_once, NULL);
    vx_map_destroy(b.map);
    vx_device_close(device);
}
END_TEST

int main(void)
{
    Suite *s = suite_create("readers");
    TCase *t = tcase_create("core");
    SRunner *r;
    int failed;

    tcase_set_timeout(t, 0);
    tcase_add_loop_test(t, wall, 0, 2);
    tcase_add_loop_test(t, period, 0, 2);
    tcase_add_loop_test(t, now, 0, 2);
    tcase_add_test(t, beside_a_writer);
    suite_add_tcase(s, t);
    r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed != 0;
}
