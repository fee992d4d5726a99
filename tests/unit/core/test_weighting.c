/* How a map weighs readings: the same map on every backend, kept in files, refused when it is no weighting.
 */
#define _POSIX_C_SOURCE 200809L /* setenv */
#include "nvdb_case.h"

#include <stdlib.h>
#include <string.h>

enum { WIDTH = 96, HEIGHT = 72, COLUMNS = 256, ROWS = 16, N_FRAMES = 9, N_LIDAR = 3 };

struct weighed {
    struct test_frame t;
    float weight[WIDTH * HEIGHT];
    uint8_t colour[3 * WIDTH * HEIGHT];
};

/* Frame i: three of LiDARs, then depth images, every other one with weights of its pixels. */
static void weighed_init(struct weighed *w, int i, uint64_t *seed, bool colour)
{
    const bool depth = i >= N_LIDAR;
    const double at[3] = {test_uniform(seed, -1, 1), 0, 0};
    const struct frame_shape shape = {
        .width = depth ? WIDTH : COLUMNS, .height = depth ? HEIGHT : ROWS, .reach_m = 3, .odd = 0.05};
    test_frame_init(&w->t, depth ? VX_DEPTH : i & 1 ? VX_RANGE : VX_POINTS, seed, &shape, at);
    w->t.f.stamp_ns = i * 50000000;
    for (int k = 0; k < WIDTH * HEIGHT; k++)
        w->weight[k] = (float)test_uniform(seed, 0.1, 3);
    for (int k = 0; k < 3 * WIDTH * HEIGHT; k++)
        w->colour[k] = (uint8_t)test_random(seed);
    w->t.f.weight = depth && i & 1 ? w->weight : NULL;
    w->t.f.colour = colour ? w->colour : NULL;
}

/* One thread and the bodies as they are. */
static struct vx_device *plain_device(void)
{
    const struct vx_device_params p = {.backend = VXK_CPU, .n_threads = 1, .cap_bytes = 512 << 20};
    struct vx_device *d;
    ck_assert_int_eq(setenv("VOXELD_CPU_TUNED", "0", 1), 0);
    ck_ok(vx_device_open(&p, &d, NULL));
    ck_assert_int_eq(unsetenv("VOXELD_CPU_TUNED"), 0);
    return d;
}

/* The weightings differ for depth images, and for nothing else. */
START_TEST(same_everywhere)
{
    struct vx_device *d[2] = {plain_device(), test_device(512 << 20)};
    struct vx_map *m[2][2]; /* [weighting][device] */
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    uint64_t seed = test_seed + (uint64_t)_i;
    p.colour = _i & 1;
    p.half_life_s = _i & 2 ? 0.5 : 0;
    for (int k = 0; k < 4; k++) {
        p.weighting = k >> 1 ? VX_WEIGHT_CONSTANT : VX_WEIGHT_INVERSE_SQUARE;
        m[k >> 1][k & 1] = test_map(d[k & 1], &p);
    }
    for (int i = 0; i < N_FRAMES; i++) {
        uint8_t digest[2][2][32];
        struct weighed w;
        weighed_init(&w, i, &seed, p.colour);
        for (int k = 0; k < 4; k++) {
            struct vx_frame_result r;
            ck_ok(vx_map_integrate(m[k >> 1][k & 1], &w.t.f, &r, NULL));
            ck_ok(vx_map_digest(m[k >> 1][k & 1], digest[k >> 1][k & 1], NULL));
        }
        for (int h = 0; h < 2; h++)
            ck_assert_msg(!memcmp(digest[h][0], digest[h][1], 32), "frame %d, weighting %d: digests differ",
                          i, h);
        ck_assert_int_eq(!memcmp(digest[0][0], digest[1][0], 32), i < N_LIDAR);
        test_frame_fini(&w.t);
    }
    for (int k = 0; k < 4; k++) {
        ck_map(m[k >> 1][k & 1], "weightings");
        vx_map_destroy(m[k >> 1][k & 1]);
    }
    for (int k = 0; k < 2; k++)
        vx_device_close(d[k]);
}
END_TEST

/* A map of a file goes on as the one that was written, unless the caller wants another weighting for it. */
START_TEST(files)
{
    struct vx_device *d = test_device(512 << 20);
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_nvdb_import o = nvdb_defaults();
    struct vx_map *m[3] = {NULL};
    struct vx_map_info info;
    struct nvdb_file file;
    struct vx__nvdb_blind ours;
    struct vx_detail detail = {0};
    uint64_t seed = test_seed, at;
    uint8_t digest[3][32];
    p.weighting = VX_WEIGHT_CONSTANT;
    m[0] = test_map(d, &p);
    for (int i = 0; i < N_FRAMES; i++) {
        struct weighed w;
        struct vx_frame_result r;
        if (i == N_FRAMES - 1) { /* the last one after the files */
            nvdb_export(m[0], VX_NVDB_INDEX, &file);
            ck_ok(nvdb_import(d, &o, file.bytes, file.n, &m[1], &detail));
            o.has_weighting = true;
            o.params.weighting = VX_WEIGHT_INVERSE_SQUARE;
            ck_ok(nvdb_import(d, &o, file.bytes, file.n, &m[2], &detail));
        }
        weighed_init(&w, i, &seed, false);
        for (int k = 0; k < 3; k++)
            if (m[k])
                ck_ok(vx_map_integrate(m[k], &w.t.f, &r, NULL));
        test_frame_fini(&w.t);
    }
    for (int k = 0; k < 3; k++) {
        ck_ok(vx_map_digest(m[k], digest[k], NULL));
        ck_ok(vx_map_get_info(m[k], &info));
        ck_assert_int_eq(info.params.weighting, k < 2 ? VX_WEIGHT_CONSTANT : VX_WEIGHT_INVERSE_SQUARE);
        vx_map_destroy(m[k]);
    }
    ck_assert_mem_eq(digest[0], digest[1], 32);
    ck_assert_mem_ne(digest[0], digest[2], 32);
    /* a file without our parameters: the caller's */
    nvdb_free(&file);
    m[0] = test_map(d, &p);
    nvdb_export(m[0], VX_NVDB_FLOAT, &file);
    o.has_weighting = false;
    o.params.weighting = VX_WEIGHT_CONSTANT;
    ck_ok(nvdb_import(d, &o, file.bytes, file.n, &m[1], &detail));
    ck_ok(vx_map_get_info(m[1], &info));
    ck_assert_int_eq(info.params.weighting, VX_WEIGHT_CONSTANT);
    vx_map_destroy(m[1]);
    nvdb_free(&file);
    /* a file with a weighting that there is not */
    nvdb_export(m[0], VX_NVDB_INDEX, &file);
    nvdb_no_sum(&file);
    ck_assert(nvdb_blind(&file, VX__NVDB_OURS, &ours, &at));
    file.bytes[file.grid_at + at + offsetof(struct vx__nvdb_ours, weighting)] = 2;
    ck_assert_int_eq(nvdb_import(d, &o, file.bytes, file.n, &m[1], &detail), VX_E_INVALID);
    ck_assert_str_eq(detail.field, VX__NVDB_OURS);
    ck_assert_ptr_null(m[1]);
    nvdb_free(&file);
    vx_map_destroy(m[0]);
    vx_device_close(d);
}
END_TEST

START_TEST(refused)
{
    struct vx_device *d = test_device(64 << 20);
    struct vx_map_params p = test_params(0.1, VX_TSDF);
    struct vx_detail detail;
    struct vx_map *m;
    for (int i = -1; i <= 2; i += 3) {
        p.weighting = (enum vx_weighting)i;
        ck_assert_int_eq(vx_map_create(d, "m", &p, &m, &detail), VX_E_INVALID);
        ck_assert_str_eq(detail.field, "weighting");
    }
    vx_device_close(d);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("weighting");
    ck_add(s, same_everywhere, 4);
    ck_add(s, files, 1);
    ck_add(s, refused, 1);
    return core_test_main(argc, argv, s);
}
