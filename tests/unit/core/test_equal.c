/* Options of the frame pipeline give the same map on this backend as on one CPU thread. */
#include "core_test.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct vx_device *reference_device(void)
{
    struct vx_device_params p = {.backend = VXK_CPU, .n_threads = 1, .cap_bytes = 512 << 20};
    struct vx_device *d;
    ck_ok(vx_device_open(&p, &d, NULL));
    return d;
}

/* ------------------------------------------------------------------ scans of a moving sensor */

enum { COLUMNS = 256, ROWS = 16 };

/* Poses over 0.1 s from the frame's first one on, a time for each column or point. */
static void move_sensor(struct test_frame *t, uint64_t *seed, int32_t *time_ns, uint32_t n_poses)
{
    struct vx_frame *f = &t->f;
    f->n_poses = n_poses;
    for (uint32_t i = 1; i < n_poses; i++) {
        double n = 0;
        f->pose[i] = f->pose[i - 1];
        f->pose[i].offset_ns += 100000000 / (n_poses - 1);
        for (int k = 0; k < 3; k++)
            f->pose[i].position_m[k] += test_uniform(seed, -1, 1) / n_poses;
        for (int k = 0; k < 4; k++) {
            f->pose[i].rotation_xyzw[k] += test_uniform(seed, -0.2, 0.2) / n_poses;
            n += f->pose[i].rotation_xyzw[k] * f->pose[i].rotation_xyzw[k];
        }
        for (int k = 0; k < 4; k++)
            f->pose[i].rotation_xyzw[k] /= sqrt(n);
    }
    for (uint32_t i = 0; i < f->width; i++)
        time_ns[i] = (int32_t)(99000000ll * (i % COLUMNS) / COLUMNS);
    f->time_ns = time_ns;
}

START_TEST(moving_scans)
{
    static const uint32_t n_poses[] = {2, 3, 11, 64};
    struct vx_device *d[2] = {reference_device(), test_device(512 << 20)};
    struct vx_map_params p = test_params(0.1, _i & 1 ? VX_OCCUPANCY : VX_TSDF);
    struct vx_map *m[2] = {test_map(d[0], &p), test_map(d[1], &p)};
    struct frame_shape shape = {.width = COLUMNS, .height = ROWS, .reach_m = 4, .odd = 0.05};
    int32_t *time_ns = malloc(COLUMNS * ROWS * sizeof *time_ns);
    uint64_t seed = test_seed + (uint64_t)_i;
    ck_assert_ptr_nonnull(time_ns);
    for (uint32_t i = 0; i < 8; i++) {
        const double at[3] = {test_uniform(&seed, -2, 2), test_uniform(&seed, -2, 2), 0};
        struct vx_frame_result r[2];
        uint8_t digest[2][32];
        struct test_frame t;
        test_frame_init(&t, i & 1 ? VX_RANGE : VX_POINTS, &seed, &shape, at);
        move_sensor(&t, &seed, time_ns, n_poses[i / 2]);
        for (int k = 0; k < 2; k++) {
            ck_ok(vx_map_integrate(m[k], &t.f, &r[k], NULL));
            ck_ok(vx_map_digest(m[k], digest[k], NULL));
        }
        ck_assert_mem_eq(&r[0].counts, &r[1].counts, sizeof r[0].counts);
        ck_assert_mem_eq(digest[0], digest[1], 32);
        test_frame_fini(&t);
    }
    ck_map(m[1], "after moving scans");
    for (int k = 0; k < 2; k++) {
        vx_map_destroy(m[k]);
        vx_device_close(d[k]);
    }
    free(time_ns);
}
END_TEST

/* ------------------------------------------------------------------ depth images with a bent lens */

enum { WIDTH = 96, HEIGHT = 72 };

static double reading_at(const struct vx_frame *f, int u, int v)
{
    double m;
    if (u < 0 || v < 0 || u >= WIDTH || v >= HEIGHT)
        return 0;
    m = f->encoding == VX_U16 ? ((const uint16_t *)f->data)[v * WIDTH + u]
                              : (double)((const float *)f->data)[v * WIDTH + u];
    return m > 0 && m < (f->encoding == VX_U16 ? 65535 : 1e30) ? m : 0;
}

static bool between(double d, double p, double q, double jump)
{
    return p > 0 && q > 0 && ((p > d + jump && q < d - jump) || (q > d + jump && p < d - jump));
}

/* Where a pixel of the pinhole image is in the bent one. */
static double bend(const struct vx_frame *f, int u, int v, double *bu, double *bv)
{
    const double *k = f->distortion;
    double x = (u - f->cx) / f->fx, y = (v - f->cy) / f->fy, r2 = x * x + y * y;
    double radial = 1 + k[0] * r2 + k[1] * r2 * r2 + k[4] * r2 * r2 * r2;
    *bu = (x * radial + 2 * k[2] * x * y + k[3] * (r2 + 2 * x * x)) * f->fx + f->cx;
    *bv = (y * radial + k[2] * (r2 + 2 * y * y) + 2 * k[3] * x * y) * f->fy + f->cy;
    return radial;
}

/* Random coefficients that leave no pixel near the border between two others, where single precision may
 * decide. */
static void random_lens(struct vx_frame *f, uint64_t *seed)
{
    for (bool clear = false; !clear;) {
        clear = true;
        for (int k = 0; k < 5; k++)
            f->distortion[k] = (double)(float)(test_uniform(seed, -0.1, 0.1) * (k == 2 || k == 3 ? 0.1 : 1));
        for (int i = 0; i < WIDTH * HEIGHT && clear; i++) {
            double u, v;
            (void)bend(f, i % WIDTH, i / WIDTH, &u, &v);
            clear = fabs(u - floor(u) - 0.5) > 1e-4 && fabs(v - floor(v) - 0.5) > 1e-4;
        }
    }
}

/* What a pinhole camera without the masked and flying pixels would have sent, in double precision; weight:
 * its pixels' weights, where the frame has some. */
static void clean(const struct vx_frame *f, void *out, float *weight)
{
    for (int v = 0; v < HEIGHT; v++)
        for (int u = 0; u < WIDTH; u++) {
            double bu, bv, radial = bend(f, u, v, &bu, &bv);
            int su = (int)floor(bu + 0.5), sv = (int)floor(bv + 0.5);
            bool ok = radial > 0 && su >= 0 && sv >= 0 && su < WIDTH && sv < HEIGHT;
            ok = ok && !(f->mask && !f->mask[sv * WIDTH + su]);
            if (f->weight)
                weight[v * WIDTH + u] = ok ? f->weight[sv * WIDTH + su] : 0;
            ok = ok && !(f->weight && f->weight[sv * WIDTH + su] == 0);
            if (ok && f->edge_jump > 0) {
                double d = reading_at(f, su, sv), jump = d * (double)(float)f->edge_jump;
                ok = !(d > 0) || !(between(d, reading_at(f, su - 1, sv), reading_at(f, su + 1, sv), jump) ||
                                   between(d, reading_at(f, su, sv - 1), reading_at(f, su, sv + 1), jump));
            }
            if (f->encoding == VX_U16)
                ((uint16_t *)out)[v * WIDTH + u] = ok ? ((const uint16_t *)f->data)[sv * WIDTH + su] : 0;
            else
                ((float *)out)[v * WIDTH + u] = ok ? ((const float *)f->data)[sv * WIDTH + su] : 0;
        }
}

START_TEST(bent_lens)
{
    struct vx_device *d[2] = {reference_device(), test_device(512 << 20)};
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct vx_map *m[2] = {test_map(d[0], &p), test_map(d[1], &p)};
    struct frame_shape shape = {.width = WIDTH, .height = HEIGHT, .reach_m = 3, .odd = 0.05, .u16 = _i & 1};
    uint64_t seed = test_seed + (uint64_t)_i, n_masked = 0;
    uint8_t mask[WIDTH * HEIGHT], digest[2][32];
    for (int i = 0; i < 6; i++) {
        const double at[3] = {test_uniform(&seed, -1, 1), 0, 0};
        struct vx_frame_result r[2];
        struct vx_frame plain;
        struct test_frame t;
        float out[WIDTH * HEIGHT], weight[WIDTH * HEIGHT], straight[WIDTH * HEIGHT];
        test_frame_init(&t, VX_DEPTH, &seed, &shape, at);
        if (i != 1)
            random_lens(&t.f, &seed);
        for (int k = 0; k < WIDTH * HEIGHT; k++)
            mask[k] = test_random(&seed) % 8 ? 255 : 0;
        if (i > 2)
            t.f.mask = mask;
        if (i > 3 || i == 1)
            t.f.edge_jump = 0.01037; /* no multiple of whole readings is near a whole number */
        for (int k = 0; k < WIDTH * HEIGHT; k++)
            weight[k] = (float)test_uniform(&seed, -0.5, 4) > 0 ? (float)test_uniform(&seed, 0.01, 4) : 0;
        if (i % 3 != 0)
            t.f.weight = weight;
        clean(&t.f, out, straight);
        plain = t.f;
        plain.data = out;
        plain.mask = NULL;
        plain.edge_jump = 0;
        plain.weight = t.f.weight ? straight : NULL;
        memset(plain.distortion, 0, sizeof plain.distortion);
        ck_ok(vx_map_integrate(m[0], &plain, &r[0], NULL));
        ck_ok(vx_map_integrate(m[1], &t.f, &r[1], NULL));
        ck_assert_mem_eq(&r[0].counts, &r[1].counts, sizeof r[0].counts);
        for (int k = 0; k < 2; k++)
            ck_ok(vx_map_digest(m[k], digest[k], NULL));
        ck_assert_mem_eq(digest[0], digest[1], 32);
        n_masked += r[1].counts.zero;
        ck_assert_uint_gt(r[1].counts.used, 1000);
        test_frame_fini(&t);
    }
    ck_assert_uint_gt(n_masked, 2000);
    for (int k = 0; k < 2; k++) {
        vx_map_destroy(m[k]);
        vx_device_close(d[k]);
    }
}
END_TEST

/* Weights of 1 are none, those of 0 are a mask, and the others make another map of the same frames. */
START_TEST(weights)
{
    enum { PLAIN, ONES, MASK, ZEROS, RANDOM, N };
    struct vx_device *d = test_device(512 << 20);
    struct vx_map_params p = test_params(0.05, VX_TSDF);
    struct frame_shape shape = {.width = WIDTH, .height = HEIGHT, .reach_m = 3, .odd = 0.05, .u16 = _i & 1};
    struct vx_map_info info[N];
    struct vx_map *m[N];
    uint64_t seed = test_seed + (uint64_t)_i;
    uint8_t mask[WIDTH * HEIGHT], digest[N][32];
    float weight[N][WIDTH * HEIGHT];
    p.colour = _i & 2;
    for (int k = 0; k < N; k++)
        m[k] = test_map(d, &p);
    for (int i = 0; i < 4; i++) {
        const double at[3] = {test_uniform(&seed, -1, 1), 0, 0};
        struct vx_frame_result r[N];
        struct test_frame t;
        uint8_t colour[3 * WIDTH * HEIGHT];
        test_frame_init(&t, VX_DEPTH, &seed, &shape, at);
        for (int k = 0; k < WIDTH * HEIGHT; k++) {
            mask[k] = test_random(&seed) % 4 ? 7 : 0;
            weight[ONES][k] = 1;
            weight[ZEROS][k] = mask[k] ? 1.0f : k & 1 ? 0.0f : -0.0f;
            weight[RANDOM][k] = (float)test_uniform(&seed, 0.1, 3);
        }
        for (int k = 0; k < 3 * WIDTH * HEIGHT; k++)
            colour[k] = (uint8_t)test_random(&seed);
        for (int k = 0; k < N; k++) {
            struct vx_frame f = t.f;
            f.mask = k == MASK ? mask : NULL;
            f.weight = k == PLAIN || k == MASK ? NULL : weight[k];
            f.colour = p.colour ? colour : NULL;
            ck_ok(vx_map_integrate(m[k], &f, &r[k], NULL));
        }
        for (int k = 0; k + 1 < RANDOM; k += 2) /* PLAIN and ONES, MASK and ZEROS */
            ck_assert_mem_eq(&r[k].counts, &r[k + 1].counts, sizeof r[k].counts);
        ck_assert_mem_eq(&r[PLAIN].counts, &r[RANDOM].counts, sizeof r[PLAIN].counts);
        ck_assert_uint_gt(r[MASK].counts.zero, r[PLAIN].counts.zero + 1000);
        test_frame_fini(&t);
    }
    for (int k = 0; k < N; k++) {
        ck_ok(vx_map_digest(m[k], digest[k], NULL));
        ck_ok(vx_map_get_info(m[k], &info[k]));
        ck_map(m[k], "weights");
    }
    ck_assert_mem_eq(digest[PLAIN], digest[ONES], 32);
    ck_assert_mem_eq(digest[MASK], digest[ZEROS], 32);
    ck_assert_mem_ne(digest[PLAIN], digest[MASK], 32);
    ck_assert_mem_ne(digest[PLAIN], digest[RANDOM], 32);
    ck_device(d, m, N, "weights");
    for (int k = 0; k < N; k++)
        vx_map_destroy(m[k]);
    vx_device_close(d);
}
END_TEST

/* ------------------------------------------------------------------ decay and forgetting */

/* A frame far away that sees nothing: only time passes. */
static void blind(struct test_frame *t, uint64_t *seed, int64_t stamp_ns)
{
    const double at[3] = {100, 0, 0};
    struct frame_shape shape = {.width = 16, .height = 4, .reach_m = 2};
    test_frame_init(t, VX_RANGE, seed, &shape, at);
    for (uint32_t k = 0; k < 64; k++)
        ((float *)t->data)[k] = NAN;
    t->f.stamp_ns = stamp_ns;
}

static void feed(struct vx_map *m[2], const struct vx_frame *f, const char *what)
{
    struct vx_frame_result r[2];
    uint8_t digest[2][32];
    for (int k = 0; k < 2; k++) {
        struct vx_detail detail = {0};
        vx_err err = vx_map_integrate(m[k], f, &r[k], &detail);
        ck_assert_msg(err == VX_OK, "%s: %s", what, detail.text);
        ck_ok(vx_map_digest(m[k], digest[k], NULL));
    }
    ck_assert_uint_eq(r[0].grown_bytes, r[1].grown_bytes);
    ck_assert_msg(!memcmp(digest[0], digest[1], 32), "%s: digests differ", what);
}

START_TEST(decay)
{
    struct vx_device *d[2];
    struct vx_map_params p = test_params(0.1, _i & 1 ? VX_OCCUPANCY : VX_TSDF);
    struct vx_region box = {.min_m = {-1, -1, -1}, .max_m = {1, 1, 1}};
    struct vx_region ball = {.ball = true, .centre_m = {20, 3, 0}, .radius_m = 2};
    struct vx_map *m[2];
    struct vx_map_info info;
    struct test_frame t;
    uint64_t seed = test_seed + (uint64_t)_i;
    int64_t stamp = 0;
    if (test_backend == VXK_GUARD && _i > 1) /* slow there, and what it looks for does not differ */
        return;
    d[0] = reference_device();
    d[1] = test_device(512 << 20);
    p.half_life_s = 0.5;
    p.decay_spares_seen = _i & 2;
    p.forget_radius_m = _i & 4 ? 12 : 0;
    p.sweep_words = _i == 3 ? 64 : 0;
    for (int k = 0; k < 2; k++) {
        m[k] = test_map(d[k], &p);
        ck_ok(vx_map_protect(m[k], &box, NULL));
        ck_ok(vx_map_protect(m[k], &ball, NULL));
    }
    ck_assert_uint_eq(ball.id, 2);
    for (int i = 0; i < 24; i++) {
        const double centre[3] = {i < 12 ? 0 : 20, 0, 0};
        char what[40];
        snprintf(what, sizeof what, "frame %d", i);
        test_any_frame(&t, &seed, 3, centre, 1);
        t.f.stamp_ns = stamp += 1 + (int64_t)(test_random(&seed) % 120000000);
        feed(m, &t.f, what);
        test_frame_fini(&t);
        if (i % 6 == 5)
            ck_map(m[1], what);
    }
    ck_device(d[1], &m[1], 1, "after decay");
    for (int k = 0; k < 2; k++) {
        ck_ok(vx_map_unprotect(m[k], 1, NULL));
        ck_ok(vx_map_unprotect(m[k], 2, NULL));
        ck_assert_int_eq(vx_map_unprotect(m[k], 2, NULL), VX_E_NOT_FOUND);
    }
    /* when nothing is seen any more, nothing stays, and its memory is free again: that of emptied chunks 256
     * epochs later, which is not asked of the slow ones: guard, and all but one of an emulated GPU */
    const bool to_the_end = test_backend == VXK_CPU || (test_backend == VXK_CUDA && _i == 0);
    const int n_blind = to_the_end ? 330 : 60;
    for (int i = 0; i < n_blind; i++) {
        blind(&t, &seed, stamp += 250000000);
        feed(m, &t.f, "time passes");
        test_frame_fini(&t);
    }
    ck_ok(vx_map_get_info(m[1], &info));
    ck_assert_uint_eq(info.n_voxels + info.n_tiles + info.n_leaves + info.n_chunks, 0);
    if (to_the_end)
        ck_assert_uint_eq(info.used_bytes, 0);
    ck_assert(info.sweep_lag_s == 0 || p.sweep_words);
    ck_map(m[1], "empty again");
    ck_device(d[1], &m[1], 1, "empty again");
    test_any_frame(&t, &seed, 3, (const double[3]){0}, 1); /* the places of gone chunks are used again */
    t.f.stamp_ns = stamp + 1;
    feed(m, &t.f, "begin again");
    test_frame_fini(&t);
    ck_map(m[1], "begin again");
    for (int k = 0; k < 2; k++) {
        vx_map_destroy(m[k]);
        vx_device_close(d[k]);
    }
}
END_TEST

/* Without decay: what is far goes within 256 frames, what is near or protected stays. */
START_TEST(forget)
{
    struct vx_device *d;
    struct vx_map_params p = test_params(0.1, VX_TSDF);
    struct vx_region ball = {.ball = true, .centre_m = {0, 0, 0}, .radius_m = 0.5};
    struct vx_map_info before, after;
    struct vx_map *m[2];
    struct test_frame t;
    uint64_t seed = test_seed;
    if (test_backend == VXK_GUARD)
        return; /* some 1300 frames: half an hour of mprotect on a busy machine; `decay` covers the same code
                 */
    d = test_device(512 << 20);
    p.forget_radius_m = 15;
    for (int k = 0; k < 2; k++)
        m[k] = test_map(d, &p);
    ck_ok(vx_map_protect(m[1], &ball, NULL));
    for (int i = 0; i < 4; i++) {
        test_any_frame(&t, &seed, 3, (const double[3]){0}, 1);
        feed(m, &t.f, "near the origin");
        test_frame_fini(&t);
    }
    ck_ok(vx_map_get_info(m[0], &before));
    ck_assert_uint_gt(before.n_voxels, 0);
    for (int i = 0; i < 257; i++) {
        struct vx_frame_result r;
        blind(&t, &seed, 0);
        t.f.pose[0].position_m[0] = i < 128 ? 3 : 30;
        for (int k = 0; k < 2; k++)
            ck_ok(vx_map_integrate(m[k], &t.f, &r, NULL));
        test_frame_fini(&t);
        if (i != 127)
            continue;
        ck_ok(vx_map_get_info(m[0], &after));
        ck_assert_uint_eq(before.n_voxels, after.n_voxels);
    }
    for (int i = 0; i < 640; i++) { /* a round for the voxels, 256 epochs, a round for their chunks */
        struct vx_frame_result r;
        blind(&t, &seed, 0);
        t.f.pose[0].position_m[0] = 30;
        for (int k = 0; k < 2; k++)
            ck_ok(vx_map_integrate(m[k], &t.f, &r, NULL));
        test_frame_fini(&t);
    }
    ck_ok(vx_map_get_info(m[0], &after));
    ck_assert_uint_eq(after.n_voxels + after.n_tiles + after.n_chunks + after.used_bytes, 0);
    ck_ok(vx_map_get_info(m[1], &after));
    ck_assert(after.n_voxels > 0 && after.n_voxels < before.n_voxels);
    ck_map(m[0], "forgotten");
    ck_map(m[1], "forgotten but for a ball");
    ck_device(d, m, 2, "forgotten");
    for (int k = 0; k < 2; k++)
        vx_map_destroy(m[k]);
    vx_device_close(d);
}
END_TEST

START_TEST(bad_parameters)
{
    static const double half_lives[] = {-1, 0.001, 1e6, NAN, INFINITY}, radii[] = {-1, 0.01, NAN, INFINITY};
    struct vx_device *d = reference_device();
    struct vx_map_params p = test_params(0.1, VX_TSDF), good = p;
    struct vx_region region = {.min_m = {0, 0, 0}, .max_m = {1, 1, 1}};
    struct vx_detail detail;
    struct vx_map *m;
    for (size_t i = 0; i < sizeof half_lives / sizeof *half_lives; i++) {
        p.half_life_s = half_lives[i];
        ck_assert_int_eq(vx_map_create(d, "m", &p, &m, &detail), VX_E_INVALID);
        ck_assert_str_eq(detail.field, "half_life_s");
    }
    p = good;
    for (size_t i = 0; i < sizeof radii / sizeof *radii; i++) {
        p.forget_radius_m = radii[i];
        ck_assert_int_eq(vx_map_create(d, "m", &p, &m, &detail), VX_E_INVALID);
        ck_assert_str_eq(detail.field, "forget_radius_m");
    }
    m = test_map(d, &good);
    region.max_m[1] = -1;
    ck_assert_int_eq(vx_map_protect(m, &region, &detail), VX_E_INVALID);
    region.max_m[1] = NAN;
    ck_assert_int_eq(vx_map_protect(m, &region, &detail), VX_E_INVALID);
    /* nothing would be in it: a sheet and a ball between the centres of voxels */
    region = (struct vx_region){.min_m = {1, 1, 1}, .max_m = {1 + 0.4 * good.voxel_size_m, 2, 2}};
    ck_assert_int_eq(vx_map_protect(m, &region, &detail), VX_E_INVALID);
    region.max_m[0] = 1 + 0.6 * good.voxel_size_m;
    ck_ok(vx_map_protect(m, &region, &detail));
    ck_ok(vx_map_unprotect(m, region.id, &detail));
    region = (struct vx_region){.ball = true, .radius_m = 0.6 * good.voxel_size_m};
    ck_assert_int_eq(vx_map_protect(m, &region, &detail), VX_E_INVALID);
    region = (struct vx_region){.ball = true, .radius_m = 0};
    ck_assert_int_eq(vx_map_protect(m, &region, &detail), VX_E_INVALID);
    region = (struct vx_region){.ball = true, .radius_m = 1, .centre_m = {1e12, 0, 0}};
    ck_assert_int_eq(vx_map_protect(m, &region, &detail), VX_E_INVALID);
    region.centre_m[0] = 0;
    for (uint32_t i = 0; i < VX_MAX_REGIONS; i++)
        ck_ok(vx_map_protect(m, &region, &detail));
    ck_assert_int_eq(vx_map_protect(m, &region, &detail), VX_E_EXHAUSTED);
    ck_ok(vx_map_unprotect(m, region.id, &detail));
    ck_ok(vx_map_protect(m, &region, &detail));
    ck_assert_uint_eq(region.id, VX_MAX_REGIONS + 2); /* of which one went above */
    vx_map_destroy(m);
    vx_device_close(d);
}
END_TEST

int main(int argc, char **argv)
{
    Suite *s = suite_create("equal");
    ck_add(s, moving_scans, 4);
    ck_add(s, bent_lens, 4);
    ck_add(s, weights, 4);
    ck_add(s, decay, 6);
    ck_add(s, forget, 1);
    ck_add(s, bad_parameters, 1);
    return core_test_main(argc, argv, s);
}
