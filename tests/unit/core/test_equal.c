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

int main(int argc, char **argv)
{
    Suite *s = suite_create("equal");
    ck_add(s, moving_scans, 4);
    return core_test_main(argc, argv, s);
}
